/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/perfetto/perfetto.h - what the parts of the writer of Perfetto's trace format share.
 *
 * perfetto.c writes the whole; perfetto_packets.c packets, tracks and names; perfetto_ranges.c ranges
 * and arrows; perfetto_calls.c calls of Python functions; perfetto_events.c the rest.
 *
 * The trace is walked twice. The first walk finds what a range's begin cannot tell yet: the arrows
 * that leave it or arrive at it, and whether it ends in order; it is left out of a trace without events
 * of which either is made. The second writes begins and ends as they come, so that slices of a track
 * nest as recorded.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_PERFETTO_PERFETTO_H
#define SND_EXPORT_PERFETTO_PERFETTO_H

#include "base/files/sink.h"
#include "export/timeline/arrows.h"
#include "export/encode/protobuf.h"
#include "export/encode/rendered_texts.h"
#include "export/timeline/spans.h"

/* Fields of Perfetto's messages (protos/perfetto/trace), as far as they are written. */
enum snd_perfetto_field {
    SND_TRACE_PACKET = 1,

    SND_PACKET_TIMESTAMP = 8,
    SND_PACKET_SEQUENCE = 10,
    SND_PACKET_TRACK_EVENT = 11,
    SND_PACKET_INTERNED = 12,
    SND_PACKET_FLAGS = 13,
    SND_PACKET_TRACK = 60,
    SND_PACKET_PERF_SAMPLE = 66,

    SND_INTERNED_NAME = 2,
    SND_INTERNED_FUNCTION = 5,
    SND_INTERNED_FRAME = 6,
    SND_INTERNED_CALLSTACK = 7,
    SND_INTERNED_PATH = 17,
    SND_INTERNED_MAPPING = 19,
    SND_IID = 1,
    SND_IID_TEXT = 2,

    SND_EVENT_ANNOTATION = 4,
    SND_EVENT_TYPE = 9,
    SND_EVENT_NAME_IID = 10,
    SND_EVENT_TRACK = 11,
    SND_EVENT_CATEGORY = 22,
    SND_EVENT_NAME = 23,
    SND_EVENT_DOUBLE = 44,
    SND_EVENT_FLOW = 47,
    SND_EVENT_LAST_FLOW = 48,

    SND_ANNOTATION_BOOL = 2,
    SND_ANNOTATION_UINT = 3,
    SND_ANNOTATION_INT = 4,
    SND_ANNOTATION_TEXT = 6,
    SND_ANNOTATION_NAME = 10,
};

enum snd_perfetto_type { SND_SLICE_BEGIN = 1, SND_SLICE_END, SND_INSTANT, SND_COUNTER_VALUE };

/* Tracks by kind; a track's number holds the kind and two numbers. */
enum snd_perfetto_kind {
    SND_TRACK_PROCESS = 1, /* process */
    SND_TRACK_THREAD,      /* thread */
    SND_TRACK_BESIDE,      /* thread, slot: ranges that do not nest with the others */
    SND_TRACK_CALLS,       /* thread: calls of Python functions */
    SND_TRACK_COUNTER,     /* a number of its own */
    SND_TRACK_STREAM,      /* a number of its own, slot: work that overlaps */
};

/* One end of an arrow at a range. */
struct snd_perfetto_end {
    uint64_t serial, flow;
    bool     arrives;
};

struct snd_perfetto {
    struct sonde_trace      *trace;
    struct snd_out          *out;
    struct sonde_buffer      packet, text;
    struct snd_rendered      notes;       /* annotations of ranges, by what they are of */
    bool                    *is_torch;    /* by process: its operators are torch's */
    uint32_t                 attrs_shown; /* of ranges: snd_attrs_mask() */
    struct snd_arrows        arrows;
    struct snd_perfetto_end *ends; /* by serial, after the first walk */
    uint32_t                 end_count, end_room, next_end;
    uint64_t                *beside; /* bit by serial: the range does not nest with the others */
    uint32_t                 beside_count, beside_room; /* words */
    uint64_t                *slots;                     /* by thread: bit by slot, in use */
    uint64_t                *known_slots;               /* by thread: bit by slot, described */
    struct snd_call_track   *calls;                     /* by thread: calls of Python functions */
    bool                    *known_names;               /* by number in trace->names */
    struct snd_map           known_tracks; /* of counters and streams: to their numbers */
    struct snd_map           known_ids;    /* stacks, frames, functions and files written so far */
    int64_t                  period_ns;    /* what one written sample stands for */
    int64_t                 *unwritten_ns; /* by thread: on-CPU time that was less than a sample */
    bool                     failed;       /* memory ran out */
};

static inline uint64_t snd_perfetto_track(enum snd_perfetto_kind kind, uint32_t which,
                                          uint32_t slot)
{
    return (uint64_t)kind << 56 | (uint64_t)which << 24 | slot;
}

/* ---- packets */

/* Begins a packet; snd_perfetto_put() ends and writes it. */
size_t snd_perfetto_packet(struct snd_perfetto *p, int64_t ns);
void   snd_perfetto_put(struct snd_perfetto *p, size_t packet);
/* A packet with an event in it; returns where both are, for snd_perfetto_put_event(). */
struct snd_perfetto_opened {
    size_t packet, event;
};
struct snd_perfetto_opened snd_perfetto_event(struct snd_perfetto *p, int64_t ns,
                                              enum snd_perfetto_type type, uint64_t track);
void snd_perfetto_put_event(struct snd_perfetto *p, struct snd_perfetto_opened opened);
/* The same with a name of trace->names, interned. */
struct snd_perfetto_opened snd_perfetto_named(struct snd_perfetto *p, int64_t ns,
                                              enum snd_perfetto_type type, uint64_t track,
                                              uint32_t name);

void snd_perfetto_note_uint(struct snd_perfetto *p, const char *name, uint64_t value);
void snd_perfetto_note_text(struct snd_perfetto *p, const char *name, struct sonde_text text);
void snd_perfetto_note_true(struct snd_perfetto *p, const char *name);

/* Describes a track below another. */
void snd_perfetto_describe(struct snd_perfetto *p, uint64_t track, uint64_t parent,
                           struct sonde_text name, bool is_counter);
/* Processes and threads; before all else. */
void snd_perfetto_head(struct snd_perfetto *p);

/* ---- ranges: as snd_spans_calls has them; `user` is the snd_perfetto */

bool snd_perfetto_find_end(const struct snd_span *span, void *user); /* the first walk */
void snd_perfetto_sort_ends(struct snd_perfetto *p);
bool snd_perfetto_on_begin(struct snd_span *span, void *user);
bool snd_perfetto_on_end(const struct snd_span *span, void *user);

/* ---- calls of Python functions */

/* False: no memory. What was made is freed either way. */
bool snd_perfetto_make_calls(struct snd_perfetto *p);
void snd_perfetto_free_calls(struct snd_perfetto *p);
void snd_perfetto_call(struct snd_perfetto *p, const struct sonde_event *event);
/* Those that wait for their callers, after the walk. */
void snd_perfetto_finish_calls(struct snd_perfetto *p);

/* ---- the rest */

bool snd_perfetto_on_event(const struct sonde_event *event, const struct snd_live_change *change,
                           void *user);
/* All that GPUs did, after the walk. */
SND_CHECKED enum sonde_status snd_perfetto_works(struct snd_perfetto *p, struct sonde_error *err);

/* The id of the arrow from a GPU API call to its work. */
static inline uint64_t snd_perfetto_launch(uint32_t process, uint32_t correlation)
{
    return (uint64_t)2 << 62 | (uint64_t)process << 32 | correlation;
}

#endif
