/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/tables.h - a table of a trace (docs/SCHEMA.md) as columns in memory, for SQL engines.
 *
 *     struct sonde_table *table;
 *     sonde_table_new(trace, "ranges", &table, &err);
 *     const struct sonde_table_column *names = sonde_table_column(table, 2);
 *     sonde_table_text(table, ((const uint32_t *)names->data)[0]);
 *
 * Threads: making one as a trace: one at a time. A table does not borrow from its trace, and may be
 * read by any number of threads.
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

/* The id of the recording, as the column `job` has it: "s" and 32 hexadecimal digits, and a NUL. */
#define SONDE_JOB_SIZE 34
SONDE_API void sonde_trace_job(const struct sonde_trace *trace, char job[SONDE_JOB_SIZE]);

SONDE_C_END_
#endif
