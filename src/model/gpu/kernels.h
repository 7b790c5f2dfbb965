/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpu/kernels.h - what GPUs ran: kernels, copies and fills, added up by name and what is asked for.
 *
 * Rules: docs/GPU.md, "Views".
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_GPU_KERNELS_H
#define SND_MODEL_GPU_KERNELS_H

#include "model/gpu/launches.h"
#include "model/gpu/occupancy.h"
#include "model/place_texts.h"

/* By kind of work that counts as a device's time: snd_work_counts(). */
extern const char *const snd_work_words[];

struct snd_kernel_row {
    struct sonde_text        name;
    uint32_t                 kind;               /* enum snd_work_kind */
    uint32_t                 process;            /* SONDE_NONE: not grouped by it */
    uint32_t                 device;             /* SND_DEVICE; SONDE_NONE: not grouped by it */
    uint64_t                 count, graph_count; /* of the count: nodes of a CUDA graph */
    int64_t                  total_ns, min_ns, max_ns;
    uint64_t                 bytes;  /* copied or filled */
    uint64_t                 delays; /* runs whose delay is known */
    int64_t                  delay_median_ns, delay_p95_ns;
    uint32_t                 configurations; /* of grid, block, registers, shared memory ... */
    struct snd_work_record   work;           /* ... that which took most time */
    double                   occupancy;      /* of all, by time; NaN: not known */
    enum snd_occupancy_limit limit;          /* of `work` */
    uint32_t                 places;         /* how many launched it ... */
    struct snd_where         where;          /* ... that which took most time; name ... */
    bool                     launched;       /* ... if a launch is in the trace at all */
    struct sonde_text        stack, shapes;  /* empty: not grouped by it */
    uint32_t                 operators;      /* different names of ranges that launched it */
};

struct snd_kernels {
    struct sonde_trace    *trace;
    struct snd_launches   *launches; /* its own, or lent */
    bool                   owns_launches;
    struct snd_kernel_row *rows;
    uint32_t               count, room;
    int64_t                total_ns; /* of all rows */
    struct snd_place_texts texts;    /* stacks and shapes of rows */
};

/*
 * Rows by name and `groups` (enum sonde_group), in the order in which they first ran. `stack_depth`:
 * frames that SONDE_GROUP_STACK compares; 0: 5. Owns: the caller, until snd_kernels_free().
 */
SND_CHECKED enum sonde_status snd_kernels_new(struct sonde_trace *trace, unsigned groups,
                                              uint32_t stack_depth, struct snd_kernels **out,
                                              struct sonde_error *err);
/* The same by name alone, of launches that are read already and outlive it: without a walk. */
SND_CHECKED enum sonde_status snd_kernels_launched(struct snd_launches *launches,
                                                   struct snd_kernels **out,
                                                   struct sonde_error  *err);
void                          snd_kernels_free(struct snd_kernels *kernels);

#endif
