/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/unload.h - whether this code may be unmapped while the process goes on.
 *
 * The shared library stays (linked with -z nodelete), and so does a program. The static library may
 * be part of a plugin, which dlclose() removes with all threads' ways back into it: then nothing of
 * the recorder may be left that would run, or be called, later.
 *
 * Layer:   record.
 * Threads: any.
 */
#ifndef SND_RECORD_UNLOAD_H
#define SND_RECORD_UNLOAD_H

#include <stdbool.h>

/* Whether this code is in a library that dlclose() unmaps. */
bool snd_unload_is_possible(void);

/* Called once when the library is loaded, to tell dlclose() from the end of the process later. */
void snd_unload_init(void);

/* Asked in a destructor that runs late: whether dlclose() runs it, so that the code is about to be unmapped. */
bool snd_unload_is_now(void);

#endif
