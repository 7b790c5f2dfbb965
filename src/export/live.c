/* SPDX-License-Identifier: Apache-2.0 */
#include "export/live.h"

#include <stdlib.h>

void snd_live_release(struct snd_live *live)
{
    snd_map_release(&live->map);
    free(live->sizes);
    free(live->spare);
}

static bool take_place(struct snd_live *live, uint32_t *place)
{
    if (live->spare_count > 0) {
        *place = live->spare[--live->spare_count];
        return true;
    }
    if (!snd_grow(&live->sizes, &live->size_room, live->size_count, sizeof *live->sizes))
        return false;
    *place = live->size_count++;
    return true;
}

/* The bytes that were live at `key` until now; they no longer are. */
static int64_t forget(struct snd_live *live, struct snd_key key)
{
    uint32_t place;

    if (!snd_map_get(&live->map, key, &place))
        return 0;
    snd_map_remove(&live->map, key);
    /* A place that cannot be remembered is merely not used again. */
    if (snd_grow(&live->spare, &live->spare_room, live->spare_count, sizeof *live->spare))
        live->spare[live->spare_count++] = place;
    return (int64_t)live->sizes[place];
}

static int64_t remember(struct snd_live *live, struct snd_key key, uint64_t size)
{
    uint32_t place;
    /* An address taken twice: the free between was not seen. */
    int64_t before = forget(live, key);

    if (!take_place(live, &place) || !snd_map_put(&live->map, key, place)) {
        live->failed = true;
        return 0;
    }
    live->sizes[place] = size;
    return (int64_t)size - before;
}

static int64_t add_total(struct snd_live *live, const struct sonde_event *event, int64_t change)
{
    uint32_t i = 0;

    while (i < live->device_count &&
           (live->devices[i].process != event->process || live->devices[i].device != event->aux))
        i++;
    if (i == SND_LIVE_DEVICES)
        return 0;
    if (i == live->device_count) {
        live->devices[i].process = event->process;
        live->devices[i].device = event->aux;
        live->device_count++;
    }
    /* Sizes are the trace's: they may be absurd, but must not overflow. */
    live->devices[i].bytes = (int64_t)((uint64_t)live->devices[i].bytes + (uint64_t)change);
    return live->devices[i].bytes;
}

int64_t snd_live_event(struct snd_live *live, const struct sonde_event *event, int64_t *total)
{
    struct snd_key key = { event->process, event->aux, event->value };
    uint64_t       size = event->size < INT64_MAX / 4 ? event->size : INT64_MAX / 4;
    int64_t        change = event->kind == SONDE_EVENT_ALLOC ? remember(live, key, size)
                                                             : -forget(live, key);
    int64_t        held = add_total(live, event, change);

    if (total)
        *total = held;
    return change;
}
