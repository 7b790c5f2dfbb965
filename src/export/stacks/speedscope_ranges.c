/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speedscope's "evented" profiles: begins and ends of ranges. They must nest: where a range ends
 * before its children, they are closed and opened again.
 */
#include <stdlib.h>

#include "export/stacks/speedscope.h"
#include "export/timeline/gpu_streams.h"
#include "model/ranges/assembly.h"

struct event {
    int64_t  at_ns;
    uint32_t frame;
    uint32_t next; /* of the same thread, plus one; 0: none */
    bool     closes;
};

#define REOPENED_MAX (1u << 20) /* in all: each adds two events */
#define NOT_SHOWN UINT32_MAX    /* an open range that is not open in the profile */

/* A thread's events so far. */
struct thread {
    uint32_t first, last; /* event, plus one */
    int64_t  start_ns, end_ns;
};

struct ranges {
    struct snd_speedscope common;
    struct snd_assembly   assembly;
    struct thread        *threads;
    struct event         *events;
    uint32_t              count, room;
    uint32_t              reopened; /* ranges, so far */
};

static uint32_t add_event(struct ranges *r, struct thread *t, int64_t ns, uint32_t frame,
                          bool closes)
{
    if (!snd_grow(&r->events, &r->room, r->count, sizeof *r->events)) {
        snd_assembly_stop(&r->assembly);
        return NOT_SHOWN;
    }
    if (t->last == 0)
        t->start_ns = ns;
    else if (ns < t->end_ns)
        ns = t->end_ns; /* timestamps of a thread never run backwards */
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

static uint32_t name_frame(struct ranges *r, uint32_t number)
{
    const struct snd_text *name = &r->common.trace->names.items[number];

    return snd_speedscope_frame(&r->common, (struct sonde_text){ name->bytes, name->length },
                                (struct sonde_text){ "", 0 }, 0);
}

/* The name; a Python function has its file and line, which come after its begin. */
static uint32_t frame_of(struct ranges *r, const struct snd_lane *lane,
                         const struct snd_open_range *open)
{
    struct sonde_frame frame;

    if (open->range.frame != 0 &&
        sonde_trace_frame(r->common.trace, lane->process, (uint32_t)open->range.frame, &frame))
        return snd_speedscope_frame(&r->common, frame.function, frame.file,
                                    frame.first_line ? frame.first_line : frame.line);
    return name_frame(r, open->range.name);
}

/* `mark` is the event that opened the range. */
static void show_open(struct ranges *r, const struct snd_lane *lane, struct snd_open_range *open,
                      int64_t ns)
{
    open->mark = add_event(r, &r->threads[lane->thread], ns, frame_of(r, lane, open), false);
}

static void show_close(struct ranges *r, const struct snd_lane *lane, struct snd_open_range *open,
                       int64_t ns)
{
    if (open->mark == NOT_SHOWN)
        return;
    add_event(r, &r->threads[lane->thread], ns, r->events[open->mark].frame, true);
    open->mark = NOT_SHOWN;
}

static void stop_if_failed(struct ranges *r)
{
    if (r->common.failed)
        snd_assembly_stop(&r->assembly);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *open,
                    struct snd_open_range *parent)
{
    (void)parent;
    show_open(user, lane, open, open->range.start_ns);
    stop_if_failed(user);
}

/* Calls of one record have one frame, which is their kind. */
static uint32_t frame_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct ranges *r = user;

    (void)lane;
    uint32_t frame = name_frame(r, shared->name);
    return r->common.failed ? UINT32_MAX : frame;
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct ranges *r = user;
    struct thread *t = &r->threads[lane->thread];

    (void)known, (void)above, (void)parent;
    if (add_event(r, t, leaf->start_ns, kind, false) != NOT_SHOWN)
        add_event(r, t, leaf->end_ns, kind, true);
}

