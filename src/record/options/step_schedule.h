/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/options/step_schedule.h - which steps are recorded: torch.profiler's rule.
 *
 * Layer:   record.
 * Threads: snd_schedule_parse any; the others with the control lock or snd_rec.lock held.
 */
#ifndef SND_RECORD_OPTIONS_STEP_SCHEDULE_H
#define SND_RECORD_OPTIONS_STEP_SCHEDULE_H

#include "record/state.h"

/* For the environment: "wait=1,warmup=1,active=2". */
bool snd_schedule_parse(const char *text, struct sonde_schedule *out);

/* Whether the recording has a schedule, and whether the current step is one of warm-up. */
bool snd_schedule_is_set(void);
bool snd_schedule_is_warming_up(void);

#endif
