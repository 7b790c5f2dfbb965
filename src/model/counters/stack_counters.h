/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/counters/stack_counters.h - call stacks, and functions, with the counters that sampled them: `sonde run --per-function` of native
 * programs.
 *
 * A sample stands for so many events, which its innermost function caused; they are in the totals of all
 * functions on its stack, once each.
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_COUNTERS_STACK_COUNTERS_H
#define SND_MODEL_COUNTERS_STACK_COUNTERS_H

#include "base/error.h"
#include "model/counters/counter_names.h"

/* A call stack of a process; 0: not known. By counter: how many samples found it, and for how many events they stand. */
struct snd_counted_stack {
    uint32_t process, stack;
    uint64_t samples[SND_THREAD_COUNTERS_MOST], events[SND_THREAD_COUNTERS_MOST];
};

struct snd_counted_stacks {
    struct snd_counted_stack *rows; /* owned; in the order of the trace */
    uint32_t                  count, capacity;
};

/* Does the trace have any? */
bool snd_counted_stacks_there(const struct sonde_trace *trace);
/*
 * Counters that are not in `names` yet are added. Owns: the caller releases `stacks`, whatever this returns.
 * Errors: SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_counted_stacks_fill(struct snd_counted_stacks *stacks,
                                                      struct sonde_trace        *trace,
                                                      struct snd_counter_names  *names,
                                                      struct sonde_error        *err);
void                          snd_counted_stacks_release(struct snd_counted_stacks *stacks);

struct snd_counted_function {
    struct sonde_text name, file;
    uint32_t          line; /* where it begins; 0: not known */
    uint64_t          total[SND_THREAD_COUNTERS_MOST], self[SND_THREAD_COUNTERS_MOST];
};

struct snd_counted_functions {
    struct snd_counted_function
            *rows; /* owned; most events of its own first, of the first counter */
    uint32_t count;
};

/* The functions of those stacks. Owns, Errors: likewise. */
SND_CHECKED enum sonde_status snd_counted_functions_fill(struct snd_counted_functions *functions,
                                                         struct sonde_trace           *trace,
                                                         struct snd_counter_names     *names,
                                                         struct sonde_error           *err);
void snd_counted_functions_release(struct snd_counted_functions *functions);

#endif
