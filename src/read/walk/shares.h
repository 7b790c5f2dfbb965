/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/shares.h - a walk by thread, divided among the processors.
 *
 *     snd_shares_make(&shares, trace, kinds, err);
 *     snd_walk_shares(&shares, visitor, &stats, err);   several threads of ours, each with a visitor of its own
 *     snd_walk_shares_end(&shares, &sum_of_stats);      when all have returned
 *     snd_shares_release(&shares);
 *
 * What a walk knows of a thread goes on from chunk to chunk (its clock, its open ranges), and a chunk may have events of several threads. So a
 * share is all chunks of threads that have no chunk in common with others (kinds.h), in their order: usually one thread's. A thread
 * that has nearly all events of the trace is not divided: what is open at a chunk's begin is known only from those before.
 *
 * Layer: read. Threads: snd_walk_shares() any, while nothing else is done with the trace.
 */
#ifndef SND_READ_WALK_SHARES_H
#define SND_READ_WALK_SHARES_H

#include <stdatomic.h>

#include "read/walk/kinds.h"
#include "read/walk/trace_walk.h"

struct snd_share {
    uint64_t bytes;
    uint32_t process, first_chunk, chunk_count; /* in `chunks` */
};

struct snd_shares {
    struct sonde_trace   *trace;
    struct snd_share     *items;  /* the largest first, so that they end at nearly the same time */
    uint32_t             *chunks; /* of each share: numbers of chunks of its process */
    uint32_t             *of_thread; /* the share of each thread of the trace; SONDE_NONE: none */
    uint32_t              count;
    uint64_t              bytes;
    atomic_uint_fast64_t *seen;    /* events by process, as the header counts them */
    atomic_uint           next;    /* share that nobody walks */
    atomic_bool           is_over; /* others need not go on ... */
    atomic_bool is_in_vain; /* ... since a file has grown: its threads share other chunks now */
};

/* Errors: SONDE_E_NOMEM. To be released whatever this returns. */
SND_CHECKED enum sonde_status snd_shares_make(struct snd_shares *shares, struct sonde_trace *trace,
                                              const struct snd_kinds *kinds,
                                              struct sonde_error     *err);
void                          snd_shares_release(struct snd_shares *shares);

/*
 * Walks shares that nobody walks, until there are none, somebody's visitor stops, or there is an error. `threads` of the visitor's
 * calls are those of these shares. Errors: as snd_walk().
 */
SND_CHECKED enum sonde_status snd_walk_shares(struct snd_shares     *shares,
                                              struct snd_visitor    *visitor,
                                              struct snd_walk_stats *stats,
                                              struct sonde_error    *err);
/* What only all shares tell. */
void snd_walk_shares_end(const struct snd_shares *shares, struct snd_walk_stats *stats);

/* Bytes of all chunks that hold events. */
uint64_t snd_lane_bytes(const struct sonde_trace *trace);
/* How many threads pay where so many bytes can be read by others than the first; at least 1. */
uint32_t snd_workers(const struct sonde_trace *trace, uint64_t bytes);

#endif
