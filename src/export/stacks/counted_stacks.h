/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/stacks/counted_stacks.h - the events of counters by call stack, for the formats that have stacks.
 *
 * Layer: export. Threads: as a trace.
 */
#ifndef SND_EXPORT_STACKS_COUNTED_STACKS_H
#define SND_EXPORT_STACKS_COUNTED_STACKS_H

#include "model/samples/mixed_stacks.h"
#include "model/counters/stack_counters.h"

/* Those of the counters that were asked for: their numbers are from 0 to counter_count. */
struct snd_counted_export {
    struct sonde_trace       *trace;
    struct snd_counter_names  names;
    struct snd_counted_stacks stacks;
    uint32_t                  chosen[SND_THREAD_COUNTERS_MOST]; /* in names and stacks */
    uint32_t                  counter_count;
    struct snd_mixed          mixed; /* names frames; there are no ranges */
    struct snd_mixed_frame   *frames;
    size_t                    frame_count; /* of the current stack, innermost first; at least one */
    uint32_t                  at;          /* the next stack */
};

/*
 * `counter`: a name, "all", or NULL: all. `counted` need not be initialised, and must be released whatever this returns.
 * Errors: SONDE_E_STATE: the trace has no such events; SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_counted_open(struct snd_counted_export *counted,
                                               struct sonde_trace *trace, const char *counter,
                                               struct sonde_error *err);
void                          snd_counted_release(struct snd_counted_export *counted);

/* The next stack, with its frames; NULL: the end. */
const struct snd_counted_stack *snd_counted_next(struct snd_counted_export *counted);

struct sonde_text snd_counted_name(const struct snd_counted_export *counted, uint32_t counter);
/* Nanoseconds, not events? */
bool     snd_counted_is_time(const struct snd_counted_export *counted, uint32_t counter);
uint64_t snd_counted_events(const struct snd_counted_export *counted,
                            const struct snd_counted_stack *stack, uint32_t counter);
uint64_t snd_counted_samples(const struct snd_counted_export *counted,
                             const struct snd_counted_stack *stack, uint32_t counter);

#endif
