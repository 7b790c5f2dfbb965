/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/common/walk_ahead.h - a walk in a thread of its own, and its records here, in order (docs/decisions/0027).
 *
 *     if (snd_ahead_pays(trace) && snd_ahead_begin(&ahead, walk, user)) {
 *         while ((block = snd_ahead_next(&ahead)) != NULL)       walk(user, ..) calls snd_ahead_room() meanwhile
 *             .. its records; snd_ahead_stop(&ahead) if no more are wanted ..
 *         st = snd_ahead_end(&ahead, err);
 *     }
 *
 * The walk has the trace, of which others may only read what is there once it is open, or was made before: what
 * snd_trace_devices() and its like make when they are first called.
 *
 * Layer: export. Threads: begin, next, stop and end are one thread's, room the walk's.
 */
#ifndef SND_EXPORT_COMMON_WALK_AHEAD_H
#define SND_EXPORT_COMMON_WALK_AHEAD_H

#include <pthread.h>
#include <string.h>

#include "base/data/block_ring.h"
#include "base/error.h"
#include "sonde/trace.h"

/* The walk's side: in a line of the processor's cache that the other thread has nothing in. */
struct snd_ahead_writer {
    struct snd_ring  *ring;
    struct snd_block *block; /* NULL: none, or nobody wants more */
    char             *at, *end;
    bool              out_of_memory;
};

typedef enum sonde_status snd_ahead_walk(void *user, struct snd_ahead_writer *writer,
                                         struct sonde_error *err);

struct snd_ahead {
    struct snd_ring   *ring;
    bool               takes; /* a block has been taken, and not given back */
    snd_ahead_walk    *walk;
    void              *user;
    pthread_t          thread;
    enum sonde_status  status;
    struct sonde_error why;
};

/* There is a processor for it, and much to read. */
bool snd_ahead_pays(const struct sonde_trace *trace);

/* False: no thread or memory to be had; the walk was not called. */
bool snd_ahead_begin(struct snd_ahead *ahead, snd_ahead_walk *walk, void *user);
/* The next records, until the next call. NULL: the walk has ended. */
const struct snd_block *snd_ahead_next(struct snd_ahead *ahead);
void                    snd_ahead_stop(struct snd_ahead *ahead);
/* Waits for the walk; returns how it went. Errors: SONDE_E_NOMEM; the walk's. */
enum sonde_status snd_ahead_end(struct snd_ahead *ahead, struct sonde_error *err);

/* A block with room for so many bytes. False: end the walk. */
bool snd_ahead_more(struct snd_ahead_writer *writer, size_t size);

/* Room for a record of at most so many bytes, then snd_ahead_put() with what it has, a multiple of 8. NULL: end the walk. */
static inline void *snd_ahead_room(struct snd_ahead_writer *writer, size_t most)
{
    if (most > (size_t)(writer->end - writer->at) && !snd_ahead_more(writer, most))
        return NULL;
    return writer->at;
}

static inline void snd_ahead_put(struct snd_ahead_writer *writer, size_t size)
{
    writer->at += size;
}

#endif
