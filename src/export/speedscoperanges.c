/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speedscope's "evented" profiles: begins and ends of ranges. They must nest: where a range ends
 * before what lies in it, that is closed and opened again.
 */
#include <stdlib.h>
#include <string.h>

#include "export/speedscope.h"
#include "format/layout.h"
#include "read/reader.h"

struct event {
    int64_t  at_ns;
    uint32_t frame;
    uint32_t next; /* of the same thread, plus one; 0: none */
    bool     closes;
};

#define INNER_MAX 1024u /* open ranges inside one that ends before them; more is no program's */
#define REOPENED_MAX (1u << 20) /* in all: each makes two events of none */

struct open_range {
    uint64_t key;   /* by which it may be ended; 0 none */
    uint32_t event; /* that opened it */
};

/* What is open on a thread, and its events so far. */
struct thread {
    struct open_range *open;
    uint32_t           depth, room;
    uint32_t           first, last; /* event, plus one */
    int64_t            start_ns, end_ns;
};

struct ranges {
    struct snd_speedscope common;
    struct thread        *threads;
    struct event         *events;
    uint32_t              count, room;
    uint32_t              reopened; /* ranges, so far */
    struct snd_map        keys;     /* (process, key) to a thread */
    bool                  failed;
};

static uint32_t add_event(struct ranges *r, struct thread *t, int64_t ns, uint32_t frame,
                          bool closes)
{
    if (!snd_grow(&r->events, &r->room, r->count, sizeof *r->events)) {
        r->failed = true;
        return 0;
    }
    if (t->last == 0)
        t->start_ns = ns;
    else if (ns < t->end_ns)
        ns = t->end_ns; /* times of a thread never fall */
    t->end_ns = ns;
    uint32_t at = r->count++;
    r->events[at] = (struct event){ ns, frame, 0, closes };
    if (t->last != 0)
        r->events[t->last - 1].next = at + 1;
    else
        t->first = at + 1;
    t->last = at + 1;
    return at;
}

static void open_range(struct ranges *r, struct thread *t, int64_t ns, uint32_t frame)
{
    uint32_t at = add_event(r, t, ns, frame, false);

    if (r->failed || !snd_grow(&t->open, &t->room, t->depth, sizeof *t->open)) {
        r->failed = true;
        return;
    }
    t->open[t->depth++] = (struct open_range){ 0, at };
}

/* Closes the range inside which `inner` others are open; those go on. */
static void close_range(struct ranges *r, struct thread *t, int64_t ns, uint64_t inner)
{
    if (inner >= t->depth || inner > INNER_MAX || inner > REOPENED_MAX - r->reopened)
        return;
    r->reopened += (uint32_t)inner;
    uint32_t place = t->depth - 1 - (uint32_t)inner;
    for (uint32_t i = t->depth; i-- > place;)
        add_event(r, t, ns, r->events[t->open[i].event].frame, true);
    for (uint32_t i = place + 1; i < t->depth && !r->failed; i++)
        t->open[i - 1] = (struct open_range){
            t->open[i].key, add_event(r, t, ns, r->events[t->open[i].event].frame, false)
        };
    t->depth--;
}

/* The range may be another thread's. */
static void close_key(struct ranges *r, const struct sonde_event *event)
{
    struct snd_key key = { event->process, event->value, 0 };
    uint32_t       thread;

    if (!snd_map_get(&r->keys, key, &thread))
        return;
    struct thread *t = &r->threads[thread];
    for (uint32_t inner = 0; inner < t->depth && inner <= INNER_MAX; inner++) {
        if (t->open[t->depth - 1 - inner].key == event->value) {
            close_range(r, t, event->time_ns, inner);
            break;
        }
    }
    snd_map_remove(&r->keys, key);
}

static void tell_key(struct ranges *r, struct thread *t, const struct sonde_event *event)
{
    if (t->depth == 0 || event->value == 0 || t->open[t->depth - 1].key != 0)
        return;
    t->open[t->depth - 1].key = event->value;
    r->failed |= !snd_map_put(&r->keys, (struct snd_key){ event->process, event->value, 0 },
                              event->thread);
}

