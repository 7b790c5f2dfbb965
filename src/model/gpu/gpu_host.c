/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpu/gpu_host.c - what the host did while a GPU had nothing to do.
 *
 * While the trace is walked, each thread's time is divided among its innermost ranges, as far as it lies in
 * a gap of a GPU whose next work has not been asked for yet. Of a gap in which the host was late, that is
 * the time from its begin to the launch: on the thread that launched, the range, and call of the API, with most of
 * it is where the host was. Where calls of Python functions were recorded, the innermost that ran for more than
 * half of that time is known, too. If the host waited for the GPU as the gap began, the time is that after the wait.
 */
#include <stdlib.h>

#include "model/gpu/gpu.h"

#define NO_GAP UINT32_MAX

/* A gap, and the call that ends it once that has been met. */
struct watched {
    bool     is_asked;
    uint32_t thread;
    int64_t  asked_ns;
    int64_t function_ns; /* the shortest call of a Python function in most of the time up to then */
    uint32_t frame;      /* 0: none */
};

/* A call of a Python function that returned before the work after the gap was launched. */
struct early {
    uint32_t gap, thread, frame;
    int64_t  start_ns, end_ns;
};

struct part {
    uint32_t gap, thread, where, call;
    int64_t  ns;
};

struct snd_gpu_host {
    struct snd_gpu           *g;
    const struct snd_devices *work;
    struct watched           *gaps;   /* of each gap */
    uint32_t                 *gap_of; /* of each item of `work`: the gap that it ends, or NO_GAP */
    uint32_t                 *first;  /* gap of each device, and one more */
    uint32_t                 *next;   /* by thread and device: the first gap that may not be over */
    int64_t                  *seen_ns; /* of each thread: its time is divided up to there */
    struct snd_map            by_part;
    struct part              *parts;
    uint32_t                  part_count, part_room;
    struct early             *early;
    uint32_t                  early_count, early_room;
};

static void give_up(struct snd_gpu_host *h)
{
    snd_assembly_stop(h->g->assembly);
}

static void add_part(struct snd_gpu_host *h, const struct part *part)
{
    struct snd_key key = { SND_PAIR(part->gap, part->thread), SND_PAIR(part->where, part->call),
                           0 };
    uint32_t       at;

    if (!snd_map_get(&h->by_part, key, &at)) {
        if (!snd_grow(&h->parts, &h->part_room, h->part_count, sizeof *h->parts) ||
            !snd_map_put(&h->by_part, key, h->part_count)) {
            give_up(h);
            return;
        }
        at = h->part_count++;
        h->parts[at] = *part;
        return;
    }
    h->parts[at].ns = snd_add(h->parts[at].ns, part->ns);
}

static int64_t end_of(const struct snd_gpu_gap *gap)
{
    return snd_add(gap->start_ns, gap->duration_ns);
}

/* A stretch of a thread's time, and the ranges in which it was all that time; NULL: in none. */
struct stretch {
    int64_t                      from, until;
    const struct snd_lane       *lane;
    const struct snd_open_range *innermost, *caller;
};

static void divide(struct snd_gpu_host *h, const struct stretch *s, uint32_t device)
{
    const struct snd_gpu *g = h->g;
    uint32_t              thread = s->lane->thread, end = h->first[device + 1];
    uint32_t             *next = &h->next[(size_t)thread * g->device_count + device];
    struct part           part = { .thread = thread, .where = UINT32_MAX, .call = SONDE_NONE };

    if (s->innermost && s->innermost->range.api)
        part.call = s->innermost->range.name;
    while (*next < end && end_of(&g->gaps[*next]) <= s->from)
        ++*next;
    for (uint32_t i = *next; i < end && g->gaps[i].start_ns < s->until; i++) {
        int64_t start = g->gaps[i].start_ns, stop = end_of(&g->gaps[i]);
        if (h->gaps[i].is_asked)
            continue;
        if (part.where == UINT32_MAX)
            part.where = snd_where_now(h->g->launches, s->lane, s->caller);
        if (part.where == UINT32_MAX) {
            give_up(h);
            return;
        }
        part.gap = i;
        part.ns = snd_sub(s->until < stop ? s->until : stop, s->from > start ? s->from : start);
        add_part(h, &part);
    }
}

/* The thread was there since its last event. */
static void was_in(struct snd_gpu_host *h, struct stretch s)
{
    int64_t *seen = &h->seen_ns[s.lane->thread];

    s.from = *seen;
    if (s.until <= s.from)
        return;
    *seen = s.until;
    for (uint32_t i = 0; i < h->g->device_count; i++)
        if (h->g->devices[i].process == s.lane->process)
            divide(h, &s, i);
}

