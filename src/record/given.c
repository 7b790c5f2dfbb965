/* SPDX-License-Identifier: Apache-2.0 */
#include "record/given.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/struct_size.h"
#include "record/say.h"

const void *snd_given_other(const void *given, void *room, size_t size, const char *function)
{
    static atomic_bool was_said;
    struct sonde_error err;

    memset(room, 0, size);
    if (snd_struct_take(given, room, size, "{ .struct_size = sizeof(struct sonde_...) }", &err) ==
        SONDE_OK)
        return room;
    if (!atomic_exchange(&was_said, true))
        snd_say("%s: not recorded: %s", function, err.message);
    return NULL;
}