static void on_attribute(void *user, struct snd_lane *lane, struct snd_open_range *open,
                         uint8_t key)
{
    struct ranges *r = user;

    if (key == SND_ATTR_FRAME && open->mark != NOT_SHOWN)
        r->events[open->mark].frame = frame_of(r, lane, open);
    stop_if_failed(r);
}

/* Those inside the range that stay open are closed and opened again, up to a limit. */
static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *open,
                     struct snd_open_range *parent)
{
    struct ranges *r = user;
    int64_t        ns = snd_add(open->range.start_ns, open->range.total_ns);
    uint32_t       inner = lane->depth - open->place;

    (void)parent;
    for (uint32_t i = lane->depth; i-- > open->place;)
        show_close(r, lane, &lane->open[i], ns);
    show_close(r, lane, open, ns);
    if (inner > 0 && inner <= REOPENED_MAX - r->reopened) {
        r->reopened += inner;
        for (uint32_t i = open->place; i < lane->depth; i++)
            show_open(r, lane, &lane->open[i], ns);
    }
    stop_if_failed(r);
}

/* In place: the file is little else. */
static void put_event(struct snd_json *json, const struct event *e, int64_t start_ns)
{
    static const char head[] = "{\"type\":\"O\",\"frame\":", at[] = ",\"at\":";
    char             *to = snd_json_lead(json, sizeof head + sizeof at + 2 * SND_INT_BYTES);

    memcpy(to, head, sizeof head);
    to[sizeof "{\"type\":\"" - 1] = e->closes ? 'C' : 'O';
    to = snd_put_int(to + sizeof head - 1, e->frame);
    memcpy(to, at, sizeof at);
    to = snd_put_int(to + sizeof at - 1, e->at_ns - start_ns);
    *to++ = '}';
    json->out->at = to;
}

static void put_thread(struct ranges *r, struct snd_json *json, uint32_t index)
{
    const struct thread *t = &r->threads[index];

    snd_speedscope_profile(&r->common, json, index, "evented", t->end_ns - t->start_ns);
    snd_json_array(json, "events");
    for (uint32_t i = t->first; i != 0; i = r->events[i - 1].next)
        put_event(json, &r->events[i - 1], t->start_ns);
    snd_json_end(json);
    snd_json_end(json);
}

static void put_all(struct ranges *r, const struct snd_devices *devices, struct snd_out *out)
{
    struct snd_json json;

    snd_json_init(&json, out);
    snd_json_break_at(&json, 2);
    snd_speedscope_begin(&r->common, &json);
    for (uint32_t i = 0; i < r->common.trace->thread_count; i++)
        if (r->threads[i].first != 0)
            put_thread(r, &json, i);
    snd_speedscope_put_work(&r->common, devices, &json);
    snd_json_end(&json);
    snd_json_end(&json);
}

enum sonde_status snd_speedscope_ranges(struct sonde_trace *trace, struct snd_out *out,
                                        struct sonde_error *err)
{
    struct ranges             r = { .common = { .trace = trace } };
    const struct snd_consumer consumer = { .user = &r,
                                           .flops = SONDE_FLOPS_NONE,
                                           .as_recorded = true,
                                           .open = on_open,
                                           .close = on_close,
                                           .attribute = on_attribute,
                                           .kind = frame_kind,
                                           .leaf = on_leaf };
    enum sonde_status         st = SONDE_OK;

    r.threads = calloc((size_t)trace->thread_count + 1, sizeof *r.threads);
    if (!r.threads)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    st = snd_assemble(&r.assembly, trace, SONDE_BY_TIME, &consumer, 1, err);
    snd_assembly_release(&r.assembly);
    const struct snd_devices *devices = NULL;
    if (st == SONDE_OK)
        st = snd_trace_devices_by_time(trace, &devices, err);
    snd_speedscope_add_work(&r.common, devices);
    if (st == SONDE_OK && !r.common.failed)
        put_all(&r, devices, out);
    if (st == SONDE_OK && r.common.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    free(r.threads);
    free(r.events);
    snd_speedscope_release(&r.common);
    return st;
}
