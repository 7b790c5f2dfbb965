/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/trace_walk.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "read/walk/deliver.h"
#include "read/walk/shares.h"

/* --------------------------------------------------------------- by thread */

/* The events in the cursor's window; false when the chunk is at its end or damaged. */
static bool walk_window(struct snd_walker *w, struct snd_place *place, struct snd_cursor *c)
{
    while (c->at < c->count) {
        const uint64_t *words = c->words + c->at;
        if (words[0] == 0) {
            c->damaged |= c->has_used;
            c->at = c->count; /* nothing was cut off */
            return false;
        }
        if (place->run_limit != 0 && snd_is_run(SND_EVENT_KIND(words[0]))) {
            size_t taken = snd_deliver_run(w, place, words, c->count - c->at, UINT64_MAX,
                                           UINT64_MAX);
            c->at += taken;
            if (w->visitor->stop)
                return false;
            if (taken > 0)
                continue;
        }
        unsigned length = SND_KIND_WORDS(SND_EVENT_KIND(words[0]));
        if (length > c->count - c->at)
            return true;
        if (!snd_deliver(w, place, words)) {
            c->damaged = true;
            return false;
        }
        c->at += length;
        if (w->visitor->stop)
            return false;
    }
    return true;
}

static void walk_chunk(struct snd_walker *w, struct snd_place *place, struct snd_cursor *c)
{
    while (walk_window(w, place, c)) {
        if (snd_cursor_fill(c))
            continue;
        c->damaged |= c->at < c->count; /* the last event is cut off */
        break;
    }
    if (c->damaged && !w->visitor->stop) {
        w->stats.damaged_chunks++;
        snd_deliver_break(w, place);
    }
}

static enum sonde_status walk_by_thread(struct snd_walker *w, struct sonde_error *err)
{
    struct snd_cursor cursor = { 0 };
    struct snd_place  place;
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < w->trace->process_count; i++) {
        const struct snd_process *p = &w->trace->processes[i];
        for (uint32_t k = 0; k < p->lane_count && !w->visitor->stop; k++) {
            status = snd_cursor_open(&cursor, p, &p->lanes[k], SND_WINDOW_WALK, &w->codec, err);
            if (status != SONDE_OK)
                goto done;
            snd_place_start(w, &place, p, &p->lanes[k]);
            walk_chunk(w, &place, &cursor);
        }
    }
done:
    snd_cursor_release(&cursor);
    return status;
}

/* Of a process whose file says how many events it was closed with. */
static uint64_t find_missing(const struct snd_process *p, uint64_t seen)
{
    bool says = p->shown.closed && !p->damage.header && p->header.closed_events > seen;

    return says ? p->header.closed_events - seen : 0;
}

static enum sonde_status begin(struct snd_walker *w, struct sonde_trace *trace,
                               struct snd_visitor *visitor, struct sonde_error *err)
{
    *w = (struct snd_walker){ .trace = trace, .visitor = visitor };
    w->threads = calloc((size_t)trace->thread_count + 1, sizeof *w->threads);
    w->seen = calloc((size_t)trace->process_count + 1, sizeof *w->seen);
    return w->threads && w->seen
               ? SONDE_OK
               : snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
}

static void end(struct snd_walker *w)
{
    snd_codec_free(w->codec);
    free(w->threads);
    free(w->seen);
}

enum sonde_status snd_walk(struct sonde_trace *trace, enum sonde_order order,
                           struct snd_visitor *visitor, struct snd_walk_stats *stats,
                           struct sonde_error *err)
{
    struct snd_walker w;
    enum sonde_status status = begin(&w, trace, visitor, err);

    if (status == SONDE_OK)
        status = order == SONDE_BY_TIME ? snd_walk_merged(&w, err) : walk_by_thread(&w, err);
    if (status == SONDE_OK && !visitor->stop) {
        for (uint32_t i = 0; i < trace->process_count; i++)
            w.stats.missing_events += find_missing(&trace->processes[i], w.seen[i]);
        trace->walks++;
    }
    if (stats)
        *stats = w.stats;
    end(&w);
    return status;
}

/* ------------------------------------------------- by thread, a share at a time */

static enum sonde_status walk_share(struct snd_walker *w, const struct snd_shares *shares,
                                    struct snd_cursor *cursor, struct sonde_error *err)
{
    const struct snd_share   *share = &shares->items[w->share];
    const struct snd_process *p = &w->trace->processes[share->process];
    struct snd_place          place;
    enum sonde_status         status = SONDE_OK;

