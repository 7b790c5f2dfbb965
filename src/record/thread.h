/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread.h - a thread's life in a recording: attach, change chunks, drop, detach.
 *
 * Layer:   record.
 * Threads: snd_thread_enter and snd_thread_leave are called by the thread they concern, with
 *          no lock held; the others with snd_rec.lock held.
 */
#ifndef SND_RECORD_THREAD_H
#define SND_RECORD_THREAD_H

#include "record/state.h"

enum snd_entry {
    SND_ENTRY_OFF,   /* nothing records: not an event */
    SND_ENTRY_LOST,  /* it has been counted as lost */
    SND_ENTRY_READY, /* room for the words asked for; end with snd_thread_leave() */
};

/*
 * What is about to be recorded: begins and ends must be dropped in pairs, so that the ranges
 * still nest after a loss.
 */
enum snd_intent { SND_INTENT_BEGIN, SND_INTENT_END, SND_INTENT_OTHER };

enum snd_entry snd_thread_enter(size_t words, enum snd_intent intent);
void           snd_thread_leave(void);

/*
 * Between the two: the time of the event, which is that of the entry where it had to wait, and now
 * where it had not.
 */
uint64_t snd_thread_time(void);

/* Writes an event of `words` words; word 0 goes last and publishes it. */
void snd_lane_write(struct sonde_lane *lane, const uint64_t *words, size_t count);

/* The calling thread, attached; only between enter and leave. */
struct snd_thread *snd_thread_self(void);

/* The recording ends: every thread's chunk is sealed, and parked. */
void snd_threads_park(uint64_t now);

/*
 * In a new process one of its parent's threads is left. After fork() it is the caller; where the
 * process was noticed later, the caller may be a thread that this one has made since; where what
 * the lock guards cannot be looked at, nobody's chunk is touched.
 */
enum snd_survivor { SND_SURVIVOR_CALLER, SND_SURVIVOR_ANY, SND_SURVIVOR_UNKNOWN };
void snd_threads_forget(enum snd_survivor survivor);

/* Once for the process: the hook that detaches ending threads. */
bool snd_threads_init(void);

#endif
