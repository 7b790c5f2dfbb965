/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/epoch.h - the number by which lanes and call sites see that marking began or ended.
 *
 * Layer:   record.
 * Threads: with the control lock or snd_rec.lock held.
 */
#ifndef SND_RECORD_EPOCH_H
#define SND_RECORD_EPOCH_H

#include "record/state.h"

/* Once for the process: 0 before this, and again in a new process, where the kernel wipes it. */
void snd_epoch_init(void);

/* Marking begins (again): every lane and every call site looks itself up anew. */
void snd_epoch_on(void);
void snd_epoch_off(void);

/* Whether marking is on; true in a forked child too if it was in its parent. */
bool snd_epoch_is_on(void);

#endif
