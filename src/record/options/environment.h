/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/options/environment.h - what the recorder reads from the environment.
 *
 * Always with secure_getenv: a set-user-id program must not write where its caller tells it to.
 *
 * Layer: record. Threads: any.
 */
#ifndef SND_RECORD_OPTIONS_ENVIRONMENT_H
#define SND_RECORD_OPTIONS_ENVIRONMENT_H

#include "record/state.h"

/* Where a process records that may not write to the place of the others; NULL: nowhere. */
const char *snd_environment_others(void);

/* `given`, unless that is UINT32_MAX (unknown): then the number that the variable holds, if any. */
uint32_t snd_environment_number(const char *name, uint32_t given);

/*
 * Whether allocations are all that `sonde run` records. Then a helper thread would do little, and
 * the C library's malloc is faster in a process of one thread.
 */
bool snd_environment_is_heap(void);

/* Fills in the options that `sonde run` asks for; false: no recording is asked for. */
bool snd_environment_options(struct sonde_options *out);

#endif
