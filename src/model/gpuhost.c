/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpuhost.c - what the host did while a GPU had nothing to do.
 *
 * One walk, in which each thread's time is divided among its innermost ranges. Of a gap in which the
 * host was late, the time from its begin to the next launch is looked at, on the thread that launched:
 * the range, and call of the API, that had most of it is where the host was. Where calls of Python
 * functions were recorded, the innermost that ran all that time is known, too.
 */
#include <stdlib.h>

#include "model/gpu.h"

/* The part of a gap in which the host had not asked for more work. */
struct window {
    int64_t  start_ns, end_ns;
    uint32_t thread, gap;
};

struct part {
    uint32_t gap, where, call;
    int64_t  ns;
};

/* The shortest call of a Python function around a window. */
struct around {
    uint64_t ns;
    uint32_t frame; /* 0: none */
};

struct watcher {
    struct snd_gpu     *g;
    struct window      *windows; /* by thread and start */
    uint32_t            window_count, window_room;
    struct around      *functions; /* of each window */
    uint32_t           *next;      /* of each thread: the first that may not be over */
    int64_t            *seen_ns;   /* of each thread: its time is divided up to there */
    struct snd_map      by_part;
    struct part        *parts;
    uint32_t            part_count, part_room;
    struct snd_assembly assembly;
};

static void give_up(struct watcher *w)
{
    snd_assembly_stop(&w->assembly);
}

static void add_part(struct watcher *w, uint32_t gap, uint32_t where, uint32_t call, int64_t ns)
{
    struct snd_key key = { gap, SND_PAIR(where, call), 0 };
    uint32_t       at;

    if (!snd_map_get(&w->by_part, key, &at)) {
        if (!snd_grow(&w->parts, &w->part_room, w->part_count, sizeof *w->parts) ||
            !snd_map_put(&w->by_part, key, w->part_count)) {
            give_up(w);
            return;
        }
        at = w->part_count++;
        w->parts[at] = (struct part){ gap, where, call, 0 };
    }
    w->parts[at].ns = snd_add(w->parts[at].ns, ns);
}

/* The thread was in `innermost` (or in none) since its last event. */
static void divide(struct watcher *w, const struct snd_lane *lane,
                   const struct snd_open_range *innermost, const struct snd_open_range *caller,
                   int64_t until)
{
    int64_t   from = w->seen_ns[lane->thread];
    uint32_t *next = &w->next[lane->thread], where = UINT32_MAX;
    uint32_t  call = innermost && innermost->range.api ? innermost->range.name : SONDE_NONE;

    if (until <= from)
        return;
    w->seen_ns[lane->thread] = until;
    while (*next < w->window_count && w->windows[*next].thread == lane->thread &&
           w->windows[*next].end_ns <= from)
        ++*next;
    for (uint32_t i = *next; i < w->window_count && w->windows[i].thread == lane->thread &&
                             w->windows[i].start_ns < until;
         i++) {
        const struct window *window = &w->windows[i];
        int64_t              start = from > window->start_ns ? from : window->start_ns;
        int64_t              end = until < window->end_ns ? until : window->end_ns;
        if (start >= end)
            continue;
        if (where == UINT32_MAX)
            where = snd_where_now(&w->g->launches, lane, caller);
        if (where == UINT32_MAX) {
            give_up(w);
            return;
        }
        add_part(w, window->gap, where, call, snd_sub(end, start));
    }
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct watcher *w = user;

    snd_where_inherit(range, parent);
    lane->depth--; /* until now it was not there */
    divide(w, lane, parent, snd_where_caller(lane), range->range.start_ns);
    lane->depth++;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct watcher   *w = user;
    struct snd_range *r = &range->range;

    (void)parent;
    if (!r->is_async)
        divide(w, lane, range, r->api ? snd_where_caller(lane) : range,
               snd_add(r->start_ns, r->total_ns));
}

