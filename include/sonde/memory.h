/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/memory.h - what devices hold: totals, peak and holders; and every change over time.
 * model.h includes it.
 *
 * Owns: what sonde_X_new() makes, the caller frees with sonde_X_free(), before it closes the trace.
 * Threads: as a trace: one at a time.
 */
#ifndef SONDE_MEMORY_H
#define SONDE_MEMORY_H

#include "sonde/trace.h"

SONDE_C_BEGIN_

/* ----------------------------------------------------------------- memory */

struct sonde_memory_device {
    uint32_t type, index; /* 0 CPU, 1 CUDA; index SONDE_NONE: default */
    uint32_t process;     /* of a GPU: whose memory it is; CPU: SONDE_NONE, of all */
    uint64_t allocs, frees;
    uint64_t allocated_bytes, freed_bytes;
    uint64_t unmatched_frees, unmatched_free_bytes; /* of memory allocated before the recording */
    int64_t  peak_bytes;   /* exact: maximum of live bytes, of allocations in the trace ... */
    int64_t  peak_time_ns; /* ... and of before, where before_bytes is known */
    int64_t  end_bytes;    /* live at the end */
    uint64_t end_count;    /* blocks that the trace has the allocation of */
    /* Of a GPU, as torch's caching allocator counts; -1: not recorded. */
    int64_t before_bytes;           /* in use when the recording began */
    int64_t reserved_peak_bytes;    /* the most that the allocator held */
    int64_t reserved_at_peak_bytes; /* what it held when most was in use */
};
/* Live bytes at the peak and at the end, by the innermost range that allocated them. */
struct sonde_memory_holder {
    uint32_t          device; /* index into the devices */
    struct sonde_text name;   /* "(no range)" outside any; "(before the recording)" */
    struct sonde_text module; /* path; empty when not grouped by it */
    struct sonde_text stack;  /* frames, innermost first, one per line; or empty */
    int64_t           peak_bytes, end_bytes;
    uint64_t          peak_count, end_count;
};
/* Live bytes over time, reduced to at most 1,024 points per device; extremes are kept. */
struct sonde_memory_point {
    uint32_t device;
    int64_t  time_ns, bytes;
};
struct sonde_memory; /* opaque */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_memory_new(struct sonde_trace *trace, struct sonde_memory **out, struct sonde_error *err);
/* The same; holders are told apart by SONDE_GROUP_MODULE and SONDE_GROUP_STACK as well. */
SONDE_API SONDE_CHECKED enum sonde_status sonde_memory_new_by(struct sonde_trace *trace,
                                                              unsigned groups, uint32_t stack_depth,
                                                              struct sonde_memory **out,
                                                              struct sonde_error   *err);
SONDE_API void                            sonde_memory_free(struct sonde_memory *memory);
SONDE_API size_t sonde_memory_device_count(const struct sonde_memory *memory);
SONDE_API const struct sonde_memory_device *sonde_memory_device(const struct sonde_memory *memory,
                                                                size_t                     index);
SONDE_API size_t sonde_memory_holder_count(const struct sonde_memory *memory);
SONDE_API const struct sonde_memory_holder *sonde_memory_holder(const struct sonde_memory *memory,
                                                                size_t                     index);
SONDE_API size_t sonde_memory_point_count(const struct sonde_memory *memory);
SONDE_API const struct sonde_memory_point *sonde_memory_point(const struct sonde_memory *memory,
                                                              size_t                     index);

/* -------------------------------------------------------- memory over time */

/* torch's categories; docs/MEMORY.md defines them. */
enum sonde_memory_category {
    SONDE_MEMORY_UNKNOWN,
    SONDE_MEMORY_PARAMETER,
    SONDE_MEMORY_OPTIMIZER_STATE,
    SONDE_MEMORY_INPUT,
    SONDE_MEMORY_TEMPORARY,
    SONDE_MEMORY_ACTIVATION,
    SONDE_MEMORY_GRADIENT,
    SONDE_MEMORY_AUTOGRAD_DETAIL,
    SONDE_MEMORY_CATEGORIES,
};

/* Every change of a device's live memory, in order of time. */
struct sonde_timeline_columns {
    size_t          count;
    const int64_t  *time_ns;
    const int64_t  *bytes;    /* change; negative for a free */
    const uint8_t  *category; /* enum sonde_memory_category */
    const uint64_t *address;
};
struct sonde_timeline; /* opaque */
/* `type` and `index` as in struct sonde_memory_device; `index` SONDE_NONE: all of the type. */
SONDE_API SONDE_CHECKED enum sonde_status sonde_timeline_new(struct sonde_trace *trace,
                                                             uint32_t type, uint32_t index,
                                                             struct sonde_timeline **out,
                                                             struct sonde_error     *err);
SONDE_API void                            sonde_timeline_free(struct sonde_timeline *timeline);
SONDE_API const struct sonde_timeline_columns *
sonde_timeline_columns(const struct sonde_timeline *timeline);

SONDE_C_END_
#endif
