/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/tables/naming.h - ids of names: of the tables, or of the chunk that uses them.
 *
 * Layer:   record.
 * Threads: by the thread that marks; snd_intern_text and snd_late_define between snd_lane_enter() and
 *          snd_lane_leave().
 */
#ifndef SND_RECORD_TABLES_NAMING_H
#define SND_RECORD_TABLES_NAMING_H

#include "record/thread/lane.h"

/* The id of a name in the tables, never a late one; SND_NAME_LOST if they are full. */
uint32_t snd_intern_text(const char *text, size_t length);

/*
 * Enters the lane for an event of `words` words with a name, and sets *id: an id of the tables or, once they
 * are full in keep-last mode, a number of the chunk, which is valid for this event alone, since the name is
 * recycled with the chunk.
 */
enum snd_entry snd_lane_enter_named(size_t words, enum snd_intent intent, const char *text,
                                    uint32_t *id);

/*
 * For an event whose id may be of a late record: snd_late_room(), called before the lane is entered, returns how
 * many words more it needs; snd_late_define(), called after, writes the record and those that it refers to, unless
 * the chunk has them. False: there is no room, which is counted.
 */
size_t snd_late_room(uint32_t id);
bool   snd_late_define(uint32_t id);

#endif
