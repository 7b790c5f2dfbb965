/* SPDX-License-Identifier: Apache-2.0 */
/* What is not a range in Perfetto's trace format: marks, counters, memory, arrows, samples, GPUs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "export/common/exporter.h"
#include "export/perfetto/perfetto.h"
#include "export/timeline/gpu_streams.h"
#include "format/fields.h"
#include "model/torch_stacks.h"

#define SAMPLES_MAX 4096 /* written for one run of equal samples; only a crafted trace has more */
#define SLOTS 8          /* tracks of a stream; further work shares the last */

/* What known_ids and known_tracks hold, as the last part of a key. */
enum known { KNOWN_STACK = 1, KNOWN_FRAME, KNOWN_STREAM, KNOWN_COUNTER, KNOWN_MEMORY };

static uint64_t track_of(const struct sonde_event *event)
{
    return event->thread == SONDE_NONE ? snd_perfetto_track(SND_TRACK_PROCESS, event->process, 0)
                                       : snd_perfetto_track(SND_TRACK_THREAD, event->thread, 0);
}

/* ----------------------------------------------------------------- instants */

static struct snd_perfetto_opened open_instant(struct snd_perfetto      *p,
                                               const struct sonde_event *event, uint64_t track,
                                               struct sonde_text name)
{
    struct snd_perfetto_opened opened = snd_perfetto_event(p, event->time_ns, SND_INSTANT, track);

    snd_pb_text(&p->packet, SND_EVENT_NAME, name);
    return opened;
}

static void put_mark(struct snd_perfetto *p, const struct sonde_event *event)
{
    struct snd_perfetto_opened opened =
        open_instant(p, event, track_of(event),
                     sonde_trace_string(p->trace, event->process, event->mark.name));

    snd_buf_clear(&p->text);
    if (event->mark.stack != 0 &&
        snd_stack_text(p->trace, event->process, event->mark.stack, SIZE_MAX, ';', &p->text) > 0)
        snd_perfetto_note_text(p, "Call stack",
                               (struct sonde_text){ p->text.bytes, p->text.length });
    snd_perfetto_put_event(p, opened);
}

static void put_step(struct snd_perfetto *p, const struct sonde_event *event)
{
    char name[48];
    int  length = snprintf(name, sizeof name, "ProfilerStep#%" PRIu64, event->step.number);

    snd_perfetto_put_event(p, open_instant(p, event,
                                           snd_perfetto_track(SND_TRACK_PROCESS, event->process, 0),
                                           (struct sonde_text){ name, (size_t)length }));
}

static void put_gap(struct snd_perfetto *p, const struct sonde_event *event)
{
    if (event->gap.events == 0)
        return;
    struct snd_perfetto_opened opened = open_instant(p, event, track_of(event),
                                                     (struct sonde_text){ "events lost", 11 });
    snd_perfetto_note_uint(p, "Events", event->gap.events);
    snd_perfetto_put_event(p, opened);
}

/* As in the Chrome format: ids of arrows within a process include its number. */
static void put_link(struct snd_perfetto *p, const struct sonde_event *event)
{
    uint64_t id = event->link.id;

    if (event->link.kind == SND_LINK_FWD_BWD || event->link.kind == SND_LINK_LAUNCH)
        id += event->process * 0x9e3779b97f4a7c15u;
    struct snd_perfetto_opened opened = open_instant(p, event, track_of(event),
                                                     (struct sonde_text){ "flow", 4 });
    snd_pb_fixed64(&p->packet, event->link.arrives ? SND_EVENT_LAST_FLOW : SND_EVENT_FLOW,
                   (uint64_t)3 << 62 | id);
    snd_perfetto_put_event(p, opened);
}

/* ----------------------------------------------------------------- counters */

/* The number of a track that is known by `key`, in *number; true: it has not been described yet. */
static bool find_track(struct snd_perfetto *p, struct snd_key key, uint32_t *number)
{
    if (snd_map_get(&p->known_tracks, key, number))
        return false;
    *number = (uint32_t)p->known_tracks.count;
    if (!snd_map_put(&p->known_tracks, key, *number))
        p->failed = true;
    return true;
}

