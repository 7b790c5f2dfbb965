/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_awaits.c - how long coroutines are suspended. */
#include <stdlib.h>
#include <string.h>

#include "probes/python/calls/call_inside.h"

/* Coroutines that are suspended, and since when. */
static struct {
    struct snd_map map; /* key to a place in `since` */
    uint64_t      *since;
    uint32_t      *unused; /* places */
    uint32_t       count, room, unused_count, unused_room;
} suspended;

void snd_calls_suspend(const void *key)
{
    struct snd_key k = { (uintptr_t)key, 0, 0 };
    uint32_t       place;

    if (!snd_map_get(&suspended.map, k, &place)) {
        if (suspended.unused_count > 0) {
            place = suspended.unused[suspended.unused_count - 1];
        } else {
            /* Reserves room to return every place, so that resuming never allocates. */
            if (!snd_grow(&suspended.since, &suspended.room, suspended.count, sizeof(uint64_t)) ||
                !snd_grow(&suspended.unused, &suspended.unused_room, suspended.count,
                          sizeof(uint32_t)))
                return;
            place = suspended.count;
        }
        if (!snd_map_put(&suspended.map, k, place))
            return;
        if (place == suspended.count)
            suspended.count++;
        else
            suspended.unused_count--;
    }
    suspended.since[place] = sonde_clock();
}

/* Its place, which is free for another from now on; false: it was not suspended. */
static bool take_out(const void *key, uint32_t *place)
{
    struct snd_key k = { (uintptr_t)key, 0, 0 };

    if (!snd_map_get(&suspended.map, k, place))
        return false;
    snd_map_remove(&suspended.map, k);
    suspended.unused[suspended.unused_count++] = *place;
    return true;
}

/* The address may be that of a coroutine which was dropped while it was suspended. */
void snd_calls_yield(const void *key)
{
    uint32_t place;

    take_out(key, &place);
}

void snd_calls_resume(struct snd_calls_thread *t, const void *key)
{
    uint32_t place;

    if (!take_out(key, &place))
        return;
    if (t->epoch != sonde_epoch())
        snd_calls_renew_(t);
    if (snd_calls.mode == SND_CALLS_RANGES && sonde_epoch() != 0)
        sonde_attr(SONDE_ATTR_AWAITED, sonde_clock() - suspended.since[place]);
    struct snd_calls_entry *entry = &t->stack[t->depth];
    if (entry->edge && entry->start > suspended.since[place])
        entry->edge->words[SND_CALLS_AWAITING_TICKS] += entry->start - suspended.since[place];
    if (snd_calls.sessions_on)
        snd_calls_sessions_resume_(t, suspended.since[place]);
}

void snd_calls_forget_suspended_(void)
{
    snd_map_release(&suspended.map);
    free(suspended.since);
    free(suspended.unused);
    memset(&suspended, 0, sizeof suspended);
}
