/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/tables/sampled_threads.h - records of threads that do not mark for themselves: a sampler names them.
 *
 * Layer:   record.
 * Threads: with snd_rec.lock held.
 */
#ifndef SND_RECORD_TABLES_SAMPLED_THREADS_H
#define SND_RECORD_TABLES_SAMPLED_THREADS_H

#include "record/state.h"

/* The thread `tid` attaches: takes over the record that was added for it, if any. */
struct snd_thread_record *snd_sampled_claim(uint32_t tid, uint32_t *id);

/* The record of a thread that marks by itself or was added before; NULL if there is none. */
struct snd_thread_record *snd_sampled_find(const struct sonde_process_thread *thread, uint32_t *id);

/* Adds a record for a thread, of this name's id; its id, 0 without room. May let go. */
uint32_t snd_sampled_add(const struct sonde_process_thread *thread, uint32_t name);

/* The thread with this id, which was added, has ended: another may have its tid from now on. */
void snd_sampled_end(uint32_t id, uint64_t at);

/* The tables end, and with them the records. */
void snd_sampled_clear(void);
void snd_sampled_abandon(void); /* the same in a forked child whose parent was changing them */

#endif
