/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/outside/hand_over.h - hands a script to the Python of another process, which runs it by itself.
 *
 * CPython 3.14 and later look for one between two instructions of a thread (PEP 768): nothing is stopped, and no code of
 * ours is put into the process. What is written: the script's path, and that there is one.
 *
 * Layer: pystack. Threads: any.
 */
#ifndef SND_PYSTACK_OUTSIDE_HAND_OVER_H
#define SND_PYSTACK_OUTSIDE_HAND_OVER_H

#include "pystack/interpreter/interpreters.h"

/*
 * The main thread runs the file at `path` (absolute, as that process sees it) as soon as it runs Python again.
 * Errors: SONDE_E_UNSUPPORTED: a version before 3.14; SONDE_E_STATE: it was told not to take scripts, or has no main
 *         thread; SONDE_E_ARGUMENT: the path is too long; SONDE_E_IO: its memory may not be written.
 */
SND_CHECKED enum sonde_status snd_python_hand_over(const struct snd_python *python,
                                                   const char *path, struct sonde_error *err);

#endif
