/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/deliver.h"

#include <string.h>

#include "format/fields.h"
#include "format/references.h"

#define CLOCK_SLACK ((uint64_t)1 << 32) /* ticks past the stop that are still believed: a second */

const uint8_t snd_event_class[256] = {
#define SND_EVENT(name, code, words, timed, summary) [SND_KIND(code, words)] = (timed) ? 1 : 2,
#include "format/events.def"
};

/* The most frequent kinds; any other is delivered by snd_deliver_rare(), which knows all. */
static const uint8_t ways[256] = {
    [SND_EV_BEGIN] = SND_WAY_NAMED,      [SND_EV_SPAN] = SND_WAY_NAMED,
    [SND_EV_MARK] = SND_WAY_NAMED,       [SND_EV_COUNTER] = SND_WAY_NAMED,
    [SND_EV_END] = SND_WAY_TIMED,        [SND_EV_CALL] = SND_WAY_TIMED,
    [SND_EV_ATTR] = SND_WAY_UNTIMED,     [SND_EV_ATTR64] = SND_WAY_UNTIMED,
    [SND_EV_ALLOC] = SND_WAY_TIMED,      [SND_EV_FREE] = SND_WAY_TIMED,
    [SND_EV_SAMPLE] = SND_WAY_TIMED,     [SND_EV_LINK] = SND_WAY_TIMED,
    [SND_EV_FUNCTION] = SND_WAY_TIMED,   [SND_EV_API] = SND_WAY_NAMED,
    [SND_EV_SAMPLE_RUN] = SND_WAY_TIMED,
};
static const uint8_t all_rare[256];

/* ------------------------------------------------------------------- place */

/* Goes over to the thread of that id. */
static void switch_thread(struct snd_walker *w, struct snd_place *place, uint32_t thread_id)
{
    const struct snd_process *p = place->process;
    uint32_t                  index = snd_thread_of(p, thread_id);

    place->has_sequence = false;
    place->thread = NULL;
    if (index == SONDE_NONE)
        return;
    if (w->share_of &&
        w->share_of[index] != w->share) { /* the file has grown since shares were made */
        w->has_strayed = w->visitor->stop = true;
        return;
    }
    place->index = index;
    place->thread = &w->threads[place->index];
    if (!place->thread->seen) {
        place->thread->seen = true;
        place->thread->last_raw = p->header.start.raw;
        place->thread->last_ns = INT64_MIN;
    }
}

/*
 * A clock up to which every time is one that can be. Ids of late records are replaced one event at a
 * time, and what cannot be is for snd_deliver_advance_clock_() to judge.
 */
static uint64_t find_run_limit(const struct snd_walker *w, const struct snd_place *place)
{
    uint64_t sane = snd_scale_raw_before(&place->process->scale, SND_TIME_MAX);

    if (!w->visitor->leaf || place->process->tables.late.count > 0)
        return 0;
    return sane < place->limit ? sane : place->limit;
}

void snd_place_start(struct snd_walker *w, struct snd_place *place,
                     const struct snd_process *process, const struct snd_chunk_ref *chunk)
{
    *place = (struct snd_place){ .process = process,
                                 .limit = UINT64_MAX,
                                 .ways = process->tables.late.count > 0 ? all_rare : ways,
                                 .counted = &w->seen[process - w->trace->processes] };
    if (process->shown.closed && process->header.stopped_at != 0 &&
        process->header.stopped_at < UINT64_MAX - CLOCK_SLACK)
        place->limit = process->header.stopped_at + CLOCK_SLACK;
    place->first_own = chunk->first_own;
    place->run_limit = find_run_limit(w, place);
    switch_thread(w, place, chunk->thread);
}

/* ----------------------------------------------------------------- warm-up */