static void put_value(struct snd_perfetto *p, int64_t ns, uint32_t number, double value)
{
    struct snd_perfetto_opened opened =
        snd_perfetto_event(p, ns, SND_COUNTER_VALUE,
                           snd_perfetto_track(SND_TRACK_COUNTER, number, 0));

    snd_pb_double(&p->packet, SND_EVENT_DOUBLE, value);
    snd_perfetto_put_event(p, opened);
}

static void describe_counter(struct snd_perfetto *p, uint32_t process, uint32_t number,
                             struct sonde_text name)
{
    snd_perfetto_describe(p, snd_perfetto_track(SND_TRACK_COUNTER, number, 0),
                          snd_perfetto_track(SND_TRACK_PROCESS, process, 0), name, true);
}

static void put_counter(struct snd_perfetto *p, const struct sonde_event *event)
{
    uint32_t number;

    if (find_track(p, (struct snd_key){ event->process, event->counter.name, KNOWN_COUNTER },
                   &number)) {
        describe_counter(p, event->process, number,
                         sonde_trace_string(p->trace, event->process, event->counter.name));
    }
    put_value(p, event->time_ns, number, event->counter.value);
}

static void put_memory(struct snd_perfetto *p, const struct sonde_event *event,
                       const struct snd_live_change *change)
{
    uint32_t number;

    if (find_track(p, (struct snd_key){ event->process, event->memory.device, KNOWN_MEMORY },
                   &number)) {
        snd_buf_clear(&p->text);
        if (SND_DEVICE_TYPE(event->memory.device) == 0)
            snd_buf_text(&p->text, "memory");
        else if (SND_DEVICE_TYPE(event->memory.device) == 1)
            snd_buf_format(&p->text, "memory of cuda:%u", SND_DEVICE_INDEX(event->memory.device));
        else
            snd_buf_format(&p->text, "memory of device %u:%u",
                           SND_DEVICE_TYPE(event->memory.device),
                           SND_DEVICE_INDEX(event->memory.device));
        describe_counter(p, event->process, number,
                         (struct sonde_text){ p->text.bytes, p->text.length });
    }
    put_value(p, event->time_ns, number, (double)change->total);
}

/* ------------------------------------------------------------------ samples */

/* An id that is unique over all processes. */
static uint64_t iid_of(uint32_t process, uint32_t id)
{
    return ((uint64_t)process << 32 | id) + 1;
}

static bool is_new(struct snd_perfetto *p, uint32_t process, uint32_t id, enum known what)
{
    struct snd_key key = { process, id, what };
    uint32_t       unused;

    if (snd_map_get(&p->known_ids, key, &unused))
        return false;
    if (!snd_map_put(&p->known_ids, key, 0))
        p->failed = true;
    return true;
}

static void tell_text(struct snd_perfetto *p, unsigned field, uint64_t iid, struct sonde_text text)
{
    size_t item = snd_pb_open(&p->packet, field);

    snd_pb_uint(&p->packet, SND_IID, iid);
    snd_pb_text(&p->packet, SND_IID_TEXT, text);
    snd_pb_close(&p->packet, item);
}

/* A function; the file that it is in is its mapping. */
static void tell_frame(struct snd_perfetto *p, uint32_t process, uint32_t id)
{
    enum { FRAME_FUNCTION = 2, FRAME_MAPPING, MAPPING_PATH = 7 };
    struct sonde_frame frame;
    uint64_t           iid = iid_of(process, id);

    if (!is_new(p, process, id, KNOWN_FRAME) || !sonde_trace_frame(p->trace, process, id, &frame))
        return;
    tell_text(p, SND_INTERNED_FUNCTION, iid, frame.function);
    tell_text(p, SND_INTERNED_PATH, iid, frame.file);
    size_t mapping = snd_pb_open(&p->packet, SND_INTERNED_MAPPING);
    snd_pb_uint(&p->packet, SND_IID, iid);
    snd_pb_uint(&p->packet, MAPPING_PATH, iid);
    snd_pb_close(&p->packet, mapping);
    size_t item = snd_pb_open(&p->packet, SND_INTERNED_FRAME);
    snd_pb_uint(&p->packet, SND_IID, iid);
    snd_pb_uint(&p->packet, FRAME_FUNCTION, iid);
    snd_pb_uint(&p->packet, FRAME_MAPPING, iid);
    snd_pb_close(&p->packet, item);
}

