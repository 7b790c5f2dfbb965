/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/file/chunk.h - chunks: reserved ahead of need, sealed after use, recycled at the limit.
 *
 *      reserve            take              full / thread ends          seal
 *   - - - - -> ready ---------> a thread's ----------> retired ----------> on disk
 *                                  ^  \__ partial __/                        |
 *                                  |_________________ keep-last: recycle ____|
 *
 * A helper thread (supply.h) keeps `ready` stocked and `retired` empty, so that the marking
 * threads make no system call. When it falls behind, a thread reserves for itself rather than lose
 * events (counted as a late chunk).
 *
 * Layer:   record.
 * Threads: every function is called with snd_rec.lock held; those marked "lets go" release
 *          it for a while.
 */
#ifndef SND_RECORD_FILE_CHUNK_H
#define SND_RECORD_FILE_CHUNK_H

#include "record/state.h"

#define SND_READY_MAX 8 /* chunks kept in stock at most: they count as resident */

/*
 * A chunk of `size` bytes of a kind for the caller, its header filled in except thread and seq; a
 * smaller one, of `least` bytes or more, where that is too much for the disk or the limit;
 * SND_NO_CHUNK if none is to be had. Both are multiples of SND_GRAIN. Lets go.
 */
uint32_t snd_chunk_reserve(uint64_t size, uint64_t least, enum snd_chunk_kind kind);

/* A ready chunk for a thread, or one reserved on the spot, or SND_NO_CHUNK. Lets go. */
uint32_t snd_chunk_take(void);

/* Whether a reserve may be tried now: not at the limit, nor just after a failure. */
bool snd_may_reserve(void);

/* Puts a chunk into use: sets its thread and gives it the next sequence number. */
void snd_chunk_open(uint32_t chunk, uint32_t thread);

/* The chunk is full up to `used` bytes; the helper seals it. Lets go. */
void snd_chunk_retire(uint32_t chunk, uint64_t used);

/* Seals and unmaps the oldest retired chunk. Lets go. */
void snd_chunk_seal_next(void);

/*
 * How many of the chunk's events were lost because the file does not hold them (bus_errors.h).
 * `end`, unless NULL, is set to the end of those that it holds.
 */
uint64_t snd_chunk_void(const struct snd_chunk_header *map, uint64_t size, uint64_t *end);

/* Writes length and, on request, checksum into a chunk that no thread writes to any more. */
uint64_t snd_chunk_seal(struct snd_chunk_header *map, uint64_t used, bool checksum);
/* Records the result of sealing a chunk. */
void snd_chunk_count(uint32_t chunk, uint64_t events);

/* Forgets every chunk; those still mapped are unmapped. */
void snd_chunks_clear(void);
/* In a forked child whose parent was changing the lists: forgets them without reading them. */
void snd_chunks_abandon(void);

void     snd_list_push(struct snd_chunk_list *list, uint32_t chunk);
uint32_t snd_list_pop(struct snd_chunk_list *list);

/* Ends of the events in a chunk's memory: bytes in use, header included. */
uint64_t snd_chunk_scan(const struct snd_chunk_header *map, uint64_t size, uint64_t *events);

#endif
