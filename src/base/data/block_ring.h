/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/data/block_ring.h - blocks of bytes from one thread to another, in order.
 *
 * One fills:                                     The other takes:
 *
 *     block = snd_ring_empty(ring);                  while ((block = snd_ring_full(ring)) != NULL) {
 *     .. bytes, and block->length ..                     .. bytes ..
 *     snd_ring_hand_on(ring);                            snd_ring_done(ring);
 *     snd_ring_end(ring);                            }
 *
 * Each waits for the other: memory is that of the blocks. Blocks are large, as waking a thread takes a few microseconds.
 *
 * Layer: base. Threads: one fills, one takes.
 */
#ifndef SND_BASE_DATA_BLOCK_RING_H
#define SND_BASE_DATA_BLOCK_RING_H

#include <stdbool.h>
#include <stddef.h>

#define SND_BLOCK_BYTES ((size_t)256 << 10) /* of a block, at first */

struct snd_block {
    char  *bytes; /* the ring's */
    size_t length, capacity;
};

struct snd_ring;

/* NULL: out of memory. */
struct snd_ring *snd_ring_new(void);
/* No thread uses it any more. */
void snd_ring_free(struct snd_ring *ring);

/* ---- who fills */

/* The next block, without bytes. NULL: nobody wants more. */
struct snd_block *snd_ring_empty(struct snd_ring *ring);
/* Makes the block larger; its bytes stay. False: out of memory. */
bool snd_ring_grow(struct snd_block *block, size_t capacity);
void snd_ring_hand_on(struct snd_ring *ring);
/* No block comes any more. */
void snd_ring_end(struct snd_ring *ring);

/* ---- who takes */

/* The next block that was handed on. NULL: there are no more. */
const struct snd_block *snd_ring_full(struct snd_ring *ring);
/* It may be filled again. */
void snd_ring_done(struct snd_ring *ring);
/* No more is wanted; what was handed on and not taken is lost. */
void snd_ring_stop(struct snd_ring *ring);

#endif