    for (uint32_t i = 0; i < share->chunk_count && status == SONDE_OK && !w->visitor->stop; i++) {
        struct snd_chunk_ref *chunk = &p->lanes[shares->chunks[share->first_chunk + i]];
        status = snd_cursor_open(cursor, p, chunk, SND_WINDOW_WALK, &w->codec, err);
        if (status != SONDE_OK)
            break;
        snd_place_start(w, &place, p, chunk);
        walk_chunk(w, &place, cursor);
    }
    return status;
}

enum sonde_status snd_walk_shares(struct snd_shares *shares, struct snd_visitor *visitor,
                                  struct snd_walk_stats *stats, struct sonde_error *err)
{
    struct sonde_trace *trace = shares->trace;
    struct snd_cursor   cursor = { 0 };
    struct snd_walker   w;
    enum sonde_status   status = begin(&w, trace, visitor, err);

    w.share_of = shares->of_thread;
    while (status == SONDE_OK && !visitor->stop && !atomic_load(&shares->is_over) &&
           (w.share = atomic_fetch_add(&shares->next, 1)) < shares->count)
        status = walk_share(&w, shares, &cursor, err);
    if (w.has_strayed)
        atomic_store(&shares->is_in_vain, true);
    if (status != SONDE_OK || visitor->stop)
        atomic_store(&shares->is_over, true);
    for (uint32_t i = 0; w.seen && i < trace->process_count; i++)
        atomic_fetch_add(&shares->seen[i], w.seen[i]);
    *stats = w.stats;
    snd_cursor_release(&cursor);
    end(&w);
    return status;
}

void snd_walk_shares_end(const struct snd_shares *shares, struct snd_walk_stats *stats)
{
    for (uint32_t i = 0; i < shares->trace->process_count; i++)
        stats->missing_events += find_missing(&shares->trace->processes[i],
                                              atomic_load(&shares->seen[i]));
    shares->trace->walks++;
    shares->trace->divided++;
}

void snd_walk_stats_add(struct snd_walk_stats *sum, const struct snd_walk_stats *one)
{
    sum->events += one->events;
    sum->warmup_events += one->warmup_events;
    sum->unknown_events += one->unknown_events;
    sum->lost_threads += one->lost_threads;
    sum->damaged_chunks += one->damaged_chunks;
    sum->clock_backwards += one->clock_backwards;
    sum->missing_events += one->missing_events;
}

uint32_t snd_subject_thread(const struct sonde_trace *trace, uint32_t lane, const uint64_t *words)
{
    const struct snd_process *p = &trace->processes[trace->threads[lane].shown.process];
    uint8_t                   kind = SND_EVENT_KIND(words[0]);
    uint32_t                  id = snd_is_sample(kind)       ? SND_LOW(words[2])
                                   : kind == SND_EV_FUNCTION ? SND_HIGH(words[1])
                                                             : 0;

    return id == 0 || id >= p->tables.thread_count ? lane : p->first_thread + id - 1;
}

struct snd_sample_times snd_sample_times(const struct sonde_trace *trace, uint32_t lane, int64_t ns,
                                         const uint64_t *words)
{
    const struct snd_process *p = &trace->processes[trace->threads[lane].shown.process];

    if (SND_EVENT_KIND(words[0]) == SND_EV_SAMPLE)
        return (struct snd_sample_times){ snd_sub(ns, SND_HIGH(words[2])), ns, ns };
    uint64_t written = snd_time_extend(SND_EVENT_TIME56(words[0]), p->header.start.raw);
    uint64_t end = written - (words[3] & SND_TIME_MASK);
    return (struct snd_sample_times){
        .begin_ns = snd_time_clamp(snd_scale_ns(&p->scale, end - SND_HIGH(words[2]))),
        .end_ns = snd_time_clamp(snd_scale_ns(&p->scale, end)),
        .read_ns = snd_time_clamp(snd_scale_ns(&p->scale, written - (words[4] & SND_TIME_MASK))),
    };
}

/* ----------------------------------------------------------- the last event */

