/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events/event_rows.h - what the files behind sonde_events_new() share.
 *
 * events.c      the whole, and the public face
 * event_rows.c   where events are kept: an array for each thing that differs, kinds for the rest
 * event_walk.c   one walk by time adds a row when a range opens and completes it when it closes
 * event_gpu.c    rows of what GPUs did
 * event_memory.c  memory of Python functions
 * event_fold.c   only children of the same name fold into their parents; then torch's order
 * event_columns.c  columns made from the rows when they are asked for
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_EVENTS_EVENT_ROWS_H
#define SND_MODEL_EVENTS_EVENT_ROWS_H

#include "base/data/map.h"
#include "model/ranges/assembly.h"
#include "model/gpu/torch_gpu.h"

/* Names of our own, numbered after those of the trace; those of Python functions follow. */
enum snd_own_name { SND_OWN_STEP, SND_OWN_MEMORY, SND_OWN_COUNT };

/* What many events have in common. No holes: kinds are compared as bytes. Ids are the process's. */
struct snd_row_kind {
    double   flops, macs, moved_bytes;
    uint32_t process;
    uint32_t name, shown_name; /* as recorded; ProfilerStep* for all steps */
    uint32_t shapes, stack, module, strides, arguments, overload, fwd_thread, keywords;
    uint8_t  flags, scope; /* enum sonde_event_flag; enum sonde_scope */
    bool     is_op;        /* as the range's */
    uint8_t  zero;
};

/* What few ranges have: memory, a forward operator, work of a GPU. */
struct snd_row_extra {
    int64_t  cpu_bytes, device_bytes, child_cpu_bytes, child_device_bytes;
    int64_t  device_ns, self_device_ns;
    int64_t  back_sequence;
    uint32_t back_thread;
    bool     is_back;
};

/* What a GPU did, a person's range as a stream saw it, or a call of a GPU's API. */
struct snd_row_gpu {
    uint32_t item;  /* plus one: of the trace's devices; 0: none */
    uint32_t queue; /* record; 0: none */
    uint32_t correlation;
    uint32_t function; /* of a call: CUPTI's number, | 0x8000: of the driver */
    int32_t  owner;    /* row of the operator that it is given to; -1: none */
};

struct snd_row_memory {
    int64_t cpu_bytes, device_bytes;
};

/* A call of a Python function. */
struct snd_row_call {
    uint32_t              id, parent;
    struct snd_row_memory total, self; /* net */
};

/* The rows, one array for each thing; 0 in all that were not written. */
struct snd_event_rows {
    int64_t  *start_ns, *end_ns, *self_ns;
    uint64_t *sequence; /* plus one; 0: none */
    int32_t
        *parent; /* a row, or -1. Of an asynchronous one until it is folded: its enclosing range */
    uint32_t *thread, *kind;
    uint32_t
        *extra; /* plus one: of extras, or of calls if the kind is a function's, or of gpus if it
                        is on a device or a call of its API; 0: none */
    uint32_t count, room;
};

struct sonde_events {
    struct sonde_trace         *trace;
    struct sonde_events_options options;
    struct snd_event_rows       rows;
    struct snd_row_kind        *kinds;
    struct snd_row_extra       *extras;
    struct snd_row_call        *calls;
    struct snd_row_gpu         *gpus;
    uint32_t             kind_count, kind_room, extra_count, extra_room, call_count, call_room;
    uint32_t             gpu_count, gpu_room;
    uint32_t            *recent;    /* kinds by hash, plus one: where an equal one is looked for */
    bool                 has_back;  /* some of them run backward */
    bool                 has_async; /* some of them are asynchronous */
    bool                 may_fold;  /* some have a child of their own name */
    struct snd_live      live;
    struct snd_assembly  assembly;           /* while the walk lasts */
    struct snd_torch_gpu gpu;                /* the same */
    uint32_t             own[SND_OWN_COUNT]; /* names of ours: those of the trace, if it has them */
    uint32_t             empty;              /* the trace's name of no length, or UINT32_MAX */
    struct snd_texts     functions;          /* names of Python functions */
    struct snd_map       function_names;     /* (process, frame) to one of them */
    uint32_t            *torch_threads;      /* by thread */
    struct sonde_events_columns shown;
};

