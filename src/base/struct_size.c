/* SPDX-License-Identifier: Apache-2.0 */
#include "base/struct_size.h"

#include <string.h>

enum sonde_status snd_struct_take(const void *given, void *used, size_t size, const char *init,
                                  struct sonde_error *err)
{
    size_t stated;

    if (!given)
        return SONDE_OK;
    memcpy(&stated, given, sizeof stated);
    if (stated < sizeof stated || stated > size)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "a struct with struct_size %zu, expected %zu or that of an older header; "
                        "begin with %s, and build against this library",
                        stated, size, init);
    memcpy(used, given, stated);
    memcpy(used, &size, sizeof size);
    return SONDE_OK;
}
