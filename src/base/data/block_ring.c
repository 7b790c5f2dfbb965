/* SPDX-License-Identifier: Apache-2.0 */
#include "base/data/block_ring.h"

#include <pthread.h>
#include <stdlib.h>

#define BLOCKS 4u

struct snd_ring {
    pthread_mutex_t  lock; /* for all below but the blocks, each of which one of the two has */
    pthread_cond_t   handed, emptied;
    size_t           made, done; /* how many blocks were handed on, and taken to their end */
    bool             is_ending, is_stopped;
    struct snd_block blocks[BLOCKS];
};

struct snd_ring *snd_ring_new(void)
{
    struct snd_ring *ring = calloc(1, sizeof *ring);
    bool             good = ring != NULL;

    for (size_t i = 0; good && i < BLOCKS; i++)
        good = snd_ring_grow(&ring->blocks[i], SND_BLOCK_BYTES);
    if (ring) {
        pthread_mutex_init(&ring->lock, NULL);
        pthread_cond_init(&ring->handed, NULL);
        pthread_cond_init(&ring->emptied, NULL);
    }
    if (good)
        return ring;
    snd_ring_free(ring);
    return NULL;
}

void snd_ring_free(struct snd_ring *ring)
{
    if (!ring)
        return;
    for (size_t i = 0; i < BLOCKS; i++)
        free(ring->blocks[i].bytes);
    pthread_cond_destroy(&ring->handed);
    pthread_cond_destroy(&ring->emptied);
    pthread_mutex_destroy(&ring->lock);
    free(ring);
}

bool snd_ring_grow(struct snd_block *block, size_t capacity)
{
    char *bytes = realloc(block->bytes, capacity);

    if (!bytes)
        return false;
    block->bytes = bytes;
    block->capacity = capacity;
    return true;
}

struct snd_block *snd_ring_empty(struct snd_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    while (ring->made - ring->done == BLOCKS && !ring->is_stopped)
        pthread_cond_wait(&ring->emptied, &ring->lock);
    struct snd_block *block = ring->is_stopped ? NULL : &ring->blocks[ring->made % BLOCKS];
    pthread_mutex_unlock(&ring->lock);
    if (block)
        block->length = 0;
    return block;
}

void snd_ring_hand_on(struct snd_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->made++;
    pthread_cond_signal(&ring->handed);
    pthread_mutex_unlock(&ring->lock);
}

void snd_ring_end(struct snd_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->is_ending = true;
    pthread_cond_signal(&ring->handed);
    pthread_mutex_unlock(&ring->lock);
}

const struct snd_block *snd_ring_full(struct snd_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    while (ring->done == ring->made && !ring->is_ending)
        pthread_cond_wait(&ring->handed, &ring->lock);
    struct snd_block *block = ring->done == ring->made ? NULL : &ring->blocks[ring->done % BLOCKS];
    pthread_mutex_unlock(&ring->lock);
    return block;
}

void snd_ring_done(struct snd_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->done++;
    pthread_cond_signal(&ring->emptied);
    pthread_mutex_unlock(&ring->lock);
}

void snd_ring_stop(struct snd_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->is_stopped = true;
    pthread_cond_signal(&ring->emptied);
    pthread_mutex_unlock(&ring->lock);
}
