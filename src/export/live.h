/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/live.h - memory that is held at a moment of a walk in time order.
 *
 * Needed because a free need not tell its size, and may give back what was taken before the
 * recording. Memory: blocks live at once.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_LIVE_H
#define SND_EXPORT_LIVE_H

#include "base/map.h"
#include "sonde/trace.h"

#define SND_LIVE_DEVICES 64

struct snd_live {
    struct snd_map map; /* (process, device, address) to a place in sizes */
    uint64_t      *sizes;
    uint32_t      *spare; /* places to use again */
    uint32_t       size_count, size_room, spare_count, spare_room;
    struct {
        uint32_t process, device;
        int64_t  bytes;
    } devices[SND_LIVE_DEVICES];
    uint32_t device_count;
    bool     failed; /* memory ran out */
};

/* All zero is an empty one. */
void snd_live_release(struct snd_live *live);

/*
 * Takes an ALLOC or FREE event in; returns by how much the bytes held change, and in *total
 * (unless NULL) what the event's process then holds on the event's device.
 */
int64_t snd_live_event(struct snd_live *live, const struct sonde_event *event, int64_t *total);

#endif
