/* SPDX-License-Identifier: Apache-2.0 */
#include "model/counters/counter_names.h"

#include <string.h>

#define MOST SND_THREAD_COUNTERS_MOST

static bool is_same(struct sonde_text a, struct sonde_text b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

/* Its number plus one; 0: it is not known, or there are too many. */
static uint8_t find(struct snd_counter_names *names, struct sonde_text name)
{
    const char               *colon = memchr(name.bytes, ':', name.length);
    size_t                    bare = colon ? (size_t)(colon - name.bytes) : name.length;
    const struct snd_counter *known = snd_counter_find(name.bytes, bare);
    uint32_t                  i = 0;

    while (i < names->count && !is_same(names->items[i].name, name))
        i++;
    if (!known || i == MOST)
        return 0;
    if (i == names->count) {
        names->items[i].known = known;
        names->items[i].name = name;
        names->count++;
    }
    return (uint8_t)(i + 1);
}

void snd_counter_names_add(struct snd_counter_names *names, struct sonde_text list,
                           uint8_t place[MOST])
{
    const char *at = list.bytes, *end = list.bytes + list.length;

    for (uint32_t i = 0; at < end && i < MOST; i++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t      length = (size_t)((comma ? comma : end) - at);
        place[i] = find(names, (struct sonde_text){ at, length });
        at += length + 1;
    }
}
