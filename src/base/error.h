/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/error.h - filling a struct sonde_error.
 *
 * Layer: base (libc only).
 */
#ifndef SND_BASE_ERROR_H
#define SND_BASE_ERROR_H

#include "sonde/error.h"

#define SND_CHECKED SONDE_CHECKED

/*
 * Fills `err` (may be NULL) with a formatted message and returns `status`, so
 * that failing is one line: return snd_fail(err, SONDE_E_IO, "cannot ...").
 * snd_fail_os also appends the text of errno, which it reads first.
 */
enum sonde_status snd_fail(struct sonde_error *err, enum sonde_status status, const char *format,
                           ...) SONDE_PRINTF(3, 4);
enum sonde_status snd_fail_os(struct sonde_error *err, enum sonde_status status, const char *format,
                              ...) SONDE_PRINTF(3, 4);

#endif
