/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/session.h - what the parts of the recorder ask of the recording as a whole.
 *
 * Layer: record.
 */
#ifndef SND_RECORD_SESSION_H
#define SND_RECORD_SESSION_H

#include "record/state.h"
#include "record/thread.h"

/*
 * In a forked child, at its first event: makes the child's own file. If that cannot be done
 * the child goes on unrecorded. With snd_rec.lock held.
 */
void snd_session_open_child(void);

/* Ends a recording if there is one; for the end of the process. */
void snd_session_end(void);

/* Forks take both locks first, so that the child finds everything at rest. */
void snd_session_lock(void);
void snd_session_unlock(void);
/*
 * In the child: leaves the parent's file alone and waits for the first event.
 */
void snd_session_in_child(enum snd_survivor survivor);

/*
 * Notices a process that was made without the handlers of fork() (_Fork(), the system call clone),
 * in which the kernel has wiped sonde_epoch_. Called before a lock is taken, by whoever may be the
 * first of the new process to come here; sonde_epoch() may be another one afterwards.
 */
void snd_session_notice(void);

/*
 * Whether the library was set up when it was loaded. That lifecycle.c is called at all makes a
 * static program have it, with its constructor.
 */
bool snd_lifecycle_is_set_up(void);

/* Begins the recording that the environment asks for (sonde run), if it does. */
void snd_session_from_environment(void);

/* For the environment: "wait=1,warmup=1,active=2". */
bool snd_schedule_parse(const char *text, struct sonde_schedule *out);

#endif
