/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/file/supply.h - the helper thread: reserves chunks ahead of need, seals those that are full, and
 * writes pairs of clocks.
 *
 * Layer:   record.
 * Threads: called with snd_rec.lock held.
 */
#ifndef SND_RECORD_FILE_SUPPLY_H
#define SND_RECORD_FILE_SUPPLY_H

#include "record/state.h"

/* Starts the helper; without one (no thread to be had) chunks are reserved on demand. */
void snd_supply_start(void);

/*
 * Tells the helper to end and waits until nobody is using the file. Lets go of the lock meanwhile.
 * The helper's own end is not waited for, as on a busy machine it is some 20 ms until it runs again;
 * unless this code may be unmapped (unload.h).
 */
void snd_supply_stop(void);

#endif
