/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/lane.h - recording an event that is not inlined: enter, write, leave.
 *
 * Layer:   record.
 * Threads: called by the thread that marks, with no lock held.
 */
#ifndef SND_RECORD_THREAD_LANE_H
#define SND_RECORD_THREAD_LANE_H

#include "record/thread/thread.h"

enum snd_entry {
    SND_ENTRY_OFF,   /* nothing records: not an event */
    SND_ENTRY_LOST,  /* it has been counted as lost */
    SND_ENTRY_READY, /* room for the words asked for; end with snd_lane_leave() */
};

/*
 * What is about to be recorded: begins and ends must be dropped in pairs, so that the ranges
 * still nest after a loss.
 */
enum snd_intent { SND_INTENT_BEGIN, SND_INTENT_END, SND_INTENT_OTHER };

enum snd_entry snd_lane_enter(size_t words, enum snd_intent intent);
void           snd_lane_leave(void);

/*
 * Between enter and leave: the event's time. If entering had to wait, the time of entry; otherwise
 * now.
 */
uint64_t snd_lane_time(void);

/* Once for the process: the hook that detaches ending threads. */
bool snd_lanes_init(void);

/* Removes that hook; returns when no thread is in it. For code that is about to be unmapped. */
void snd_lanes_uninit(void);

#endif
