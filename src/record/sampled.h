/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/sampled.h - threads that a sampler speaks of: records of threads other than the caller.
 *
 * Layer:   record.
 * Threads: with snd_rec.lock held.
 */
#ifndef SND_RECORD_SAMPLED_H
#define SND_RECORD_SAMPLED_H

#include "record/state.h"

/* The thread `tid` attaches: what was recorded of it under another's name is its own, if any. */
struct snd_thread_record *snd_sampled_claim(uint32_t tid, uint32_t *id);

/* The tables end, and with them the records. */
void snd_sampled_clear(void);
void snd_sampled_abandon(void); /* the same in a forked child whose parent was changing them */

#endif
