/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/counts/live_blocks.h - stack and size of a live block, by its address. No lock.
 *
 * A tree of three levels, as a processor's page tables: 11 bits of the address, 16, 16. A leaf has
 * an entry for each 16 bytes of a MiB of addresses; only pages that are written to take memory,
 * half of the heap's at most. Blocks between (allocators other than glibc's give blocks of 8 bytes)
 * have a tree of their own.
 *
 * An address belongs to one thread between its malloc and its free, so that its entry does, too.
 */
#ifndef SND_PROBES_HEAP_COUNTS_LIVE_BLOCKS_H
#define SND_PROBES_HEAP_COUNTS_LIVE_BLOCKS_H

#include "probes/heap/heap.h"

struct snd_heap_block {
    uint32_t stack; /* of stack_tallies.h; 0: there is no such block */
    uint64_t size;
};

/* False: no memory for the entry, or the address is outside user space. */
bool snd_heap_block_put(const void *address, struct snd_heap_block block);
/* Finds and removes. */
struct snd_heap_block snd_heap_block_take(const void *address);

#endif
