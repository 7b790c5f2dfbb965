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

/* Where a process records that may not write beside the other files; NULL: nowhere. */
const char *snd_environment_others(void);

/*
 * Which process of a job it is, as its launcher says: torchrun (and whoever sets the same variables), SLURM, Open MPI, PMI.
 * Fills in snd_rec.job where `given` does not say it: UINT32_MAX is unknown.
 */
void snd_environment_rank(uint32_t given_rank, uint32_t given_world_size);

/* Adds a value (NULL: nothing) after a blank; what would not be plain in JSON is left out. */
void snd_plain_append(char *text, size_t size, const char *value);

/*
 * Whether allocations are all that `sonde run` records. Then a helper thread would do little, and
 * the C library's malloc is faster in a process of one thread.
 */
bool snd_environment_is_heap(void);

/*
 * Fills in the options that `sonde run` passes; false: it wants no recording. Nor does a program that
 * defines snd_recorder_is_tool: the static `sonde`, which has the recorder to record others.
 */
bool snd_environment_options(struct sonde_options *out);

#endif
