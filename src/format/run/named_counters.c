/* SPDX-License-Identifier: Apache-2.0 */
#include "format/run/named_counters.h"

#include <string.h>

const struct snd_counter snd_counters[SND_COUNTERS] = {
#define SND_COUNTER(NAME, name, alias, type, config, unit, thread, usual, of, share, is_lines) \
    { name,                                                                                    \
      alias,                                                                                   \
      SND_COUNTER_##type,                                                                      \
      config,                                                                                  \
      SND_COUNTER_##unit,                                                                      \
      SND_COUNTER_BY_##thread,                                                                 \
      usual,                                                                                   \
      of,                                                                                      \
      share,                                                                                   \
      is_lines },
#include "format/run/named_counters.def"
#undef SND_COUNTER
};

static bool is_it(const char *known, const char *name, size_t length)
{
    return length > 0 && strlen(known) == length && memcmp(known, name, length) == 0;
}

const struct snd_counter *snd_counter_find(const char *name, size_t length)
{
    for (size_t i = 0; i < SND_COUNTERS; i++)
        if (is_it(snd_counters[i].name, name, length) || is_it(snd_counters[i].alias, name, length))
            return &snd_counters[i];
    return NULL;
}