/* A schedule's warm-up is recorded but not shown, nor is a range that began in it. */
bool snd_deliver_is_shown(const struct snd_process *p, struct snd_walk_thread *t, uint8_t kind,
                          uint64_t word1)
{
    bool warm = t->last_raw < p->valid_from;

    if (kind == SND_EV_GAP) {
        uint64_t ends = SND_HIGH(word1);
        uint64_t shown = ends < t->open ? ends : t->open;
        t->open -= shown;
        t->hidden -= ends - shown < t->hidden ? ends - shown : t->hidden;
        return !warm;
    }
    if (kind == SND_EV_BEGIN) {
        *(warm ? &t->hidden : &t->open) += 1;
        return !warm;
    }
    if (kind == SND_EV_END || kind == SND_EV_END_AT) {
        uint64_t inside = kind == SND_EV_END_AT ? SND_LOW(word1) : 0;
        if (inside < t->open) {
            t->open--;
            return true;
        }
        if (inside - t->open < t->hidden) {
            t->hidden--;
            return false;
        }
    }
    if (kind == SND_EV_ATTR || kind == SND_EV_ATTR64)
        return !warm && (t->open > 0 || t->hidden == 0);
    return !warm;
}

/* ---------------------------------------------------------------- delivery */

bool snd_deliver_end(struct snd_walker *w, struct snd_place *place)
{
    const uint64_t word = place->span_end << 8 | SND_EV_END;

    place->span_end = 0;
    if (!snd_deliver_advance_clock_(w, place, word))
        return false;
    if (!w->visitor->stop)
        snd_deliver_show_(w, place, SND_EV_END, &word);
    return true;
}

/* Hands a call over as the begin and the attributes that it stands for. */
void snd_deliver_parts(const struct snd_walker *w, const struct snd_place *place,
                       const struct snd_call_record *call, const uint64_t *sequence)
{
    struct snd_call_attr attrs[SND_CALL_ATTRS];
    struct snd_visitor  *v = w->visitor;
    int64_t              ns = place->thread->last_ns;

    v->begin(v->user, place->index, ns, call->name, call->shapes);
    if (sequence) {
        const uint64_t words[2] = { SND_WORD0_ATTR64(SND_ATTR_SEQUENCE), *sequence };
        v->other(v->user, place->index, ns, words);
    }
    size_t count = snd_call_attrs(call, attrs);
    for (size_t i = 0; i < count; i++) {
        const uint64_t words[2] = { SND_WORD0_ATTR64(attrs[i].key), attrs[i].value };
        v->other(v->user, place->index, ns, words);
    }
}

/* A thread's clock, while its events are delivered in a run. */
struct run_clock {
    uint64_t raw;
    int64_t  ns;
};

/* False: it goes the long way. */
static inline bool advance(struct run_clock *clock, const struct snd_scale *scale, uint64_t raw)
{
    int64_t ns = snd_scale_ns(scale, raw);

    if (ns < clock->ns)
        return false;
    *clock = (struct run_clock){ raw, ns };
    return true;
}

/* Hands over a range that has its duration in it; false: it goes the long way. */
static inline bool deliver_leaf(const struct snd_walker *w, const struct snd_place *place,
                                const uint64_t *words, struct run_clock *clock, uint64_t begin,
                                uint64_t end)
{
    const struct snd_process *p = place->process;
    const struct snd_leaf     leaf = { .start_ns = snd_scale_ns(&p->scale, begin),
                                       .end_ns = snd_scale_ns(&p->scale, end),
                                       .id = SND_LOW(words[1]),
                                       .is_call = SND_EVENT_KIND(words[0]) == SND_EV_CALL,
                                       .has_sequence = place->has_sequence,
                                       .sequence = place->sequence };

    if (begin < p->valid_from || end > place->run_limit || end < begin ||
        leaf.id >= (leaf.is_call ? p->tables.call_count : p->tables.file_names) ||
        leaf.start_ns < clock->ns || !w->visitor->leaf(w->visitor->user, place->index, &leaf))
        return false;
    *clock = (struct run_clock){ end, leaf.end_ns };
    return true;
}

/* Delivers the begin of a call or a span; false: it goes the long way. */
static inline bool deliver_begin(const struct snd_walker *w, const struct snd_place *place,
                                 const uint64_t *words, struct run_clock *clock, uint64_t raw)
{
    const struct snd_visitor *v = w->visitor;
    const struct snd_process *p = place->process;
    bool                      is_call = SND_EVENT_KIND(words[0]) == SND_EV_CALL;

    if (p->valid_from != 0 ||
        (is_call ? !v->call : SND_SPAN_NAME(words[1]) >= p->tables.file_names) ||
        !advance(clock, &p->scale, raw))
        return false;
    if (is_call)
        snd_deliver_call_begin_(w, place, words, clock->ns);
    else
        v->begin(v->user, place->index, clock->ns, SND_SPAN_NAME(words[1]), 0);
    return true;
}

