/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/sizes.h - how large what is given back was, where a free does not say it.
 *
 * Only a walk by time gives the right answer: what one thread takes, another may give back.
 * Memory: blocks held at once.
 *
 * Layer: model. Threads: belongs to one thread.
 */
#ifndef SND_MODEL_SIZES_H
#define SND_MODEL_SIZES_H

#include "base/map.h"

struct snd_sizes {
    struct snd_map live; /* (process, device, address) to a place in bytes */
    uint64_t      *bytes;
    uint32_t      *spare; /* places to use again */
    uint32_t       count, room, spare_count, spare_room;
    uint64_t       unmatched; /* frees without a size, of what was taken before the recording */
    bool           failed;    /* memory ran out */
};

/* All zero is an empty one. */
void snd_sizes_release(struct snd_sizes *sizes);

/*
 * Takes an ALLOC or FREE in, by its words; *bytes is its net size, put right for a free that
 * does not tell its own. False: a free of which nobody knows the size, to be passed over.
 */
bool snd_sizes_event(struct snd_sizes *sizes, uint32_t process, const uint64_t *words,
                     int64_t *bytes);

#endif
