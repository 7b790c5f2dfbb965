/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/dtypes.h - the types that parameters and what layers pass on have.
 *
 * Layer: pipe. Threads: any.
 */
#ifndef SND_PIPE_DTYPES_H
#define SND_PIPE_DTYPES_H

#include <stddef.h>

/* Bytes of a value of the type, "torch.float32"; 0 if it is none that layers pass on. */
size_t snd_dtype_bytes(const char *dtype);
/* The names, by number; NULL past the last. */
const char *snd_dtype_name(size_t index);

#endif
