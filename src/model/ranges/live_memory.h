/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/live_memory.h - memory that is held at a moment of a walk by time, and how much an event changes it.
 *
 * Needed because a free need not tell its size, and may free what was allocated before the
 * recording, or by another thread: only a walk by time gives the right answer. Memory: blocks held
 * at once.
 *
 * Layer: model. Threads: belongs to one thread.
 */
#ifndef SND_MODEL_RANGES_LIVE_MEMORY_H
#define SND_MODEL_RANGES_LIVE_MEMORY_H

#include "base/data/map.h"

#define SND_LIVE_DEVICES 64 /* of which totals are kept */

struct snd_live {
    struct snd_map map; /* (process, device, address) to a place in sizes */
    uint64_t      *sizes;
    uint32_t      *spare; /* places to use again */
    uint32_t       size_count, size_room, spare_count, spare_room;
    uint64_t       unmatched; /* frees without a size, of what was taken before the recording */
    struct {
        uint32_t process, device;
        int64_t  bytes;
    } devices[SND_LIVE_DEVICES];
    uint32_t device_count;
    bool     failed; /* memory ran out */
};

struct snd_live_change {
    int64_t
        counted;  /* net bytes that count for a range: as told, or what is known to be held there */
    int64_t held; /* by how much what is known to be held changes */
    int64_t total; /* what the process then holds on the device */
    bool    known; /* false: a free of unknown size, to be passed over */
};

/* All zero is an empty one. */
void snd_live_release(struct snd_live *live);

/* Takes an ALLOC or FREE in, by its words. */
struct snd_live_change snd_live_event(struct snd_live *live, uint32_t process,
                                      const uint64_t *words);

/* Net bytes of an ALLOC or FREE as its words tell them. */
int64_t snd_net_bytes(const uint64_t *words);

#endif
