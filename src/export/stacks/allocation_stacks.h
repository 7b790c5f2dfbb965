/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/stacks/allocation_stacks.h - the call stacks of allocations, for the formats that have stacks.
 *
 * Layer: export. Threads: as a trace.
 */
#ifndef SND_EXPORT_STACKS_ALLOCATION_STACKS_H
#define SND_EXPORT_STACKS_ALLOCATION_STACKS_H

#include "model/memory/heap_stacks.h"
#include "model/samples/mixed_stacks.h"
#include "sonde/export.h"

/* One at a time, by process, those with the greatest peak first. */
struct snd_heap_stacks {
    struct snd_heaps          *heaps;
    struct snd_mixed           mixed; /* names frames; there are no ranges */
    struct snd_mixed_frame    *frames;
    size_t                     count; /* frames, innermost first; at least one */
    const struct snd_heap     *heap;
    const struct snd_heap_row *row;
    uint32_t                   heap_number, row_number; /* of the next */
};

/*
 * `stacks` need not be initialised, and must be released whatever this returns.
 * Errors: SONDE_E_STATE: the trace has no heap; SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_heap_stacks_open(struct snd_heap_stacks *stacks,
                                                   struct sonde_trace     *trace,
                                                   struct sonde_error     *err);
bool snd_heap_stacks_next(struct snd_heap_stacks *stacks); /* false: the end */
void snd_heap_stacks_release(struct snd_heap_stacks *stacks);

#endif