/* ------------------------------------------------------------------ event_rows.c */

/* Room for as many ranges as the files can hold. False: out of memory. */
bool snd_rows_reserve(struct snd_event_rows *rows, const struct sonde_trace *trace);
/* Makes room for more. False: out of memory, or too many. */
bool snd_rows_grow(struct snd_event_rows *rows);
void snd_rows_release(struct snd_event_rows *rows);
/* Puts row order[i] at i, for `count` rows; parents are rows of the new order, by `places`. */
bool snd_rows_reorder(struct snd_event_rows *rows, const uint32_t *order, uint32_t count,
                      const uint32_t *places);

/* A row for the thread, with no parent; UINT32_MAX: out of memory. */
static inline uint32_t snd_rows_add(struct snd_event_rows *rows, uint32_t thread, int64_t start_ns)
{
    if (rows->count == rows->room && !snd_rows_grow(rows))
        return UINT32_MAX;
    uint32_t row = rows->count++;
    rows->start_ns[row] = start_ns;
    rows->thread[row] = thread;
    rows->parent[row] = -1;
    return row;
}

/* The number of an equal kind; not always the same one. UINT32_MAX: out of memory. */
uint32_t snd_kind_number(struct sonde_events *events, const struct snd_row_kind *kind);

static inline const struct snd_row_kind *snd_kind_of(const struct sonde_events *e, uint32_t row)
{
    return &e->kinds[e->rows.kind[row]];
}

static inline bool snd_is_function(const struct sonde_events *e, uint32_t row)
{
    return snd_kind_of(e, row)->flags & SONDE_EVENT_IS_FUNCTION;
}

/* What says more of the row: NULL unless a GPU did it or it is a call of its API. */
static inline struct snd_row_gpu *snd_gpu_of(const struct sonde_events *e, uint32_t row)
{
    const unsigned flags = SONDE_EVENT_ON_DEVICE | SONDE_EVENT_IS_API;

    return e->rows.extra[row] && (snd_kind_of(e, row)->flags & flags)
               ? &e->gpus[e->rows.extra[row] - 1]
               : NULL;
}

/* All 0 if it has none. */
static inline const struct snd_row_extra *snd_extra_of(const struct sonde_events *e, uint32_t row)
{
    static const struct snd_row_extra none;

    const unsigned other = SONDE_EVENT_IS_FUNCTION | SONDE_EVENT_ON_DEVICE | SONDE_EVENT_IS_API;

    return e->rows.extra[row] && !(snd_kind_of(e, row)->flags & other)
               ? &e->extras[e->rows.extra[row] - 1]
               : &none;
}

/* ------------------------------------------------------------ the other files */

SND_CHECKED enum sonde_status snd_events_walk(struct sonde_events *events, struct sonde_error *err);
/* Rows of what GPUs did, once the walk is over; false: out of memory. */
bool snd_events_add_gpu(struct sonde_events *events);
/* False: out of memory. */
bool snd_events_fold(struct sonde_events *events);
bool snd_events_link_functions(struct sonde_events *events);
/* Takes rows out; parents are rows that stay. */
bool snd_events_drop(struct sonde_events *events, const bool *drops);
/* Of sorted rows. */
bool snd_events_claim_memory(struct sonde_events *events);
bool snd_events_sort(struct sonde_events *events);

/* Fills the column of that name, or all for NULL. Errors: SONDE_E_NOMEM, SONDE_E_ARGUMENT. */
SND_CHECKED enum sonde_status snd_events_fill(struct sonde_events *events, const char *column,
                                              struct sonde_error *err);
void                          snd_events_release_columns(struct sonde_events *events);

/* Names of the trace, then our own, then those of Python functions. */
struct sonde_text snd_events_name(const struct sonde_events *events, uint32_t name);
/* Each text has one number, so that texts can be compared by it: set before the walk. */
void snd_events_number_texts(struct sonde_events *events);

#endif
