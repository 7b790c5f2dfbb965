/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/threadnames.h - the names that Python has for its threads, kept for the sampler.
 *
 * A thread tells its name as it begins. The recorder is told by the sampler's thread alone: a
 * thread that calls it would be given a buffer of its own, for nothing but its name.
 *
 * Layer:   probes.
 * Threads: any may tell; one introduces.
 */
#ifndef SND_PROBES_PYTHON_THREADNAMES_H
#define SND_PROBES_PYTHON_THREADNAMES_H

#include <stdint.h>

void snd_threadname_tell(uint32_t tid, const char *name);
/* sonde_thread_of(), with the name that was told rather than `system`, which may be NULL. */
uint32_t snd_threadname_introduce(uint32_t tid, const char *system);
/* Renames those that were introduced before they told. One load if there are none. */
void snd_threadname_catch_up(void);
/* At the start. */
void snd_threadname_clear(void);
/*
 * In a forked child, whose parent may have been in here: the one thread that it has keeps its name.
 * `before`: its number in the parent.
 */
void snd_threadname_in_child(uint32_t before, uint32_t now);

#endif
