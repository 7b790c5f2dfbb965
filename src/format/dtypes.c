/* SPDX-License-Identifier: Apache-2.0 */
#include "format/dtypes.h"

#include <string.h>

#include "base/count_of.h"

static const struct snd_dtype dtypes[] = {
#define ENTRY(number, NAME, name, cxx, bytes, kind) \
    [number] = { name, cxx, bytes, SND_DTYPE_##kind },
    SONDE_DTYPES(ENTRY)
};
#define DTYPES SND_COUNT_OF(dtypes)

const struct snd_dtype *snd_dtype(uint8_t number)
{
    return number < DTYPES ? &dtypes[number] : NULL;
}

uint8_t snd_dtype_find(const char *name)
{
    static const char module[] = "torch.";

    if (strncmp(name, module, sizeof module - 1) == 0)
        name += sizeof module - 1;
    for (size_t i = 0; i < DTYPES; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (uint8_t)i;
    return SONDE_DTYPE_UNKNOWN;
}