static uint64_t find_latest(struct snd_cursor *c, uint64_t near)
{
    uint64_t latest = 0;

    do {
        while (c->at < c->count && c->words[c->at] != 0) {
            uint64_t word = c->words[c->at];
            unsigned length = SND_KIND_WORDS(SND_EVENT_KIND(word));
            if (length > c->count - c->at)
                break;
            if (snd_event_class[SND_EVENT_KIND(word)] == 1) {
                near = snd_time_extend(SND_EVENT_TIME56(word), near);
                if (snd_closes_in_place(SND_EVENT_KIND(word)))
                    near += SND_SPAN_TICKS(c->words[c->at + 1]);
                latest = near > latest ? near : latest;
            }
            c->at += length;
        }
        if (c->at < c->count && c->words[c->at] == 0)
            break;
    } while (snd_cursor_fill(c));
    return latest;
}

enum sonde_status snd_walk_latest(const struct snd_process *p, uint64_t *latest,
                                  struct sonde_error *err)
{
    struct snd_cursor cursor = { 0 };
    struct snd_codec *codec = NULL;
    enum sonde_status status = SONDE_OK;

    *latest = 0;
    for (uint32_t i = 0; i < p->lane_count && status == SONDE_OK; i++) {
        /* Sealed chunks are older than the one their thread was writing, but for the last. */
        if (p->lanes[i].used != 0 && i + 1 < p->lane_count)
            continue;
        status = snd_cursor_open(&cursor, p, &p->lanes[i], SND_WINDOW_WALK, &codec, err);
        if (status == SONDE_OK) {
            uint64_t found = find_latest(&cursor, p->header.start.raw);
            *latest = found > *latest ? found : *latest;
        }
    }
    snd_cursor_release(&cursor);
    snd_codec_free(codec);
    return status;
}

/* ---------------------------------------------------------- the public walk */

struct public_walk {
    const struct sonde_trace *trace;
    struct snd_visitor       *visitor;
    sonde_event_fn           *function;
    void                     *user;
};

static void hand_over(struct public_walk *walk, struct sonde_event *event, uint32_t thread,
                      int64_t ns)
{
    if (walk->visitor->stop)
        return;
    event->thread = thread;
    event->process = walk->trace->threads[thread].shown.process;
    event->time_ns = ns;
    if (!walk->function(event, walk->user))
        walk->visitor->stop = true;
}

static void hand_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    struct sonde_event event = { .kind = SONDE_EVENT_BEGIN, .begin = { name, shapes } };

    hand_over(user, &event, thread, ns);
}

static void hand_end(void *user, uint32_t thread, int64_t ns)
{
    struct sonde_event event = { .kind = SONDE_EVENT_END };

    hand_over(user, &event, thread, ns);
}

static void fill_mark(struct sonde_event *e, const uint64_t *w)
{
    e->mark = (struct sonde_event_mark){ .name = SND_LOW(w[1]), .stack = SND_HIGH(w[1]) };
}

static void fill_step(struct sonde_event *e, const uint64_t *w)
{
    e->step.number = w[1];
}

static void fill_end_key(struct sonde_event *e, const uint64_t *w)
{
    e->end_key.key = w[1];
}

static void fill_gap(struct sonde_event *e, const uint64_t *w)
{
    e->gap = (struct sonde_event_gap){ .events = SND_LOW(w[1]), .ends = SND_HIGH(w[1]) };
}

static void fill_end_at(struct sonde_event *e, const uint64_t *w)
{
    e->end_at.inner = SND_LOW(w[1]);
}

static void fill_counter(struct sonde_event *e, const uint64_t *w)
{
    e->counter.name = SND_LOW(w[1]);
    memcpy(&e->counter.value, &w[2], sizeof e->counter.value);
}

static void fill_link(struct sonde_event *e, const uint64_t *w)
{
    e->link = (struct sonde_event_link){ .id = w[2],
                                         .kind = SND_LOW(w[1]),
                                         .arrives = SND_HIGH(w[1]) != 0 };
}

static void fill_sample(struct sonde_event *e, const uint64_t *w)
{
    e->sample = (struct sonde_event_sample){ .covered_ns = SND_HIGH(w[2]),
                                             .stack = SND_LOW(w[1]),
                                             .count = snd_sample_count(w),
                                             .state = SND_SAMPLE_STATE(w[1]) };
}

static void fill_memory(struct sonde_event *e, const uint64_t *w)
{
    e->memory = (struct sonde_event_memory){
        .address = w[2], .size_bytes = w[3], .device = SND_LOW(w[1]), .tag = SND_HIGH(w[1])
    };
}

static void fill_function(struct sonde_event *e, const uint64_t *w)
{
    e->function = (struct sonde_event_function){ .frame = SND_LOW(w[1]),
                                                 .id = SND_LOW(w[3]),
                                                 .parent = SND_HIGH(w[3]),
                                                 .resumed = SND_FUNCTION_FLAGS(w[2]) ==
                                                            SND_FUNCTION_RESUMED };
}

