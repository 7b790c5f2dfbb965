/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/deliver.h"

#include "format/fields.h"

#define BACKWARDS_NS 10000000 /* less: its thread took the time, then waited for a chunk */
#define CLOCK_SLACK ((uint64_t)1 << 32) /* ticks past the stop that are still believed: a second */

const uint8_t snd_event_class[256] = {
#define SND_EVENT(name, code, words, timed, summary) [SND_KIND(code, words)] = (timed) ? 1 : 2,
#include "format/events.def"
#undef SND_EVENT
};

/* The kinds that most events are of; any other goes by snd_deliver_rare(), which knows all. */
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

void snd_place_switch(struct snd_walker *w, struct snd_place *place, uint32_t thread_id)
{
    const struct snd_process *p = place->process;
    uint32_t                  at = thread_id - 1; /* 0 wraps to undefined */
    uint32_t                  defined = p->tables.thread_count ? p->tables.thread_count - 1 : 0;

    if (at >= defined)
        at = defined; /* the thread for undefined ids, if there is one */
    place->has_sequence = false;
    if (at >= p->thread_count) {
        place->thread = NULL;
        return;
    }
    place->index = p->first_thread + at;
    place->thread = &w->threads[place->index];
    if (!place->thread->seen) {
        place->thread->seen = true;
        place->thread->last_raw = p->header.start.raw;
        place->thread->last_ns = INT64_MIN;
    }
}

/*
 * A clock up to which every time is one that can be. Ids of late records are replaced one event at a
 * time, and what cannot be is for advance_clock() to judge.
 */
static uint64_t find_leaf_limit(const struct snd_walker *w, const struct snd_place *place)
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
    place->leaf_limit = find_leaf_limit(w, place);
    snd_place_switch(w, place, chunk->thread);
}

/* ----------------------------------------------------------------- warm-up */

