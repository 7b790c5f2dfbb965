/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/counts/heap_notes.h - what is recorded of a call that allocates or frees memory: every call, or
 * samples. An allocation is noted after the real call, a free before it.
 */
#ifndef SND_PROBES_HEAP_COUNTS_HEAP_NOTES_H
#define SND_PROBES_HEAP_COUNTS_HEAP_NOTES_H

#include "probes/heap/counts/account.h"
#include "base/hints.h"

extern enum snd_heap_mode snd_heap_mode;

/* Reads SONDE_HEAP; at the first call of all. */
void snd_heap_notes_init(void);

void snd_heap_taken_full(const void *block, size_t size, const struct snd_heap_caller *caller);
void snd_heap_freed_full(const void *block);
void snd_heap_taken_sampled(const void *block, size_t size, const struct snd_heap_caller *caller);
void snd_heap_freed_sampled(const void *block);

/* ------------------------------------------------------------ the quick decision
 *
 * Most calls of a sampled program are passed on at once. An allocation is, while the thread has
 * bytes left until its next sample: none before its first call and in full mode, all while nothing
 * is recorded. A free is, if no noted block lies in a page of that number: pages of neighbouring
 * blocks are neighbours in the table, so that it takes little of the cache.
 */

/* By page: sampled blocks there; SND_HEAP_ALWAYS from then on. In full mode all of them are. */
#define SND_HEAP_ALWAYS UINT8_MAX
#define SND_HEAP_PAGES ((size_t)1 << 16)
extern uint8_t         snd_heap_near[SND_HEAP_PAGES];
static inline uint8_t *snd_heap_near_at(const void *block)
{
    return &snd_heap_near[(uintptr_t)block >> 12 & (SND_HEAP_PAGES - 1)];
}

static inline bool snd_heap_may_know(const void *block)
{
    return *snd_heap_near_at(block) != 0;
}

/* Bytes of the line on which the points of samples lie: one more, so that no allocation has none. */
static inline uint64_t snd_heap_length(size_t size)
{
    return (uint64_t)size + 1;
}

static inline bool snd_heap_passes(size_t size)
{
    uint64_t left;

    if (SND_UNLIKELY(__builtin_sub_overflow(snd_heap_self.left, snd_heap_length(size), &left)))
        return false;
    snd_heap_self.left = left;
    return true;
}

/* Whether a sampled block may have this address. */
extern uint8_t       snd_heap_filter[1 << 16];
static inline size_t snd_heap_filter_at(const void *block)
{
    return (size_t)((uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15u >> 48);
}

/* ------------------------------------------------------------------- the notes */

static inline void snd_heap_taken(const void *block, size_t size,
                                  const struct snd_heap_caller *caller)
{
    if (SND_UNLIKELY(!block))
        return;
    if (snd_heap_mode == SND_HEAP_FULL)
        snd_heap_taken_full(block, size, caller);
    else if (snd_heap_mode == SND_HEAP_SAMPLED && !snd_heap_passes(size))
        snd_heap_taken_sampled(block, size, caller);
    else if (snd_heap_mode == SND_HEAP_OFF)
        snd_heap_self.left = UINT64_MAX;
}

static inline void snd_heap_freed(const void *block)
{
    if (SND_UNLIKELY(!block))
        return;
    if (snd_heap_mode == SND_HEAP_FULL)
        snd_heap_freed_full(block);
    else if (snd_heap_mode == SND_HEAP_SAMPLED && snd_heap_filter[snd_heap_filter_at(block)])
        snd_heap_freed_sampled(block);
}

/* Around a realloc: what the block was, so that it can be put back if there is no memory. */
struct snd_heap_moved {
    struct snd_heap_block  block;
    struct snd_heap_weight weight;
    bool                   is_temporary;
};
struct snd_heap_moved snd_heap_moving(const void *block);
/* `to` NULL: it has failed, or (`freed`) the block is gone. */
void snd_heap_moved(const void *from, struct snd_heap_moved *moved, const void *to, size_t size,
                    bool freed, const struct snd_heap_caller *caller);

#endif
