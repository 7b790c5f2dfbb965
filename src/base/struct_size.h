/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/struct_size.h - options that a caller fills: structs that begin with their size.
 *
 * Such a struct grows at its end, so a caller built against an older header passes a shorter one.
 *
 * Layer: base (libc only).
 */
#ifndef SND_BASE_STRUCT_SIZE_H
#define SND_BASE_STRUCT_SIZE_H

#include <stddef.h>

#include "base/error.h"

/*
 * Copies the caller's struct over the defaults in `used`, which is `size` bytes long. NULL: the
 * defaults stay. `init` is the macro that a caller begins with.
 * Errors: SONDE_E_ARGUMENT if the struct states no size, or one larger than `size`.
 */
SND_CHECKED enum sonde_status snd_struct_take(const void *given, void *used, size_t size,
                                              const char *init, struct sonde_error *err);

#endif
