/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/tables.h - a table of a trace (docs/SCHEMA.md) as columns in memory, for SQL engines.
 *
 *     struct sonde_table *table;
 *     sonde_table_new(trace, "ranges", &table, &err);
 *     const struct sonde_table_column *names = sonde_table_column(table, 2);
 *     sonde_table_text(table, ((const uint32_t *)names->data)[0]);
 *
 * A table of a long trace is large: sonde_table_scan_next() has it in batches, each a table of some
 * thousand rows, so that memory does not grow with the trace.
 *
 * Threads: making one as a trace: one at a time. A table does not borrow from its trace, and may be
 * read by any number of threads, and freed by any.
 */
#ifndef SONDE_TABLES_H
#define SONDE_TABLES_H

#include <stdint.h>

#include "sonde/trace.h"

SONDE_C_BEGIN_

enum sonde_column_type {
    SONDE_COLUMN_INTEGER, /* int64_t */
    SONDE_COLUMN_REAL,    /* double */
    SONDE_COLUMN_TEXT,    /* uint32_t, a number for sonde_table_text() */
};

struct sonde_table_column {
    const char            *name;
    enum sonde_column_type type;
    const void            *data;  /* a value for each row; of a null, 0 */
    const uint8_t         *valid; /* bit i % 8 of byte i / 8: row i is not null. NULL: no row is */
    size_t                 null_count;
};

struct sonde_table; /* opaque */

/* The names of the tables by index; NULL past the last. Static. */
SONDE_API const char *sonde_table_name(size_t index);

/*
 * Makes one table of the trace: only what it needs is read.
 * Owns:   the caller owns *out and ends it with sonde_table_free().
 * Errors: SONDE_E_ARGUMENT for a table that does not exist (the message lists those that do);
 *         SONDE_E_NOMEM, as sonde_trace_walk(). Then *out is NULL.
 */
SONDE_API SONDE_CHECKED enum sonde_status sonde_table_new(struct sonde_trace  *trace,
                                                          const char          *name,
                                                          struct sonde_table **out,
                                                          struct sonde_error  *err);
SONDE_API void                            sonde_table_free(struct sonde_table *table);

SONDE_API size_t sonde_table_row_count(const struct sonde_table *table);
/* By index; NULL past the last. */
SONDE_API const struct sonde_table_column *sonde_table_column(const struct sonde_table *table,
                                                              size_t                    index);
/* The texts of its columns, each once and in UTF-8. */
SONDE_API size_t            sonde_table_text_count(const struct sonde_table *table);
SONDE_API struct sonde_text sonde_table_text(const struct sonde_table *table, size_t index);

struct sonde_table_scan; /* opaque */

/*
 * Begins to read a table in batches, of the columns in `columns` alone, in that order: names, then
 * NULL; or all, if it is NULL. What only other columns need is not read.
 * Owns:   the caller owns *out and ends it with sonde_table_scan_free(), at any time.
 * Keeps:  the trace until then, which is read in a thread from the first batch on: no other call
 *         may use it meanwhile.
 * Errors: SONDE_E_ARGUMENT for a table or column that does not exist, or a column that is asked for
 *         twice; SONDE_E_NOMEM. Then *out is NULL.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_table_scan_new(struct sonde_trace *trace, const char *name, const char *const *columns,
                     struct sonde_table_scan **out, struct sonde_error *err);
/* Ends it; what is not read yet is not read any more. Batches stay with those who have them. */
SONDE_API void sonde_table_scan_free(struct sonde_table_scan *scan);

/* The columns that every batch has, by index, without data; NULL past the last. */
SONDE_API const struct sonde_table_column *
sonde_table_scan_column(const struct sonde_table_scan *scan, size_t index);

/*
 * The next rows, as a table with texts of its own; NULL after the last.
 * Owns:    the caller owns *batch and ends it with sonde_table_free(), before or after the scan's end.
 * Errors:  SONDE_E_NOMEM; SONDE_E_IO if no thread can be started; as sonde_trace_walk(). Then *batch
 *          is NULL, and the next call has the same answer.
 * Threads: one at a time.
 */
SONDE_API SONDE_CHECKED enum sonde_status sonde_table_scan_next(struct sonde_table_scan *scan,
                                                                struct sonde_table     **batch,
                                                                struct sonde_error      *err);

/* The id of the recording, as the column `job` has it: "s" and 32 hexadecimal digits, and a NUL. */
#define SONDE_JOB_SIZE 34
SONDE_API void sonde_trace_job(const struct sonde_trace *trace, char job[SONDE_JOB_SIZE]);

SONDE_C_END_
#endif
