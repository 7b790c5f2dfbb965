/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/summary/steps.h - the steps of every process, and what began in each: a part of the summary.
 *
 *     snd_steps_add(&steps, process, number, ns) for each mark;
 *     snd_steps_measure(&steps, trace);          sorted, with their durations
 *     snd_steps_count(&steps, trace, err);       ranges and the GPU's time of each: one walk
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_SUMMARY_STEPS_H
#define SND_MODEL_SUMMARY_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sonde/model.h"

/* Released by snd_steps_release(); zeroes are none. */
struct snd_steps {
    struct sonde_step_row *rows;
    uint32_t               count, room;
    uint32_t              *first; /* of each process, in rows; one more at the end */
};

/* False: out of memory. Beyond a limit, steps are not kept. */
bool snd_steps_add(struct snd_steps *steps, uint32_t process, uint64_t number, int64_t ns);
bool snd_steps_measure(struct snd_steps *steps, const struct sonde_trace *trace);
SND_CHECKED enum sonde_status snd_steps_count(struct snd_steps *steps, struct sonde_trace *trace,
                                              struct sonde_error *err);
/*
 * Whether it was one, once they are counted. The last of a process, in which no range began although
 * some did in the one before, is what came after the loop: an optimizer that marks the end of each
 * step marks one too many.
 */
bool snd_steps_ran(const struct snd_steps *steps, uint32_t i);
void snd_steps_release(struct snd_steps *steps);

#endif
