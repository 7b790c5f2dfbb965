/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/tables/run_metadata.h - key/value pairs about the run, in every file of the recording.
 *
 * Layer:   record.
 * Threads: with snd_rec.lock held; they may let go of it (a new table chunk).
 */
#ifndef SND_RECORD_TABLES_RUN_METADATA_H
#define SND_RECORD_TABLES_RUN_METADATA_H

#include "record/state.h"

/* Writes a pair into the open file. */
void snd_metadata_write(const char *key, const char *value, size_t length);

/* Keeps a pair for the files to come: later cycles, and forked children. */
void snd_metadata_keep(const char *key, const char *value);

/* A file begins: writes the command line and the pairs kept so far. */
void snd_metadata_begin(void);

/* What the kernel says of the clock's error, as a fact; when a file begins that is part of snd_metadata_begin(). */
enum snd_clock_moment { SND_CLOCK_AT_BEGIN = 1, SND_CLOCK_AT_END = 2 };
void snd_metadata_clock(enum snd_clock_moment moment);

/* Which process of a job it is, if that is known. Lock held. */
void snd_metadata_rank(void);

#endif
