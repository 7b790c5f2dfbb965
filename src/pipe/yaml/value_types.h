/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/yaml/value_types.h - the types that parameters and what layers pass on have.
 *
 * Layer: pipe. Threads: any.
 */
#ifndef SND_PIPE_YAML_VALUE_TYPES_H
#define SND_PIPE_YAML_VALUE_TYPES_H

#include <stddef.h>

/* Bytes of a value of the type, "torch.float32"; 0 if it is none that layers pass on. */
size_t snd_value_bytes(const char *dtype);
/* Their names without "torch.", one after another; NULL past the last. */
const char *snd_value_type(size_t index);

#endif