/* The first window of a thread that begins at that moment or later. */
static uint32_t find_window(const struct watcher *w, uint32_t thread, int64_t ns)
{
    uint32_t low = 0, high = w->window_count;

    while (low < high) {
        uint32_t             middle = low + (high - low) / 2;
        const struct window *window = &w->windows[middle];
        if (window->thread < thread || (window->thread == thread && window->start_ns < ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct watcher    *w = user;
    struct sonde_event event;

    if (SND_EVENT_KIND(words[0]) != SND_EV_FUNCTION ||
        !snd_event_show(w->g->trace, lane->thread, ns, words, &event) ||
        event.size > (uint64_t)INT64_MAX)
        return;
    uint32_t thread = snd_subject_thread(w->g->trace, lane->thread, words);
    for (uint32_t i = find_window(w, thread, snd_sub(ns, (int64_t)event.size));
         i < w->window_count && w->windows[i].thread == thread && w->windows[i].start_ns < ns; i++)
        if (w->windows[i].end_ns <= ns &&
            (w->functions[i].frame == 0 || event.size < w->functions[i].ns))
            w->functions[i] = (struct around){ event.size, event.name };
}

static int compare_window(const void *x, const void *y)
{
    const struct window *a = x, *b = y;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->gap > b->gap) - (a->gap < b->gap);
}

static bool prepare(struct watcher *w)
{
    uint32_t threads = w->g->trace->thread_count, thread = 0;

    w->next = calloc((size_t)threads + 1, sizeof *w->next);
    w->seen_ns = calloc((size_t)threads + 1, sizeof *w->seen_ns);
    if (!w->next || !w->seen_ns)
        return false;
    for (uint32_t i = 0; i < threads; i++)
        w->seen_ns[i] = INT64_MIN;
    for (uint32_t i = 0; i < w->g->gap_count; i++) {
        const struct snd_gpu_gap *gap = &w->g->gaps[i];
        if (gap->reason != SND_IDLE_HOST)
            continue;
        if (!snd_grow(&w->windows, &w->window_room, w->window_count, sizeof *w->windows))
            return false;
        w->windows[w->window_count++] = (struct window){ gap->start_ns, gap->launched_ns,
                                                         gap->thread, i };
    }
    if (w->window_count > 0)
        qsort(w->windows, w->window_count, sizeof *w->windows, compare_window);
    w->functions = calloc((size_t)w->window_count + 1, sizeof *w->functions);
    if (!w->functions)
        return false;
    for (uint32_t i = 0; i < w->window_count; i++)
        while (thread <= w->windows[i].thread)
            w->next[thread++] = i;
    while (thread < threads)
        w->next[thread++] = w->window_count;
    return true;
}

/* The place with most of the time; of two alike the first. */
static bool choose(struct watcher *w)
{
    int64_t *most = calloc((size_t)w->g->gap_count + 1, sizeof *most);

    for (uint32_t i = 0; most && i < w->part_count; i++) {
        const struct part  *part = &w->parts[i];
        struct snd_gpu_gap *gap = &w->g->gaps[part->gap];
        if (part->ns <= most[part->gap])
            continue;
        most[part->gap] = part->ns;
        gap->where = part->where;
        gap->call = part->call;
    }
    for (uint32_t i = 0; i < w->window_count; i++) {
        struct snd_gpu_gap *gap = &w->g->gaps[w->windows[i].gap];
        if (gap->where == SONDE_NONE || w->g->launches.places[gap->where].stack == 0)
            gap->frame = w->functions[i].frame;
    }
    bool chosen = most != NULL;
    free(most);
    return chosen;
}

enum sonde_status snd_gpu_find_host(struct snd_gpu *gpu, struct sonde_error *err)
{
    struct watcher            w = { .g = gpu };
    const struct snd_consumer consumer = {
        .user = &w, .flops = SONDE_FLOPS_NONE, .open = on_open, .close = on_close, .other = on_other
    };
    enum sonde_status status = SONDE_OK;

    bool ready = prepare(&w);
    if (ready && w.window_count > 0) {
        status = snd_assemble(&w.assembly, gpu->trace, SONDE_BY_TIME, &consumer, err);
        snd_assembly_release(&w.assembly);
        ready = status != SONDE_OK || choose(&w);
    }
    if (!ready)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the GPUs of the trace");
    free(w.windows);
    free(w.functions);
    free(w.next);
    free(w.seen_ns);
    free(w.parts);
    snd_map_release(&w.by_part);
    return status;
}
