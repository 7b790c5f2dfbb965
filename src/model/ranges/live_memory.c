/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranges/live_memory.h"

#include <stdlib.h>

#include "format/fields.h"
#include "format/layout.h"

int64_t snd_net_bytes(const uint64_t *words)
{
    /* No memory is larger than 2^62; what claims to be is a damaged event, and counts nothing. */
    int64_t bytes = words[3] >> 62 ? 0 : (int64_t)words[3];

    return SND_EVENT_KIND(words[0]) == SND_EV_ALLOC ? bytes : -bytes;
}

void snd_live_release(struct snd_live *live)
{
    snd_map_release(&live->map);
    free(live->sizes);
    free(live->spare);
    *live = (struct snd_live){ 0 };
}

/* Both arrays grow alike, so that giving a place back never needs memory. */
static bool take_place(struct snd_live *live, uint32_t *place)
{
    if (live->spare_count > 0) {
        *place = live->spare[--live->spare_count];
        return true;
    }
    if (!snd_grow(&live->sizes, &live->size_room, live->size_count, sizeof *live->sizes) ||
        !snd_grow(&live->spare, &live->spare_room, live->size_count, sizeof *live->spare))
        return false;
    *place = live->size_count++;
    return true;
}

/* The bytes that were held at `key` until now; they no longer are. False: none were. */
static bool forget(struct snd_live *live, struct snd_key key, int64_t *size)
{
    uint32_t place;

    *size = 0;
    if (!snd_map_take(&live->map, key, &place))
        return false;
    live->spare[live->spare_count++] = place;
    *size = (int64_t)live->sizes[place];
    return true;
}

static void remember(struct snd_live *live, struct snd_key key, int64_t size)
{
    uint32_t place;

    if (!take_place(live, &place)) {
        live->failed = true;
        return;
    }
    live->sizes[place] = (uint64_t)size;
    live->failed |= !snd_map_put(&live->map, key, place);
}

static int64_t add_total(struct snd_live *live, uint32_t process, uint32_t device, int64_t change)
{
    uint32_t i = 0;

    while (i < live->device_count &&
           (live->devices[i].process != process || live->devices[i].device != device))
        i++;
    if (i == SND_LIVE_DEVICES)
        return 0;
    if (i == live->device_count) {
        live->devices[i].process = process;
        live->devices[i].device = device;
        live->device_count++;
    }
    /* Sizes are the trace's: they may be absurd, but must not overflow. */
    live->devices[i].bytes = (int64_t)((uint64_t)live->devices[i].bytes + (uint64_t)change);
    return live->devices[i].bytes;
}

struct snd_live_change snd_live_event(struct snd_live *live, uint32_t process,
                                      const uint64_t *words)
{
    uint32_t               device = SND_LOW(words[1]);
    struct snd_key         key = { SND_PAIR(device, process), words[2], 0 };
    struct snd_live_change change = { .counted = snd_net_bytes(words), .known = true };
    int64_t                before;
    /* An address taken twice: the free between was not seen. */
    bool was_held = forget(live, key, &before);

    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC) {
        remember(live, key, change.counted);
        change.held = change.counted - before;
    } else {
        change.held = -before;
        change.known = was_held || words[3] != 0;
        live->unmatched += !change.known;
        if (change.counted == 0)
            change.counted = -before;
    }
    change.total = add_total(live, process, device, change.held);
    return change;
}