static const struct snd_stack_node *stack_at(const struct snd_perfetto *p, uint32_t process,
                                             uint32_t id)
{
    const struct snd_tables *t = &p->trace->processes[process].tables;

    return id != 0 && id < t->stack_count ? &t->stacks[id] : NULL;
}

/* Frames from the outermost on; records come after their parents, so that this ends. */
static void put_frames(struct snd_perfetto *p, uint32_t process, uint32_t id)
{
    enum { CALLSTACK_FRAME = 2 };
    size_t first = p->text.length / sizeof id;

    for (const struct snd_stack_node *s = stack_at(p, process, id); s;
         s = stack_at(p, process, s->parent))
        snd_buf_put(&p->text, &s->frame, sizeof s->frame);
    for (size_t i = p->text.length / sizeof id; i-- > first;) {
        uint32_t frame;
        memcpy(&frame, p->text.bytes + i * sizeof frame, sizeof frame);
        snd_pb_uint(&p->packet, CALLSTACK_FRAME, iid_of(process, frame));
    }
}

static void tell_stack(struct snd_perfetto *p, uint32_t process, uint32_t id)
{
    if (!is_new(p, process, id, KNOWN_STACK))
        return;
    size_t interned = snd_pb_open(&p->packet, SND_PACKET_INTERNED);
    for (const struct snd_stack_node *s = stack_at(p, process, id); s;
         s = stack_at(p, process, s->parent))
        tell_frame(p, process, s->frame);
    size_t item = snd_pb_open(&p->packet, SND_INTERNED_CALLSTACK);
    snd_pb_uint(&p->packet, SND_IID, iid_of(process, id));
    snd_buf_clear(&p->text);
    put_frames(p, process, id);
    snd_pb_close(&p->packet, item);
    snd_pb_close(&p->packet, interned);
}

/*
 * Where a thread ran. A sample of Perfetto has no weight: one is written for each period of the time on a CPU that the sampled
 * stacks stand for, so that shares are those of the other exports. What is less than a period is kept for the thread's next.
 */
static void put_sample(struct snd_perfetto *p, const struct sonde_event *event)
{
    enum { SAMPLE_PID = 2, SAMPLE_TID, SAMPLE_STACK };
    const struct sonde_thread *thread = sonde_trace_thread(p->trace, event->thread);

    if (!(event->sample.state & SONDE_SAMPLE_ON_CPU) || event->sample.stack == 0)
        return;
    int64_t *rest = &p->unwritten_ns[event->thread];
    *rest = snd_add(*rest, event->sample.covered_ns < INT64_MAX ? (int64_t)event->sample.covered_ns
                                                                : INT64_MAX);
    int64_t count = *rest / p->period_ns;
    *rest %= p->period_ns;
    count = count < SAMPLES_MAX ? count : SAMPLES_MAX;
    for (int64_t i = count; i-- > 0;) {
        size_t packet =
            snd_perfetto_packet(p, event->time_ns - (int64_t)event->sample.covered_ns / count * i);
        tell_stack(p, event->process, event->sample.stack);
        size_t sample = snd_pb_open(&p->packet, SND_PACKET_PERF_SAMPLE);
        snd_pb_uint(&p->packet, SAMPLE_PID, snd_export_pid(p->trace, thread->process));
        snd_pb_uint(&p->packet, SAMPLE_TID, thread->tid);
        snd_pb_uint(&p->packet, SAMPLE_STACK, iid_of(event->process, event->sample.stack));
        snd_pb_close(&p->packet, sample);
        snd_perfetto_put(p, packet);
    }
}