/* A schedule's warm-up is recorded but not shown, nor is a range that began in it. */
static bool is_shown(const struct snd_process *p, struct snd_walk_thread *t, uint8_t kind,
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

static inline bool advance_clock(struct snd_walker *w, struct snd_place *place, uint64_t word0)
{
    struct snd_walk_thread *t = place->thread;
    uint64_t                raw = snd_time_extend(SND_EVENT_TIME56(word0), t->last_raw);

    if (raw > place->limit)
        return false;
    int64_t ns = snd_scale_ns(&place->process->scale, raw);
    if (!snd_time_is_sane(ns))
        return false;
    t->last_raw = raw;
    if (ns < t->last_ns) {
        w->stats.clock_backwards += snd_sub(t->last_ns, ns) > BACKWARDS_NS;
        return true;
    }
    t->last_ns = ns;
    return true;
}

/* Counts an event whose time has been told; false: it was warm-up, which is not shown. */
static inline bool count_shown(struct snd_walker *w, struct snd_place *place, uint8_t kind,
                               const uint64_t *words)
{
    if (place->process->valid_from != 0 &&
        !is_shown(place->process, place->thread, kind, SND_KIND_WORDS(kind) > 1 ? words[1] : 0)) {
        w->stats.warmup_events++;
        return false;
    }
    w->stats.events++;
    return true;
}

/* Hands an event to the visitor, unless it was warm-up: then false. */
static inline bool show(struct snd_walker *w, struct snd_place *place, uint8_t kind,
                        const uint64_t *words)
{
    struct snd_walk_thread *t = place->thread;
    struct snd_visitor     *v = w->visitor;

    if (!count_shown(w, place, kind, words))
        return false;
    if (kind == SND_EV_BEGIN)
        v->begin(v->user, place->index, t->last_ns, SND_LOW(words[1]), SND_HIGH(words[1]));
    else if (kind == SND_EV_END)
        v->end(v->user, place->index, t->last_ns);
    else
        v->other(v->user, place->index, t->last_ns, words);
    return true;
}

bool snd_deliver_end(struct snd_walker *w, struct snd_place *place)
{
    const uint64_t word = place->span_end << 8 | SND_EV_END;

    place->span_end = 0;
    if (!advance_clock(w, place, word))
        return false;
    if (!w->visitor->stop)
        show(w, place, SND_EV_END, &word);
    return true;
}

/* The end of a range that has its duration in it. */
static inline bool deliver_ticks(struct snd_walker *w, struct snd_place *place, uint32_t ticks)
{
    if (ticks == 0)
        return true;
    ++*place->counted;
    place->span_end = place->thread->last_raw + ticks;
    return place->defers_ends || snd_deliver_end(w, place);
}

static inline bool deliver_span(struct snd_walker *w, struct snd_place *place,
                                const uint64_t *words)
{
    const uint64_t begin[2] = { words[0], SND_SPAN_NAME(words[1]) };

    show(w, place, SND_EV_BEGIN, begin);
    return deliver_ticks(w, place, SND_SPAN_TICKS(words[1]));
}

/* Hands a call over as the begin and the attributes that it stands for. */
static void show_parts(struct snd_walker *w, const struct snd_place *place,
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

size_t snd_deliver_leaves(struct snd_walker *w, struct snd_place *place, const uint64_t *words,
                          size_t count, uint64_t until, uint64_t end_until)
{
    const struct snd_process *p = place->process;
    struct snd_walk_thread   *t = place->thread;
    struct snd_visitor       *v = w->visitor;
    size_t                    at = 0;

    if (!t || t->last_ns == INT64_MIN)
        return 0;
    struct snd_leaf leaf = { .has_sequence = place->has_sequence, .sequence = place->sequence };
    for (; at + 2 <= count && SND_EVENT_KIND(words[at]) == SND_EV_CALL && !v->stop; at += 2) {
        uint64_t begin = snd_time_extend(SND_EVENT_TIME56(words[at]), t->last_raw);
        uint32_t ticks = SND_SPAN_TICKS(words[at + 1]);
        uint64_t end = begin + ticks;

        leaf.id = SND_LOW(words[at + 1]);
        if (ticks == 0 || begin >= until || begin < p->valid_from || end > place->leaf_limit ||
            end < begin || end >= end_until || leaf.id >= p->tables.call_count)
            break;
        leaf.start_ns = snd_scale_ns(&p->scale, begin);
        leaf.end_ns = snd_scale_ns(&p->scale, end);
        if (leaf.start_ns < t->last_ns || !v->leaf(v->user, place->index, &leaf))
            break;
        t->last_raw = end;
        t->last_ns = leaf.end_ns;
    }
    w->stats.events += at; /* each has two words and is two events */
    *place->counted += at;
    return at;
}

static inline bool deliver_call(struct snd_walker *w, struct snd_place *place,
                                const uint64_t *words)
{
    static const struct snd_table_call none = { 0 };
    const struct snd_tables           *t = &place->process->tables;
    struct snd_visitor                *v = w->visitor;
    uint32_t                           id = SND_LOW(words[1]);
    const struct snd_table_call       *call = id < t->call_count ? &t->calls[id] : &none;
    bool                               has_sequence = (call->record.flags & SND_CALL_SEQUENCE) &&
                        place->has_sequence; /* number 0 is one too */
    const uint64_t *sequence = has_sequence ? &place->sequence : NULL;

    if (count_shown(w, place, SND_EV_BEGIN, words)) {
        if (v->call)
            v->call(v->user, place->index, place->thread->last_ns, call, sequence);
        else
            show_parts(w, place, &call->record, sequence);
    }
    return deliver_ticks(w, place, SND_SPAN_TICKS(words[1]));
}

static bool deliver_api(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    const uint64_t begin[2] = { words[0], SND_SPAN_NAME(words[1]) };
    const uint64_t call[2] = { SND_WORD0_ATTR64(SND_ATTR_API), words[2] };

    if (show(w, place, SND_EV_BEGIN, begin))
        w->visitor->other(w->visitor->user, place->index, place->thread->last_ns, call);
    return deliver_ticks(w, place, SND_SPAN_TICKS(words[1]));
}

/* The end that is part of an event which is not shown. */
static bool skip_end(const struct snd_place *place, const uint64_t *words)
{
    *place->counted += snd_event_weight(words) - 1;
    return true;
}

bool snd_deliver_known(struct snd_walker *w, struct snd_place *place, const uint64_t *words,
                       bool is_timed)
{
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (!place->thread) {
        w->stats.lost_threads++;
        return skip_end(place, words);
    }
    if (is_timed && !advance_clock(w, place, words[0]))
        return !skip_end(place, words);
    if (kind == SND_EV_SPAN)
        return deliver_span(w, place, words);
    if (kind == SND_EV_CALL)
        return deliver_call(w, place, words);
    if (kind == SND_EV_API)
        return deliver_api(w, place, words);
    if (kind == SND_EV_ATTR && SND_ATTR_KEY(words[0]) == SND_ATTR_CALLS_SEQUENCE) {
        place->sequence = SND_ATTR_VALUE(words[0]);
        place->has_sequence = true;
        return true;
    }
    show(w, place, kind, words);
    return true;
}

void snd_deliver_break(struct snd_walker *w, struct snd_place *place)
{
    const uint64_t words[2] = { SND_EV_GAP, SND_PAIR(0, SND_GAP_ALL) };

    if (!place->thread || place->thread->last_ns == INT64_MIN)
        return;
    place->thread->open = 0;
    w->visitor->other(w->visitor->user, place->index, place->thread->last_ns, words);
}
