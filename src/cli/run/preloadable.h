/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/preloadable.h - whether a program loads what LD_PRELOAD names: checked before it is run, since one that does not gives no error.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUN_PRELOADABLE_H
#define SND_CLI_RUN_PRELOADABLE_H

#include <stddef.h>

#include "base/error.h"

/*
 * Errors: SONDE_E_STATE with the reason: a static program, one of another machine or C library, one that
 * changes its user. What cannot be read is not refused: running it will say why.
 */
SND_CHECKED enum sonde_status snd_preloadable(const char *program, struct sonde_error *err);

/* The same of the bytes of an ELF file, as far as they were read; `what` is for messages. */
SND_CHECKED enum sonde_status snd_preloadable_elf(const unsigned char *bytes, size_t size,
                                                  const char *what, struct sonde_error *err);

#endif
