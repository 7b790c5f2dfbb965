/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/dtypes.h"

#include <string.h>

/* Integers of 32 and 64 bits are indices: a model's input, not what its layers compute. */
static const struct {
    const char *name;
    size_t      bytes;
} dtypes[] = {
    { "torch.float32", 4 }, { "torch.float16", 2 },       { "torch.bfloat16", 2 },
    { "torch.float64", 8 }, { "torch.float8_e4m3fn", 1 }, { "torch.float8_e5m2", 1 },
    { "torch.qint8", 1 },   { "torch.quint8", 1 },        { "torch.int8", 1 },
    { "torch.uint8", 1 },
};

size_t snd_dtype_bytes(const char *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, dtype) == 0)
            return dtypes[i].bytes;
    return 0;
}

const char *snd_dtype_name(size_t index)
{
    return index < sizeof dtypes / sizeof dtypes[0] ? dtypes[index].name : NULL;
}
