/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sizes.h"

#include <stdlib.h>

#include "format/fields.h"
#include "format/layout.h"

void snd_sizes_release(struct snd_sizes *s)
{
    snd_map_release(&s->live);
    free(s->bytes);
    free(s->spare);
}

static bool give_back(struct snd_sizes *s, struct snd_key key, const uint64_t *words,
                      int64_t *bytes)
{
    uint32_t place;

    if (!snd_map_get(&s->live, key, &place)) {
        s->unmatched += words[3] == 0;
        return words[3] != 0;
    }
    if (*bytes == 0)
        *bytes = -(int64_t)s->bytes[place];
    snd_map_remove(&s->live, key);
    s->spare[s->spare_count++] = place;
    return true;
}

bool snd_sizes_event(struct snd_sizes *s, uint32_t process, const uint64_t *words, int64_t *bytes)
{
    struct snd_key key = { SND_PAIR(SND_LOW(words[1]), process), words[2], 0 };
    uint32_t       place;

    if (SND_EVENT_KIND(words[0]) == SND_EV_FREE)
        return give_back(s, key, words, bytes);
    if (snd_map_get(&s->live, key, &place)) { /* its free is not in the trace */
        s->bytes[place] = (uint64_t)*bytes;
        return true;
    }
    if (s->spare_count > 0) {
        place = s->spare[--s->spare_count];
    } else {
        place = s->count;
        /* Both grow alike, so that giving a place back never needs memory. */
        if (!snd_grow(&s->bytes, &s->room, place, sizeof *s->bytes) ||
            !snd_grow(&s->spare, &s->spare_room, place, sizeof *s->spare)) {
            s->failed = true;
            return true;
        }
        s->count++;
    }
    s->bytes[place] = (uint64_t)*bytes;
    s->failed |= !snd_map_put(&s->live, key, place);
    return true;
}
