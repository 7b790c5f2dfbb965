/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/heap_functions.h - who allocates, by function and line: what the line itself asks for, and with
 * all that it calls.
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_MEMORY_HEAP_FUNCTIONS_H
#define SND_MODEL_MEMORY_HEAP_FUNCTIONS_H

#include "model/memory/heap_stacks.h"

struct snd_heap_function {
    uint32_t             heap;
    struct sonde_frame   frame;
    struct snd_heap_sums self,
        total;       /* total: a stack that has the line several times counts once */
    uint32_t latest; /* while it is filled: the stack that was added last */
};

struct snd_heap_functions {
    struct snd_heap_function *rows; /* by heap, then the greatest peak first */
    uint32_t                  count, room;
};

/* Errors: SONDE_E_NOMEM. Release `out` in any case. */
SND_CHECKED enum sonde_status snd_heap_functions_new(struct sonde_trace        *trace,
                                                     const struct snd_heaps    *heaps,
                                                     struct snd_heap_functions *out,
                                                     struct sonde_error        *err);
void                          snd_heap_functions_release(struct snd_heap_functions *functions);

#endif