static uint64_t function_ns(const struct sonde_trace *trace, uint32_t lane, const uint64_t *words)
{
    const struct snd_process *p = &trace->processes[trace->threads[lane].shown.process];

    return (uint64_t)snd_scale_ticks(&p->scale, SND_FUNCTION_TICKS(words[2]));
}

static void fill_attr(struct sonde_event *e, const uint64_t *w)
{
    e->attr = (struct sonde_event_attr){ .value = SND_ATTR_VALUE(w[0]), .key = SND_ATTR_KEY(w[0]) };
}

static void fill_attr64(struct sonde_event *e, const uint64_t *w)
{
    e->attr = (struct sonde_event_attr){ .value = w[1], .key = SND_ATTR_KEY(w[0]) };
}

bool snd_event_show(const struct sonde_trace *trace, uint32_t thread, int64_t ns,
                    const uint64_t *words, struct sonde_event *event)
{
    static const struct {
        uint8_t shown;
        void (*fill)(struct sonde_event *event, const uint64_t *words);
    } kinds[256] = {
        [SND_EV_MARK] = { SONDE_EVENT_MARK, fill_mark },
        [SND_EV_STEP] = { SONDE_EVENT_STEP, fill_step },
        [SND_EV_GAP] = { SONDE_EVENT_GAP, fill_gap },
        [SND_EV_END_AT] = { SONDE_EVENT_END_AT, fill_end_at },
        [SND_EV_END_KEY] = { SONDE_EVENT_END_KEY, fill_end_key },
        [SND_EV_COUNTER] = { SONDE_EVENT_COUNTER, fill_counter },
        [SND_EV_LINK] = { SONDE_EVENT_LINK, fill_link },
        [SND_EV_SAMPLE] = { SONDE_EVENT_SAMPLE, fill_sample },
        [SND_EV_SAMPLE_RUN] = { SONDE_EVENT_SAMPLE, fill_sample },
        [SND_EV_ALLOC] = { SONDE_EVENT_ALLOC, fill_memory },
        [SND_EV_FREE] = { SONDE_EVENT_FREE, fill_memory },
        [SND_EV_FUNCTION] = { SONDE_EVENT_FUNCTION, fill_function },
        [SND_EV_ATTR] = { SONDE_EVENT_ATTR, fill_attr },
        [SND_EV_ATTR64] = { SONDE_EVENT_ATTR, fill_attr64 },
    };
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (!kinds[kind].fill)
        return false;
    *event = (struct sonde_event){ .kind = kinds[kind].shown, .time_ns = ns };
    kinds[kind].fill(event, words);
    if (event->kind == SONDE_EVENT_FUNCTION)
        event->function.duration_ns = function_ns(trace, thread, words);
    if (kind == SND_EV_SAMPLE_RUN) {
        struct snd_sample_times times = snd_sample_times(trace, thread, ns, words);
        event->time_ns = times.end_ns;
        event->sample.covered_ns = (uint64_t)(times.end_ns - times.begin_ns);
    }
    event->thread = snd_subject_thread(trace, thread, words);
    event->process = trace->threads[event->thread].shown.process;
    return true;
}

static void hand_other(void *user, uint32_t thread, int64_t ns, const uint64_t *words)
{
    struct public_walk *walk = user;
    struct sonde_event  event;

    if (snd_event_show(walk->trace, thread, ns, words, &event))
        hand_over(walk, &event, event.thread, event.time_ns);
}

static void hand_device(void *user, uint32_t process, const struct snd_device_work *work)
{
    struct public_walk *walk = user;
    struct sonde_event  event = { .kind = SONDE_EVENT_DEVICE,
                                  .device = { .duration_ns = (uint64_t)work->duration_ns,
                                              .work = work->work,
                                              .queue = work->queue,
                                              .correlation = work->correlation } };

    (void)process; /* the thread's */
    hand_over(walk, &event, work->thread, work->start_ns);
}

enum sonde_status sonde_trace_walk(struct sonde_trace *trace, enum sonde_order order,
                                   sonde_event_fn *function, void *user, struct sonde_error *err)
{
    struct snd_visitor visitor = {
        .begin = hand_begin, .end = hand_end, .other = hand_other, .device = hand_device
    };
    struct public_walk walk = { trace, &visitor, function, user };

    visitor.user = &walk;
    return snd_walk(trace, order, &visitor, NULL, err);
}
