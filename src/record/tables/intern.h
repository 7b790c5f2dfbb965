/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/tables/intern.h - the tables of a trace: names, tensor lists, stacks, threads, clock pairs.
 *
 * A value is written once, as a record in a table chunk, and from then on is its id. A record
 * is published (release store of its head) before its id is handed out, so an event never
 * refers to what the file does not have.
 *
 * Layer:   record.
 * Threads: called with snd_rec.lock held; they may let go of it (a new table chunk).
 */
#ifndef SND_RECORD_TABLES_INTERN_H
#define SND_RECORD_TABLES_INTERN_H

#include "record/state.h"

/* Whether an id is of a late record: late_table.h. */
static inline bool snd_is_late(uint32_t id)
{
    return (id & SND_LATE_ID) != 0;
}

/* The id that stands for names that found no room. Always defined. */
#define SND_NAME_LOST 1u

/* Makes the first table chunk and the reserved name. False: no room for it. */
bool snd_table_start(void);
void snd_table_abandon(void); /* the same in a forked child whose parent was changing them */
/* The id of what is in the tables already, 0 if it is not. Lock held. */
uint32_t snd_table_find(enum snd_record_type type, struct snd_hash hash);
void     snd_table_stop(void); /* forgets the ids; the chunks are closed with all others */

/* Appends a record; returns its payload in the file, or NULL if there is no room. */
void *snd_table_append(enum snd_record_type type, uint32_t *id, const void *payload, size_t size);

/* Appends a pair of clocks. */
void snd_table_clock(void);

/* The id of a payload of a type, appended if it is new. 0 without room; late ids are none. */
uint32_t snd_table_try(enum snd_record_type type, struct snd_hash hash, const void *payload,
                       size_t size);
/* Makes this hash lead to an id that was made elsewhere; false: out of memory. */
bool snd_table_put(enum snd_record_type type, struct snd_hash hash, uint32_t id);
/* Counts a record that found no room; returns its substitute: 0, or SND_NAME_LOST. */
uint32_t snd_table_lose(enum snd_record_type type);

/* In keep-last mode: from now on names that the tables lack go into the chunks of their events. */
void snd_table_begin_own(void);
/* Whether records without room may go into the chunks that use them. */
bool snd_table_is_kept_last(void);

/* snd_table_try(), or what stands for it without room. */
uint32_t snd_table_intern(enum snd_record_type type, struct snd_hash hash, const void *payload,
                          size_t size);

/* The hash by which an entry of the tables is recognised. */
static inline struct snd_hash snd_record_hash(enum snd_record_type type, const void *payload,
                                              size_t size)
{
    return snd_hash_bytes(payload, size, (uint64_t)type);
}

/* The id of a short text; bytes beyond SND_TEXT_MAX are cut off, and counted. */
#define SND_TEXT_MAX ((size_t)4096)
uint32_t snd_table_text(const char *text, size_t length);

/* The words of the tally of a kind, key and other, made if it is new; NULL without room. */
uint64_t *snd_table_tally(const struct snd_tally_record *tally);

/*
 * Called before the tables are sealed. A thread that still adds to a tally then writes to memory
 * that nobody reads, which stays mapped until the next recording has ended.
 */
void snd_tallies_park(void);
void snd_tallies_release(void); /* no thread adds to them any more */

#endif
