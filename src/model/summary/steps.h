/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/summary/steps.h - the steps of every process, and what began in each: a part of the summary.
 *
 *     snd_steps_add(&steps, process, number, ns) for each mark;
 *     snd_steps_measure(&steps, trace);          sorted, with their durations
 *     snd_steps_count(&steps, trace, err);       ranges and the GPU's time of each, and which are
 *                                                whole: one walk
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

#define SND_STEPS_MAX (1u << 24)

/* False: out of memory. Beyond the limit, steps are not kept. */
bool snd_steps_add(struct snd_steps *steps, uint32_t process, uint64_t number, int64_t ns);
bool snd_steps_measure(struct snd_steps *steps, const struct sonde_trace *trace);
SND_CHECKED enum sonde_status snd_steps_count(struct snd_steps *steps, struct sonde_trace *trace,
                                              struct sonde_error *err);
/* Which of them are whole, once their ranges are counted; snd_steps_count() does both. */
void snd_steps_judge(struct snd_steps *steps, const struct sonde_trace *trace);
/* Of a range in a step, by its name: torch.compile compiles. */
bool snd_steps_is_compilation(const char *name, size_t length);
/* Whether the program said that what follows the mark of this step, the last of its process, is none. */
bool snd_steps_is_open(const struct sonde_trace *trace, uint32_t process, uint64_t number);
void snd_steps_release(struct snd_steps *steps);

#endif
