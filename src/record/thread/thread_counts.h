/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/thread_counts.h - counters of the thread at begins and ends of ranges: `sonde run --per-range`.
 *
 * Each begin and end of a range follows events COUNTED (format/attrs.def): by how much the thread's counters have
 * risen since the last begin or end. Its lane has no room meanwhile, so that every mark takes the slow path;
 * without --per-range nothing differs.
 *
 * Layer: record. Threads: any; what is counted is set before the first recording begins.
 */
#ifndef SND_RECORD_THREAD_THREAD_COUNTS_H
#define SND_RECORD_THREAD_THREAD_COUNTS_H

#include "record/state.h"

extern uint32_t snd_counts_asked; /* how many; 0: none are read */

/* A file begins: says which counters there are. Lock held. */
void snd_counts_begin(void);

/* The most words that snd_counts_write() writes. */
static inline size_t snd_counts_room(void)
{
    return 2 * (size_t)snd_counts_asked;
}

/* Between enter and leave, with that much room: what the calling thread's counters rose by. */
void snd_counts_write(struct snd_thread *thread);

#endif
