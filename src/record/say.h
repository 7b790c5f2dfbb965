/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/say.h - a line to the person who runs the program.
 *
 * Layer: record. Threads: any.
 */
#ifndef SND_RECORD_SAY_H
#define SND_RECORD_SAY_H

#include "base/error.h"

/* When the library is loaded: remembers what standard error is. */
void snd_say_init(void);

/*
 * Writes "sonde: ..." and a line end to standard error in one call. Says nothing where number 2 is
 * no longer what it was and may be a file of the program's own.
 */
void snd_say(const char *format, ...) SONDE_PRINTF(1, 2);

#endif