void snd_gpu_host_opened(struct snd_gpu_host *h, struct snd_lane *lane,
                         const struct snd_open_range *range, const struct snd_open_range *parent)
{
    lane->depth--; /* until now it was not there */
    was_in(h, (struct stretch){ .until = range->range.start_ns,
                                .lane = lane,
                                .innermost = parent,
                                .caller = snd_where_caller(lane) });
    lane->depth++;
}

void snd_gpu_host_closed(struct snd_gpu_host *h, const struct snd_lane *lane,
                         const struct snd_open_range *range)
{
    const struct snd_range *r = &range->range;

    if (!r->is_async)
        was_in(h, (struct stretch){ .until = snd_add(r->start_ns, r->total_ns),
                                    .lane = lane,
                                    .innermost = range,
                                    .caller = r->api ? snd_where_caller(lane) : range });
}

/* Whatever it asks for ends gaps: what the host does from now on is not why they are. */
void snd_gpu_host_called(struct snd_gpu_host *h, const struct snd_lane *lane,
                         const struct snd_range *call)
{
    uint32_t                      count, correlation = SND_API_CORRELATION(call->api);
    const struct snd_device_item *items = snd_devices_of(h->work, lane->process, correlation,
                                                         &count);

    for (uint32_t i = 0; correlation != 0 && i < count; i++) {
        uint32_t gap = h->gap_of[items + i - h->work->items];
        if (gap != NO_GAP && !h->gaps[gap].is_asked)
            h->gaps[gap] = (struct watched){ .is_asked = true,
                                             .thread = lane->thread,
                                             .asked_ns = call->start_ns };
    }
}

