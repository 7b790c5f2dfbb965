/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/sampler/sampler.h - samples of this process: a thread of its own, outside the interpreter.
 *
 * The thread never takes the interpreter lock, runs no Python code and holds no object: it reads
 * all it needs from memory, as another process would.
 *
 * Whoever forks, os.fork() or a C function that calls fork(), the child has a sampler of its own
 * from the start: a handler of pthread_atfork() makes it. (vfork() and posix_spawn() run no
 * handlers; what they start is another program.)
 *
 * Layer:   probes.
 * Threads: start and stop by one at a time; the interpreter's lock is not needed.
 */
#ifndef SND_PROBES_PYTHON_SAMPLER_SAMPLER_H
#define SND_PROBES_PYTHON_SAMPLER_SAMPLER_H

#include "pystack/sampling/sampling.h"

/*
 * Errors: SONDE_E_BUSY: it samples already, or the program has the signal that native frames need;
 *         SONDE_E_UNSUPPORTED, SONDE_E_STATE: this Python or this system cannot be sampled;
 *         SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_sampler_start(double hz, bool native, struct sonde_error *err);
/* Writes what has not been written yet. Without effect if it does not sample. */
void snd_sampler_stop(void);
/* Likewise, and continues; returns the clock as snd_sampling_flush() does. */
uint64_t snd_sampler_flush(void);

/* Threads in this code object's function are left out, from the next start on. True: it is new, and must stay. */
bool snd_sampler_own_code(const void *code);

bool snd_sampler_is_on(void);
/* Can it interrupt a thread, so that the thread reads its own stack (interrupt.h)? */
bool snd_sampler_interrupts(void);
/*
 * The counts of the last session that was stopped, by SND_SAMPLER_ROUNDS and the others of
 * format/tallies.def.
 */
const struct snd_sampling_counts *snd_sampler_counts(void);

#endif