/* Delivers a call or a span; false: it goes the long way. */
static inline bool deliver_range(const struct snd_walker *w, const struct snd_place *place,
                                 const uint64_t *words, struct run_clock *clock, uint64_t raw,
                                 uint64_t end_until)
{
    uint32_t ticks = SND_SPAN_TICKS(words[1]);

    return ticks == 0
               ? deliver_begin(w, place, words, clock, raw)
               : raw + ticks < end_until && deliver_leaf(w, place, words, clock, raw, raw + ticks);
}

size_t snd_deliver_run(struct snd_walker *w, struct snd_place *place, const uint64_t *words,
                       size_t count, uint64_t until, uint64_t end_until)
{
    struct snd_walk_thread   *t = place->thread;
    const struct snd_visitor *v = w->visitor;
    size_t                    at = 0, begins = 0;

    if (!t || t->last_ns == INT64_MIN || place->run_limit == 0 || until == 0)
        return 0;
    const struct snd_process *p = place->process;
    uint64_t                  last = until - 1 < place->run_limit ? until - 1 : place->run_limit;
    struct run_clock          clock = { t->last_raw, t->last_ns };
    while (at < count && !v->stop) {
        uint8_t  kind = SND_EVENT_KIND(words[at]);
        uint64_t raw = snd_time_extend(SND_EVENT_TIME56(words[at]), clock.raw);
        if (raw > last)
            break;
        if (kind == SND_EV_END) {
            if (p->valid_from != 0 || !advance(&clock, &p->scale, raw))
                break;
            v->end(v->user, place->index, clock.ns);
            at++;
            continue;
        }
        if (!snd_is_run(kind) || count - at < 2 ||
            !deliver_range(w, place, words + at, &clock, raw, end_until))
            break;
        begins += SND_SPAN_TICKS(words[at + 1]) == 0;
        at += 2;
    }
    t->last_raw = clock.raw;
    t->last_ns = clock.ns;
    w->stats.events +=
        at - begins; /* one that has its duration in it has two words, and is two events */
    *place->counted += at - begins;
    return at;
}

void snd_deliver_break(struct snd_walker *w, struct snd_place *place)
{
    const uint64_t words[2] = { SND_EV_GAP, SND_PAIR(0, SND_GAP_ALL) };

    if (!place->thread || place->thread->last_ns == INT64_MIN)
        return;
    place->thread->open = 0;
    w->visitor->other(w->visitor->user, place->index, place->thread->last_ns, words);
}

/* -------------------------------------------------------------- rare events */

/* Its time is not its thread's: what the thread did before it may be later. */
static bool deliver_work(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    const struct snd_process *p = place->process;
    uint64_t raw = snd_time_extend(SND_EVENT_TIME56(words[0]), p->header.start.raw);
    int64_t  start = snd_scale_ns(&p->scale, raw);
    int64_t  end = snd_scale_ns(&p->scale, raw + words[2]);

    if (raw > place->limit || end < start || !snd_time_is_sane(start) || !snd_time_is_sane(end))
        return false;
    if (raw < p->valid_from) {
        w->stats.warmup_events++;
        return true;
    }
    const struct snd_device_work work = {
        .start_ns = start,
        .duration_ns = end - start,
        .node = SND_EVENT_KIND(words[0]) == SND_EV_DEVICE_NODE ? words[4] : 0,
        .work = SND_LOW(words[1]),
        .queue = SND_HIGH(words[1]),
        .correlation = SND_LOW(words[3]),
        .thread = place->index,
    };
    w->stats.events++;
    if (w->visitor->device)
        w->visitor->device(w->visitor->user, (uint32_t)(p - w->trace->processes), &work);
    return true;
}

