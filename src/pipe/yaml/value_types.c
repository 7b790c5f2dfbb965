/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/yaml/value_types.h"

#include <stdbool.h>
#include <string.h>

#include "format/dtypes.h"

/* Integers of more bits are indices: a model's input, not what its layers compute. */
static bool is_passed_on(uint8_t number)
{
    const struct snd_dtype *dtype = snd_dtype(number);
    bool                    is_integer = number == SONDE_QINT8 || number == SONDE_QUINT8 ||
                      (dtype && dtype->kind == SND_DTYPE_INTEGER);

    return dtype && (dtype->kind == SND_DTYPE_FLOAT || (is_integer && dtype->bytes == 1));
}

size_t snd_value_bytes(const char *dtype)
{
    uint8_t number = strncmp(dtype, "torch.", 6) == 0 ? snd_dtype_find(dtype) : SONDE_DTYPE_UNKNOWN;

    return is_passed_on(number) ? snd_dtype(number)->bytes : 0;
}

const char *snd_value_type(size_t index)
{
    for (unsigned number = 0; number < SONDE_DTYPE_UNKNOWN; number++)
        if (is_passed_on((uint8_t)number) && index-- == 0)
            return snd_dtype((uint8_t)number)->name;
    return NULL;
}
