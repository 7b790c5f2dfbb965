/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/cuda_calls.h - calls of CUDA's runtime and driver, as ranges of their thread.
 *
 * CUPTI calls us when the program enters and leaves a function. A range with the attribute API is
 * recorded of it, whose correlation the device's work has too. Recorded are those that
 * torch.profiler shows: those of the runtime, except a few that are frequent and of little
 * interest, and of the driver the launches and some memory functions. A call inside another with
 * the same correlation is not recorded again.
 *
 * Layer:   probes.
 * Threads: on and off one at a time (cuda_session.c's lock); the others any.
 */
#ifndef SND_PROBES_CUDA_CUDA_CALLS_H
#define SND_PROBES_CUDA_CUDA_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * CUPTI's result, 0 for success. Not `are_asked`: calls are not recorded, and CUPTI is not told to report them; which
 * contexts there are is known all the same, to wait for their work.
 */
uint32_t snd_calls_on(bool are_asked);
void     snd_calls_off(void);

enum snd_call_seen {
    SND_CALL_SEEN,    /* its begin is known */
    SND_CALL_UNKNOWN, /* its entry has been overwritten since */
    SND_CALL_NOT_SEEN,
};
/* When the call with this correlation began, in ticks. */
enum snd_call_seen snd_call_began(uint32_t correlation, uint64_t *ticks);

/* Whether calls are recorded at all; and whether they were to be. */
bool snd_calls_are_on(void);
bool snd_calls_are_asked(void);

/* When the first call of this epoch began, in ticks; UINT64_MAX: there was none yet. */
uint64_t snd_calls_first(uint32_t epoch);

/* A number that changes with each recorded call. */
uint64_t snd_calls_latest(void);

/* Waits for all work of the contexts seen so far. */
void snd_calls_wait_for_devices(void);

#endif
