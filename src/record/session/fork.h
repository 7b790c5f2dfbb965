/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/session/fork.h - a new process in the middle of a recording.
 *
 * The child leaves its parent's file alone and makes its own at its first event, so that fork +
 * exec costs nothing. Where the handlers of fork() do not run (_Fork(), the system call clone), the
 * kernel has wiped sonde_epoch_, which the child's first call finds.
 *
 * Layer: record.
 */
#ifndef SND_RECORD_SESSION_FORK_H
#define SND_RECORD_SESSION_FORK_H

#include "record/thread/thread.h"

/* Before fork() both locks are taken, so that the child finds everything at rest. */
void snd_fork_lock(void);
void snd_fork_unlock(void);

/* In the child: leaves the parent's file alone and waits for the first event. */
void snd_fork_in_child(enum snd_survivor survivor);

/*
 * In the child, at its first event: makes the child's own file. If that cannot be done the child
 * goes on unrecorded. With snd_rec.lock held.
 */
void snd_fork_open_child(void);

/*
 * Notices a process that was made without the handlers of fork(). Called before a lock is taken, by
 * whatever may be the first call of the new process; sonde_epoch() may be another one afterwards.
 */
void snd_fork_notice(void);

#endif