/* A Python function has its file and line; they come after its begin. */
static void tell_frame(struct ranges *r, const struct thread *t, const struct sonde_event *event)
{
    struct sonde_frame frame;

    if (t->depth == 0 ||
        !sonde_trace_frame(r->common.trace, event->process, (uint32_t)event->value, &frame))
        return;
    r->events[t->open[t->depth - 1].event].frame =
        snd_speedscope_frame(&r->common, frame.function, frame.file,
                             frame.first_line ? frame.first_line : frame.line);
}

static bool on_event(const struct sonde_event *event, void *user)
{
    struct ranges *r = user;
    struct thread *t = &r->threads[event->thread];

    switch (event->kind) {
    case SONDE_EVENT_BEGIN:
        open_range(r, t, event->time_ns,
                   snd_speedscope_frame(&r->common,
                                        sonde_trace_string(r->common.trace, event->process,
                                                           event->name),
                                        (struct sonde_text){ "", 0 }, 0));
        break;
    case SONDE_EVENT_ATTR:
        if (event->aux == SND_ATTR_FRAME)
            tell_frame(r, t, event);
        else if (event->aux == SND_ATTR_KEY)
            tell_key(r, t, event);
        break;
    case SONDE_EVENT_END_KEY:
        close_key(r, event);
        break;
    case SONDE_EVENT_END:
        close_range(r, t, event->time_ns, 0);
        break;
    case SONDE_EVENT_END_AT:
        close_range(r, t, event->time_ns, event->aux);
        break;
    case SONDE_EVENT_GAP:
        for (uint64_t ends = event->aux == SND_GAP_ALL ? UINT64_MAX : event->aux;
             ends > 0 && t->depth > 0 && !r->failed; ends--)
            close_range(r, t, event->time_ns, 0);
        break;
    default:
        break;
    }
    return !r->failed && !r->common.failed;
}

static void put_thread(struct ranges *r, struct snd_json *json, uint32_t index)
{
    const struct thread *t = &r->threads[index];

    snd_speedscope_profile(&r->common, json, index, "evented", t->end_ns - t->start_ns);
    snd_json_array(json, "events");
    for (uint32_t i = t->first; i != 0; i = r->events[i - 1].next) {
        const struct event *e = &r->events[i - 1];
        snd_json_object(json, NULL);
        snd_json_text(json, "type", e->closes ? "C" : "O");
        snd_json_uint(json, "frame", e->frame);
        snd_json_int(json, "at", e->at_ns - t->start_ns);
        snd_json_end(json);
    }
    snd_json_end(json);
    snd_json_end(json);
}

static void put_all(struct ranges *r, struct snd_out *out)
{
    struct snd_json json;

    snd_json_init(&json, out);
    snd_json_break_at(&json, 2);
    snd_speedscope_begin(&r->common, &json);
    for (uint32_t i = 0; i < r->common.trace->thread_count; i++)
        if (r->threads[i].first != 0)
            put_thread(r, &json, i);
    snd_json_end(&json);
    snd_json_end(&json);
}

enum sonde_status snd_speedscope_ranges(struct sonde_trace *trace, struct snd_out *out,
                                        struct sonde_error *err)
{
    struct ranges     r = { .common = { .trace = trace } };
    enum sonde_status st = SONDE_OK;

    r.threads = calloc((size_t)trace->thread_count + 1, sizeof *r.threads);
    r.failed = !r.threads;
    if (!r.failed)
        st = sonde_trace_walk(trace, SONDE_BY_TIME, on_event, &r, err);
    for (uint32_t i = 0; st == SONDE_OK && !r.failed && i < trace->thread_count; i++)
        while (r.threads[i].depth > 0 && !r.failed)
            close_range(&r, &r.threads[i], r.threads[i].end_ns, 0);
    if (st == SONDE_OK && (r.failed || r.common.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the ranges");
    if (st == SONDE_OK)
        put_all(&r, out);
    for (uint32_t i = 0; r.threads && i < trace->thread_count; i++)
        free(r.threads[i].open);
    free(r.threads);
    free(r.events);
    snd_map_release(&r.keys);
    snd_speedscope_release(&r.common);
    return st;
}
