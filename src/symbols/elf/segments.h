/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/elf/segments.h - which of many overlapping ranges of addresses an address belongs to.
 *
 * Of the ranges that hold an address, the one with the greatest rank wins. They are cut into
 * disjoint segments once, O(n log n), so that a lookup is a binary search whatever the input.
 *
 * Layer: symbols (sees base/). Threads: lookups any.
 */
#ifndef SND_SYMBOLS_ELF_SEGMENTS_H
#define SND_SYMBOLS_ELF_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#define SND_NO_ITEM UINT32_MAX

struct snd_span {
    uint64_t start, end; /* end: first address after it */
    uint64_t rank;
    uint32_t item;
};

struct snd_segments {
    struct snd_segment {
        uint64_t start;
        uint32_t item; /* or SND_NO_ITEM: a hole */
    } * list;          /* by start */
    uint32_t count;
};

/* Sorts `spans`. False when memory is out. Release with snd_segments_release. */
bool snd_segments_build(struct snd_segments *segments, struct snd_span *spans, uint32_t count);
void snd_segments_release(struct snd_segments *segments);

/* The item at the address, or SND_NO_ITEM. */
uint32_t snd_segments_find(const struct snd_segments *segments, uint64_t address);

#endif