/* The first gap of a device that begins at that moment or later. */
static uint32_t find_gap(const struct snd_gpu_host *h, uint32_t device, int64_t ns)
{
    uint32_t low = h->first[device], high = h->first[device + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->g->gaps[middle].start_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether it has more than half of an interval; calls of one thread that have are nested. */
static bool has_most(const struct early *function, int64_t from, int64_t until)
{
    int64_t start = function->start_ns > from ? function->start_ns : from;
    int64_t end = function->end_ns < until ? function->end_ns : until;

    return end > start && snd_sub(end, start) > snd_sub(until, from) / 2;
}

static void choose_function(struct watched *gap, const struct early *function)
{
    int64_t ns = snd_sub(function->end_ns, function->start_ns);

    if (gap->frame == 0 || ns < gap->function_ns) {
        gap->function_ns = ns;
        gap->frame = function->frame;
    }
}

/* Of a gap that nothing has ended yet it is not known how long it will be: those that may count. */
static void keep_function(struct snd_gpu_host *h, const struct early *function)
{
    struct watched           *gap = &h->gaps[function->gap];
    const struct snd_gpu_gap *seen = &h->g->gaps[function->gap];

    if (gap->is_asked) {
        if (gap->thread == function->thread && has_most(function, seen->start_ns, gap->asked_ns))
            choose_function(gap, function);
    } else if (function->end_ns < end_of(seen) &&
               has_most(function, seen->start_ns, function->end_ns)) {
        if (snd_grow(&h->early, &h->early_room, h->early_count, sizeof *h->early))
            h->early[h->early_count++] = *function;
        else
            give_up(h);
    }
}

void snd_gpu_host_event(struct snd_gpu_host *h, const struct snd_lane *lane, int64_t ns,
                        const uint64_t *words)
{
    const struct snd_gpu *g = h->g;
    struct sonde_event    event;

    if (SND_EVENT_KIND(words[0]) != SND_EV_FUNCTION ||
        !snd_event_show(g->trace, lane->thread, ns, words, &event) ||
        event.function.duration_ns > (uint64_t)INT64_MAX)
        return;
    struct early function = { .thread = snd_subject_thread(g->trace, lane->thread, words),
                              .frame = event.function.frame,
                              .start_ns = snd_sub(ns, (int64_t)event.function.duration_ns),
                              .end_ns = ns };
    for (uint32_t d = 0; d < g->device_count; d++) {
        if (g->devices[d].process != lane->process)
            continue;
        uint32_t i = find_gap(h, d, function.start_ns);
        i -= i > h->first[d]; /* the one before may not be over: they do not overlap */
        for (; i < h->first[d + 1] && g->gaps[i].start_ns < ns; i++) {
            function.gap = i;
            keep_function(h, &function);
        }
    }
}

/* The wait in which the gap began, as far as it is in the gap; NULL: it began in none. */
static const struct snd_launch *find_wait(const struct snd_gpu *g, const struct snd_gpu_gap *gap,
                                          int64_t *waited_ns)
{
    const struct snd_launch *wait = gap->wait != SONDE_NONE ? &g->launches->items[gap->wait] : NULL;

    *waited_ns = wait ? snd_sub(wait->end_ns, gap->start_ns) : 0;
    return wait;
}

/* A part's time after the wait: the wait's own place has less of it. */
static int64_t late_ns(const struct snd_gpu *g, const struct part *part)
{
    int64_t                  waited_ns;
    const struct snd_launch *wait = find_wait(g, &g->gaps[part->gap], &waited_ns);

    return wait && wait->where == part->where && wait->name == part->call
               ? snd_sub(part->ns, waited_ns)
               : part->ns;
}

static void choose_early(struct snd_gpu_host *h)
{
    for (uint32_t i = 0; i < h->early_count; i++) {
        const struct snd_gpu_gap *gap = &h->g->gaps[h->early[i].gap];
        int64_t                   waited_ns;
        find_wait(h->g, gap, &waited_ns);
        if (gap->reason == SND_IDLE_HOST && gap->thread == h->early[i].thread &&
            has_most(&h->early[i], snd_add(gap->start_ns, waited_ns), gap->launched_ns))
            choose_function(&h->gaps[h->early[i].gap], &h->early[i]);
    }
}

/* The place with most of the time; of two alike the first. */
bool snd_gpu_host_choose(struct snd_gpu_host *h)
{
    struct snd_gpu *g = h->g;
    int64_t        *most = calloc((size_t)g->gap_count + 1, sizeof *most);

    for (uint32_t i = 0; most && i < h->part_count; i++) {
        const struct part  *part = &h->parts[i];
        struct snd_gpu_gap *gap = &g->gaps[part->gap];
        int64_t             ns = late_ns(g, part);
        if (gap->reason != SND_IDLE_HOST || gap->thread != part->thread || ns <= most[part->gap])
            continue;
        most[part->gap] = ns;
        gap->where = part->where;
        gap->call = part->call;
    }
    choose_early(h);
    for (uint32_t i = 0; i < g->gap_count; i++) {
        struct snd_gpu_gap *gap = &g->gaps[i];
        if (gap->reason == SND_IDLE_HOST && gap->thread == h->gaps[i].thread &&
            (gap->where == SONDE_NONE || g->launches->places[gap->where].stack == 0))
            gap->frame = h->gaps[i].frame;
    }
    bool chosen = most != NULL;
    free(most);
    return chosen;
}

/* ----------------------------------------------------------------------- life */

static bool allocate(struct snd_gpu_host *h)
{
    const struct snd_gpu *g = h->g;
    size_t                threads = g->trace->thread_count;

    h->gaps = calloc((size_t)g->gap_count + 1, sizeof *h->gaps);
    h->gap_of = malloc(((size_t)h->work->count + 1) * sizeof *h->gap_of);
    h->first = calloc((size_t)g->device_count + 2, sizeof *h->first);
    h->next = calloc(threads * g->device_count + 1, sizeof *h->next);
    h->seen_ns = calloc(threads + 1, sizeof *h->seen_ns);
    return h->gaps && h->gap_of && h->first && h->next && h->seen_ns;
}

struct snd_gpu_host *snd_gpu_host_new(struct snd_gpu *g, const struct snd_devices *work)
{
    struct snd_gpu_host *h = calloc(1, sizeof *h);
    uint32_t             device = 0;

    if (!h)
        return NULL;
    h->g = g;
    h->work = work;
    if (!allocate(h)) {
        snd_gpu_host_free(h);
        return NULL;
    }
    for (uint32_t i = 0; i < work->count; i++)
        h->gap_of[i] = NO_GAP;
    for (uint32_t i = 0; i < g->gap_count; i++) {
        h->gap_of[g->gaps[i].item] = i;
        while (device <= g->gaps[i].device)
            h->first[device++] = i;
    }
    while (device <= g->device_count)
        h->first[device++] = g->gap_count;
    for (uint32_t i = 0; i < g->trace->thread_count; i++) {
        h->seen_ns[i] = INT64_MIN;
        for (uint32_t d = 0; d < g->device_count; d++)
            h->next[(size_t)i * g->device_count + d] = h->first[d];
    }
    return h;
}

void snd_gpu_host_free(struct snd_gpu_host *h)
{
    if (!h)
        return;
    free(h->gaps);
    free(h->gap_of);
    free(h->first);
    free(h->next);
    free(h->seen_ns);
    free(h->parts);
    free(h->early);
    snd_map_release(&h->by_part);
    free(h);
}
