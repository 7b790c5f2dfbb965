/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/names.h - ids of names: of the tables, or of the chunk that uses them.
 *
 * Layer:   record.
 * Threads: by the thread that marks, between snd_lane_enter() and snd_lane_leave().
 */
#ifndef SND_RECORD_NAMES_H
#define SND_RECORD_NAMES_H

#include "record/state.h"

/* The id of a name in the tables; SND_NAME_LOST if they are full. */
uint32_t snd_intern_text(const char *text, size_t length);

/*
 * A name for the event that comes next on this lane, and for nothing else: an id of the tables, or,
 * once they are full in keep-last mode, a number of the chunk, which is recycled together with it.
 */
uint32_t snd_name_event(const char *text, size_t length);

/* Words that the event may need before it for that, to be asked of snd_lane_enter(). */
size_t snd_name_room(size_t length);

#endif
