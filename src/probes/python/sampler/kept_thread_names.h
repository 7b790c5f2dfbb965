/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/sampler/kept_thread_names.h - the names that Python has for its threads, kept for the sampler.
 *
 * A thread stores its name here when it begins. Only the sampler's thread passes names to the
 * recorder: any other thread that called it would get a lane just for its name.
 *
 * Layer:   probes.
 * Threads: any may tell; one introduces.
 */
#ifndef SND_PROBES_PYTHON_SAMPLER_KEPT_THREAD_NAMES_H
#define SND_PROBES_PYTHON_SAMPLER_KEPT_THREAD_NAMES_H

#include <stdint.h>

void snd_threadname_tell(uint32_t tid, const char *name);
/*
 * sonde_thread_of(), with the name that Python gave the thread rather than `system`, which may be
 * NULL.
 */
uint32_t snd_threadname_introduce(uint32_t tid, const char *system);
/* Renames threads that were introduced before they stored their name. One load if there are none. */
void snd_threadname_catch_up(void);
/* At the start. */
void snd_threadname_clear(void);
/*
 * In a forked child, whose parent may have been in here: the one thread that it has keeps its name.
 * `before`: its number in the parent.
 */
void snd_threadname_in_child(uint32_t before, uint32_t now);

#endif
