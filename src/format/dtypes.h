/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/dtypes.h - what is known of the types of tensors' elements (sonde/dtypes.h).
 *
 * Layer: format. Threads: any.
 */
#ifndef SND_FORMAT_DTYPES_H
#define SND_FORMAT_DTYPES_H

#include <stddef.h>
#include <stdint.h>

#include "sonde/dtypes.h"

enum snd_dtype_kind {
    SND_DTYPE_NONE, /* not a number of the list */
    SND_DTYPE_BOOL,
    SND_DTYPE_INTEGER,
    SND_DTYPE_FLOAT,
    SND_DTYPE_COMPLEX,
    SND_DTYPE_OTHER,
};

struct snd_dtype {
    const char *name; /* "float32" */
    const char *cxx;  /* "float" */
    uint8_t     bytes, kind;
};

/* By enum sonde_dtype, as a trace has it. NULL: not in the list. */
const struct snd_dtype *snd_dtype(uint8_t number);
/* The number of a name ("float32", or "torch.float32"); SONDE_DTYPE_UNKNOWN: there is none. */
uint8_t snd_dtype_find(const char *name);

#endif
