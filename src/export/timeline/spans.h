/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/timeline/spans.h - the ranges of a trace as recorded, and the other events, by time.
 *
 * The ranges of model/ranges/assembly.h for exporters: nothing is folded or left out. Memory grows with the
 * open ranges, not with the events.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_TIMELINE_SPANS_H
#define SND_EXPORT_TIMELINE_SPANS_H

#include "model/gpu/torch_gpu.h"
#include "sonde/trace.h"

#define SND_SPAN_ATTRS SND_RANGE_ATTRS

struct snd_span {
    uint32_t          process, thread;
    uint32_t          depth; /* outermost 0 */
    struct sonde_text name;
    uint32_t          name_number; /* of the same, in trace->names */
    uint32_t          shapes;
    uint64_t          serial; /* order of begins over the walk, from 1 */
    uint64_t          owner;  /* of a call of a GPU's API: serial of its operator; 0 none */
    int64_t           start_ns, end_ns;
    int64_t           self_ns;
    int64_t           bytes; /* net, children included */
    uint32_t          attr_mask;
    const uint64_t   *attrs; /* by key, where attr_mask has the bit; borrowed for the call */
    bool              unfinished;
    bool              is_op;              /* recorded as a call of a framework's operator */
    bool              crosses;            /* at its end: it ends before ranges inside it */
    bool              is_async;           /* it waits for others, or another thread ended it */
    bool              starts_with_parent; /* at the same nanosecond */
    uint32_t mark;   /* the exporter's own; lowered to that of an enclosing range that ends first */
    uint64_t number; /* the exporter's own */
};

/* Any but `end` may be NULL. False ends the walk. */
struct snd_spans_calls {
    /* A span has begun; its attributes are not known yet. It may be given a mark and a number. */
    bool (*begin)(struct snd_span *span, void *user);
    bool (*end)(const struct snd_span *span, void *user);
    /* Instead of the two, of one that nothing lies in: they come at once. NULL: they are called. */
    bool (*leaf)(const struct snd_span *span, void *user);
    /* What is not part of a range. `change`: of ALLOC and FREE, else NULL. */
    bool (*event)(const struct sonde_event *event, const struct snd_live_change *change,
                  void *user);
    void *user;
    /* NULL, or started: records which range launched GPU work; owners are serials. */
    struct snd_torch_gpu *gpu;
    /*
     * The walk may go ahead in a thread of its own (export/common/walk_ahead.h): the calls have much to do. They read of the
     * trace what is there once it is open, and nothing of `gpu`.
     */
    bool ahead;
};

struct snd_spans_totals {
    uint64_t too_deep; /* ranges nested too deep to be delivered */
    int64_t  last_ns;  /* time of the last event, or of the end of what it left open */
};

/* Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. */
SND_CHECKED enum sonde_status snd_spans_walk(struct sonde_trace           *trace,
                                             const struct snd_spans_calls *calls,
                                             struct snd_spans_totals      *totals,
                                             struct sonde_error           *err);

#endif
