/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of Python functions as slices, on a track beside their thread's.
 *
 * A call is recorded when it returns, after those that it made; who reads the trace puts events in order by time, and leaves
 * those of one time as they stand. A call that begins in the same nanosecond as its caller must be written after it: its begin
 * waits until the caller returns or is known to have begun earlier. Ends are written at once. A call of no length at all waits
 * with its end, which would otherwise come before its begin.
 */
#include <stdlib.h>

#include "base/data/sort.h"
#include "export/perfetto/perfetto.h"
#include "model/torch_stacks.h"

#define WAITING_MAX 4096u /* of a thread; more are written as they came */

struct waiting {
    int64_t  start_ns;
    uint32_t process, frame, id, parent;
    bool     is_empty; /* ends as it begins */
    /* While those of one start are written: the first that lies in it and itself; what is open around it. */
    uint32_t              first, last;
    const struct waiting *outer;
};

/* Calls of a thread that wait: by start; of one start in the order of their returns. */
struct snd_call_track {
    struct waiting *items;
    uint32_t        count, room;
    bool            is_known; /* the track is described */
};

static uint64_t track_of(uint32_t thread)
{
    return snd_perfetto_track(SND_TRACK_CALLS, thread, 0);
}

static void put_end(struct snd_perfetto *p, uint32_t thread, int64_t ns)
{
    snd_perfetto_put_event(p, snd_perfetto_event(p, ns, SND_SLICE_END, track_of(thread)));
}

static void put_begin(struct snd_perfetto *p, uint32_t thread, const struct waiting *call)
{
    struct snd_perfetto_opened opened = snd_perfetto_event(p, call->start_ns, SND_SLICE_BEGIN,
                                                           track_of(thread));

    snd_buf_clear(&p->text);
    snd_function_text(p->trace, call->process, call->frame, &p->text);
    snd_pb_text(&p->packet, SND_EVENT_NAME, (struct sonde_text){ p->text.bytes, p->text.length });
    snd_perfetto_put_event(p, opened);
}

static int compare_calls(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->first, y->first), SND_FALLING(x->last, y->last));
}

/* Of one start, callers first: what a call made returned just before it. */
static void put_group(struct snd_perfetto *p, uint32_t thread, struct waiting *calls,
                      uint32_t count)
{
    const struct waiting *open = NULL; /* the innermost of those without a length */

    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = i;
        while (first > 0 && calls[i].id != 0 && calls[first - 1].parent == calls[i].id)
            first = calls[first - 1].first;
        calls[i].first = first;
        calls[i].last = i;
    }
    snd_sort(calls, count, sizeof *calls, compare_calls);
    for (uint32_t i = 0; i < count; i++) {
        for (; open && calls[i].last > open->last; open = open->outer)
            put_end(p, thread, open->start_ns);
        put_begin(p, thread, &calls[i]);
        calls[i].outer = open;
        if (calls[i].is_empty)
            open = &calls[i];
    }
    for (; open; open = open->outer)
        put_end(p, thread, open->start_ns);
}

/* Those from `first` on, which no caller can begin with any more. */
static void put_from(struct snd_perfetto *p, uint32_t thread, uint32_t first)
{
    struct snd_call_track *calls = &p->calls[thread];

    for (uint32_t at = first, end; at < calls->count; at = end) {
        for (end = at + 1;
             end < calls->count && calls->items[end].start_ns == calls->items[at].start_ns;)
            end++;
        put_group(p, thread, &calls->items[at], end - at);
    }
    calls->count = first;
}

/* The first that begins then or later. */
static uint32_t find_first(const struct snd_call_track *calls, int64_t ns)
{
    uint32_t first = calls->count;

    while (first > 0 && calls->items[first - 1].start_ns >= ns)
        first--;
    return first;
}

/* Whether its caller, which goes on, is known to have begun before it: another call of it did. */
static bool begins_later(const struct snd_call_track *calls, const struct waiting *call)
{
    uint32_t at = find_first(calls, call->start_ns);
    int64_t  before_ns = at > 0 ? calls->items[at - 1].start_ns : 0;

    while (at > 0 && calls->items[at - 1].start_ns == before_ns &&
           calls->items[at - 1].parent != call->parent)
        at--;
    return call->parent == 0 || (at > 0 && calls->items[at - 1].start_ns == before_ns);
}

void snd_perfetto_call(struct snd_perfetto *p, const struct sonde_event *event)
{
    struct snd_call_track *calls = &p->calls[event->thread];
    uint32_t               thread = event->thread;
    int64_t                length = (int64_t)event->function.duration_ns;
    const struct waiting   call = { .start_ns = snd_sub(event->time_ns, length),
                                    .process = event->process,
                                    .frame = event->function.frame,
                                    .id = event->function.id,
                                    .parent = event->function.parent,
                                    .is_empty = length == 0 };

    if (!calls->is_known) {
        calls->is_known = true;
        snd_perfetto_describe(p, track_of(thread), snd_perfetto_track(SND_TRACK_THREAD, thread, 0),
                              (struct sonde_text){ "Python calls", 12 }, false);
    }
    put_from(p, thread,
             calls->count < WAITING_MAX ? find_first(calls, snd_add(call.start_ns, 1)) : 0);
    bool is_alone = begins_later(calls, &call);
    if (!snd_grow(&calls->items, &calls->room, calls->count, sizeof *calls->items)) {
        p->failed = true;
        return;
    }
    calls->items[calls->count++] = call;
    if (is_alone)
        put_from(p, thread, find_first(calls, call.start_ns));
    if (!call.is_empty)
        put_end(p, thread, event->time_ns);
}

void snd_perfetto_finish_calls(struct snd_perfetto *p)
{
    for (uint32_t i = 0; i < sonde_trace_thread_count(p->trace); i++)
        put_from(p, i, 0);
}

bool snd_perfetto_make_calls(struct snd_perfetto *p)
{
    p->calls = calloc((size_t)sonde_trace_thread_count(p->trace) + 1, sizeof *p->calls);
    return p->calls != NULL;
}

void snd_perfetto_free_calls(struct snd_perfetto *p)
{
    for (uint32_t i = 0; p->calls && i < sonde_trace_thread_count(p->trace); i++)
        free(p->calls[i].items);
    free(p->calls);
}