static bool deliver_device(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    if (SND_EVENT_KIND(words[0]) != SND_EV_DEVICE_SHORT)
        return deliver_work(w, place, words);
    const uint64_t whole[4] = { words[0], SND_PAIR(SND_LOW(words[1]), SND_HIGH(words[2])),
                                SND_HIGH(words[1]), SND_LOW(words[2]) };
    return deliver_work(w, place, whole);
}

static inline bool is_device(uint8_t kind)
{
    return kind == SND_EV_DEVICE_SHORT || kind == SND_EV_DEVICE || kind == SND_EV_DEVICE_NODE;
}

/* A STEP that was counted from optimizers, before the program marked its own. */
static bool is_passed_over(const struct snd_place *place, const uint64_t *words)
{
    return SND_EVENT_KIND(words[0]) == SND_EV_STEP && place->thread &&
           snd_time_extend(SND_EVENT_TIME56(words[0]), place->thread->last_raw) <
               place->process->steps_from;
}

static bool deliver(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (is_passed_over(place, words))
        return true;
    if (snd_event_class[kind] == 0) {
        w->stats.unknown_events++;
        return true;
    }
    if (kind == SND_EV_THREAD) {
        switch_thread(w, place, SND_LOW(words[1]));
        place->own_at_thread = place->own;
        w->stats.lost_threads += !place->thread;
        return true;
    }
    if (is_device(kind) && place->thread)
        return deliver_device(w, place, words);
    return snd_deliver_plain(w, place, words, snd_event_class[kind] == 1);
}

/* The string id of one of the chunk's own names; 0 if the chunk has not defined it. */
static uint32_t find_own(const struct snd_place *place, uint32_t id)
{
    uint32_t number = id & ~SND_OWN_NAME;

    return number < place->own - place->own_at_thread
               ? place->first_own + place->own_at_thread + number
               : 0;
}

static inline bool has_name(uint8_t kind)
{
    return kind == SND_EV_BEGIN || kind == SND_EV_SPAN || kind == SND_EV_API ||
           kind == SND_EV_MARK || kind == SND_EV_COUNTER;
}

/* The event with the tables' ids instead of late ones. */
static void replace_late(const struct snd_tables *t, uint8_t kind, uint64_t *words)
{
    for (size_t i = 0; i < SND_EVENT_FIELDS; i++) {
        const struct snd_event_field *field = &snd_event_fields[i];
        if (field->kind != kind || field->form >= SND_FORM_U32)
            continue;
        uint32_t id = (uint32_t)snd_event_field_read(field, words);
        snd_event_field_replace(field, words, snd_late_replace(t, field->form, id));
    }
    if (kind == SND_EV_ATTR && snd_attr_reference(SND_ATTR_KEY(words[0]))) {
        uint32_t id = (uint32_t)SND_ATTR_VALUE(words[0]);
        uint8_t  type = snd_attr_reference(SND_ATTR_KEY(words[0]));
        words[0] ^= (uint64_t)(id ^ snd_late_replace(t, type, id)) << 16;
    }
}

static bool deliver_late(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    uint8_t  kind = SND_EVENT_KIND(words[0]);
    uint64_t copy[SND_EVENT_WORDS_MAX] = { 0 };

    memcpy(copy, words, SND_KIND_WORDS(kind) * sizeof copy[0]);
    replace_late(&place->process->tables, kind, copy);
    return deliver(w, place, copy);
}

bool snd_deliver_rare(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (kind == SND_EV_RECORD || kind == SND_EV_RECORD_SHORT)
        return true;
    if (kind == SND_EV_NAME) {
        place->own += SND_LOW(words[1]) == place->own - place->own_at_thread;
        return true;
    }
    if (has_name(kind) && (words[1] & SND_OWN_NAME)) {
        const uint64_t named[3] = { words[0],
                                    (words[1] & ~(uint64_t)UINT32_MAX) |
                                        find_own(place, SND_LOW(words[1])),
                                    SND_KIND_WORDS(kind) > 2 ? words[2] : 0 };
        return deliver(w, place, named);
    }
    if (place->process->tables.late.count > 0)
        return deliver_late(w, place, words);
    return deliver(w, place, words);
}
