/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/behind_sink.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define BLOCKS 4u

struct snd_behind {
    const struct sonde_sink *sink; /* borrowed */
    pthread_t                thread;
    pthread_mutex_t          lock; /* for all below but the blocks' bytes */
    pthread_cond_t           handed, written;
    size_t                   lengths[BLOCKS];
    size_t                   made, done; /* how many blocks were handed on, and written */
    bool                     is_ending, failed;
    int                      os_error; /* why */
    char                    *bytes;    /* owned: the blocks */
};

static char *block_at(const struct snd_behind *b, size_t number)
{
    return b->bytes + number % BLOCKS * SND_BEHIND_BYTES;
}

/* Writes a block, without the lock. */
static void write_block(struct snd_behind *b, size_t number)
{
    size_t length = b->lengths[number % BLOCKS];

    if (b->failed || length == 0)
        return;
    pthread_mutex_unlock(&b->lock);
    errno = 0;
    bool good = b->sink->write(b->sink->user, block_at(b, number), length);
    int  os_error = errno;
    pthread_mutex_lock(&b->lock);
    if (!good) {
        b->failed = true;
        b->os_error = os_error;
    }
}

static void *write_blocks(void *user)
{
    struct snd_behind *b = user;

    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->done == b->made && !b->is_ending)
            pthread_cond_wait(&b->handed, &b->lock);
        if (b->done == b->made)
            break;
        write_block(b, b->done);
        b->done++;
        pthread_cond_signal(&b->written);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* The program's handlers stay with its own threads; a pipe that nobody reads ends it as it would have. */
static bool start_thread(struct snd_behind *b)
{
    sigset_t most, before;

    sigfillset(&most);
    sigdelset(&most, SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    int failed = pthread_create(&b->thread, NULL, write_blocks, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

static void release(struct snd_behind *b)
{
    pthread_cond_destroy(&b->handed);
    pthread_cond_destroy(&b->written);
    pthread_mutex_destroy(&b->lock);
    free(b->bytes);
    free(b);
}

struct snd_behind *snd_behind_new(const struct sonde_sink *sink)
{
    struct snd_behind *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->sink = sink;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->handed, NULL);
    pthread_cond_init(&b->written, NULL);
    b->bytes = malloc(BLOCKS * SND_BEHIND_BYTES);
    if (!b->bytes || !start_thread(b)) {
        release(b);
        return NULL;
    }
    return b;
}

char *snd_behind_block(const struct snd_behind *b)
{
    return block_at(b, b->made);
}

char *snd_behind_next(struct snd_behind *b, size_t length)
{
    pthread_mutex_lock(&b->lock);
    b->lengths[b->made++ % BLOCKS] = length;
    pthread_cond_signal(&b->handed);
    while (b->made - b->done == BLOCKS)
        pthread_cond_wait(&b->written, &b->lock);
    bool good = !b->failed;
    errno = b->os_error;
    pthread_mutex_unlock(&b->lock);
    return good ? block_at(b, b->made) : NULL;
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
