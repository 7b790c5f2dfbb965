/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/behind_sink.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/system/quiet_thread.h"

#define BLOCKS_LEAST 4u /* one is filled, one is written, and both threads have one to go on with */

struct block {
    struct block *next;
    size_t        length;
    char          bytes[SND_BEHIND_BYTES];
};

struct snd_behind {
    const struct sonde_sink *sink; /* borrowed */
    pthread_t                thread;
    pthread_mutex_t          lock; /* for all below but the blocks' bytes */
    pthread_cond_t           handed, written;
    struct block            *filled;       /* who puts has it: not in the lists */
    struct block            *first, *last; /* handed on, and not written yet */
    struct block            *spare;
    size_t                   count, most; /* blocks: there are, there may be */
    bool                     is_ending, failed;
    int                      os_error; /* why */
};

/* Writes the first block, without the lock. */
static void write_first(struct snd_behind *b)
{
    struct block *block = b->first;

    if (!b->failed && block->length > 0) {
        pthread_mutex_unlock(&b->lock);
        errno = 0;
        bool good = b->sink->write(b->sink->user, block->bytes, block->length);
        int  os_error = errno;
        pthread_mutex_lock(&b->lock);
        if (!good) {
            b->failed = true;
            b->os_error = os_error;
        }
    }
    b->first = block->next;
    block->next = b->spare;
    b->spare = block;
}

static void *write_blocks(void *user)
{
    struct snd_behind *b = user;

    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->first && !b->is_ending)
            pthread_cond_wait(&b->handed, &b->lock);
        if (!b->first)
            break;
        write_first(b);
        pthread_cond_signal(&b->written);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* The one that was written last, whose bytes are still in the cache; else a new one. NULL: there may be no more now. */
static struct block *take_block(struct snd_behind *b)
{
    struct block *block = b->spare;

    if (block) {
        b->spare = block->next;
    } else if (b->count < b->most && (block = malloc(sizeof *block)) != NULL) {
        b->count++;
    }
    return block;
}

static void free_blocks(struct block *block)
{
    while (block) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

static void release(struct snd_behind *b)
{
    pthread_cond_destroy(&b->handed);
    pthread_cond_destroy(&b->written);
    pthread_mutex_destroy(&b->lock);
    free_blocks(b->spare);
    free(b->filled);
    free(b);
}

struct snd_behind *snd_behind_new(const struct sonde_sink *sink, size_t ahead)
{
    struct snd_behind *b = calloc(1, sizeof *b);
    size_t             blocks = ahead / SND_BEHIND_BYTES;

    if (!b)
        return NULL;
    b->sink = sink;
    b->most = blocks > BLOCKS_LEAST ? blocks : BLOCKS_LEAST;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->handed, NULL);
    pthread_cond_init(&b->written, NULL);
    b->filled = take_block(b);
    if (!b->filled || !snd_quiet_thread(&b->thread, write_blocks, b)) {
        release(b);
        return NULL;
    }
    return b;
}

char *snd_behind_block(const struct snd_behind *b)
{
    return b->filled->bytes;
}

char *snd_behind_next(struct snd_behind *b, size_t length)
{
    struct block *next;

    pthread_mutex_lock(&b->lock);
    b->filled->length = length;
    b->filled->next = NULL;
    *(b->first ? &b->last->next : &b->first) = b->filled;
    b->last = b->filled;
    pthread_cond_signal(&b->handed);
    while ((next = take_block(b)) == NULL) /* one will be written: there are some */
        pthread_cond_wait(&b->written, &b->lock);
    b->filled = next;
    bool good = !b->failed;
    errno = b->os_error;
    pthread_mutex_unlock(&b->lock);
    return good ? next->bytes : NULL;
}

bool snd_behind_end(struct snd_behind *b)
{
    pthread_mutex_lock(&b->lock);
    b->is_ending = true;
    pthread_cond_signal(&b->handed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    bool good = !b->failed;
    int  os_error = b->os_error;
    release(b);
    errno = os_error;
    return good;
}
