/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_blocks.h - a table of live blocks and their sizes.
 *
 * For the blocks of Python's allocators: the requested size of a small one is not known when it is
 * freed.
 *
 * Layer:   probes.
 * Threads: any; parted by address, each part behind a lock that is held for a few instructions.
 */
#ifndef SND_PROBES_PYTHON_MEMORY_MEMORY_BLOCKS_H
#define SND_PROBES_PYTHON_MEMORY_MEMORY_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

/* In the size of a block that Python has dropped and keeps for reuse. */
#define SND_BLOCK_KEPT ((size_t)1 << (8 * sizeof(size_t) - 1))

/* Puts it in, or gives it another size. False when memory ran out. */
bool snd_blocks_put(const void *block, size_t size);

/* Takes it out; false if it was not there. */
bool snd_blocks_take(const void *block, size_t *size);

/* 0 if it is not there. */
size_t snd_blocks_size(const void *block);

void snd_blocks_forget(void);
void snd_blocks_unlock(void); /* in a forked child, whose parent's threads may have held locks */

#endif
