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

/*
 * Called once per process. The epoch is 0 before it, and 0 again in a new process, where the kernel
 * wipes its page.
 */
void snd_epoch_init(void);

/* Starts marking, or starts it again: every lane and call site takes the slow path once. */
void snd_epoch_on(void);
void snd_epoch_off(void);

/* Whether marking is on; true in a forked child too if it was in its parent. */
bool snd_epoch_is_on(void);

#endif