bool snd_perfetto_on_event(const struct sonde_event *event, const struct snd_live_change *change,
                           void *user)
{
    static void (*const puts[])(struct snd_perfetto *, const struct sonde_event *) = {
        [SONDE_EVENT_MARK] = put_mark,
        [SONDE_EVENT_STEP] = put_step,
        [SONDE_EVENT_COUNTER] = put_counter,
        [SONDE_EVENT_LINK] = put_link,
        [SONDE_EVENT_SAMPLE] = put_sample,
        [SONDE_EVENT_GAP] = put_gap,
        [SONDE_EVENT_FUNCTION] = snd_perfetto_call,
    };
    struct snd_perfetto *p = user;

    if (change)
        put_memory(p, event, change);
    else if ((size_t)event->kind < SND_COUNT_OF(puts) && puts[event->kind])
        puts[event->kind](p, event);
    return !p->failed && !p->text.failed && !p->out->failed;
}

/* ---------------------------------------------------------------- GPUs' work */

/* When each track of a stream is free again. */
struct stream {
    uint32_t number; /* of its tracks */
    uint32_t known;  /* of them, described */
    int64_t  free_ns[SLOTS];
};

static uint64_t take_stream(struct snd_perfetto *p, struct stream *stream,
                            const struct snd_device_item *item)
{
    uint32_t slot = 0;

    while (slot + 1 < SLOTS && slot < stream->known && stream->free_ns[slot] > item->start_ns)
        slot++;
    uint64_t track = snd_perfetto_track(SND_TRACK_STREAM, stream->number, slot);
    if (slot == stream->known) {
        stream->known++;
        snd_buf_clear(&p->text);
        snd_stream_name(snd_device_queue(p->trace, item), &p->text);
        snd_perfetto_describe(p, track, snd_perfetto_track(SND_TRACK_PROCESS, item->process, 0),
                              (struct sonde_text){ p->text.bytes, p->text.length }, false);
    }
    stream->free_ns[slot] = snd_add(item->start_ns, item->duration_ns);
    return track;
}

static void put_work(struct snd_perfetto *p, struct stream *stream,
                     const struct snd_device_item *item)
{
    const struct snd_work_record *work = snd_device_work(p->trace, item);
    uint64_t                      track = take_stream(p, stream, item);
    struct snd_perfetto_opened    opened = snd_perfetto_named(p, item->start_ns, SND_SLICE_BEGIN,
                                                              track, snd_device_name(p->trace, item));

    if (item->correlation != 0)
        snd_pb_fixed64(&p->packet, SND_EVENT_LAST_FLOW,
                       snd_perfetto_launch(item->process, item->correlation));
    if (work->kind != SND_WORK_KERNEL)
        snd_perfetto_note_uint(p, "bytes", work->bytes);
    snd_perfetto_put_event(p, opened);
    snd_perfetto_put_event(p, snd_perfetto_event(p, snd_add(item->start_ns, item->duration_ns),
                                                 SND_SLICE_END, track));
}

/* The streams of a trace, as they are met. */
struct streams {
    struct stream *items;
    uint32_t       count, room;
};

static struct stream *find_stream(struct snd_perfetto *p, struct streams *streams,
                                  const struct snd_device_item *item)
{
    struct snd_key key = { item->process, item->queue, KNOWN_STREAM };
    uint32_t       at;

    if (snd_map_get(&p->known_ids, key, &at))
        return &streams->items[at];
    if (!snd_grow(&streams->items, &streams->room, streams->count, sizeof *streams->items) ||
        !snd_map_put(&p->known_ids, key, streams->count)) {
        p->failed = true;
        return NULL;
    }
    streams->items[streams->count] = (struct stream){ .number = streams->count };
    return &streams->items[streams->count++];
}

enum sonde_status snd_perfetto_works(struct snd_perfetto *p, struct sonde_error *err)
{
    const struct snd_devices *devices;
    struct streams            streams = { 0 };
    enum sonde_status         st = snd_trace_devices_by_time(p->trace, &devices, err);

    for (uint32_t i = 0; st == SONDE_OK && devices && i < devices->count; i++) {
        const struct snd_device_item *item = &devices->items[devices->by_time[i]];
        struct stream                *stream = snd_work_counts(snd_device_work(p->trace, item))
                                                   ? find_stream(p, &streams, item)
                                                   : NULL;
        if (stream)
            put_work(p, stream, item);
        if (p->failed || p->out->failed)
            break;
    }
    free(streams.items);
    return st;
}
