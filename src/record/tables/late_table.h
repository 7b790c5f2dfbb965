/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/tables/late_table.h - records for which the tables have no room, in keep-last mode.
 *
 * Tables are never recycled, since a probe may use an id that it was given long ago. A late record is
 * kept in memory instead, and written into each lane chunk that uses it, before the event that does
 * (naming.h). It is recycled with the chunk, and written again where it is used again. Memory is
 * bounded; beyond that, records are lost, and counted.
 *
 * Layer:   record.
 * Threads: with snd_rec.lock held; snd_late_intern may let go of it (a new table chunk).
 */
#ifndef SND_RECORD_TABLES_LATE_TABLE_H
#define SND_RECORD_TABLES_LATE_TABLE_H

#include "record/state.h"

/*
 * The id of a payload: of the tables, or a late one if those have no room or if it refers to a late
 * one. 0 (or SND_NAME_LOST) if it is lost.
 */
uint32_t snd_late_intern(enum snd_record_type type, struct snd_hash hash, const void *payload,
                         size_t size);

struct snd_late {
    enum snd_record_type type;
    const char          *payload; /* borrowed until the lock is let go */
    size_t               size;
};

/* The record with a late id; its size is 0 if the id is of another recording. */
struct snd_late snd_late_find(uint32_t id);

/*
 * For a tally, which stays in the tables: the id of a frame there like this late one, its names
 * lost and counted. Any other id is returned unchanged; 0 without room. May release the lock.
 */
uint32_t snd_late_in_tables(uint32_t frame);

/*
 * For a fact, likewise: the id in the tables of this late text or tensor list, which is put there. Another
 * id is returned as it is; one that finds no room is lost, and counted. May let go of the lock.
 */
uint32_t snd_late_to_tables(uint32_t id);

void snd_late_clear(void);
void snd_late_abandon(void); /* the same in a forked child whose parent was changing them */

#endif
