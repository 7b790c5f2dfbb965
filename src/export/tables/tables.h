/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/tables.h - a trace as the rows of relational tables, for SQL formats.
 *
 * tables.def lists tables and columns once; a format takes the rows as they come. Memory does not grow with
 * the events: one walk of the trace, of which nothing is kept but the steps and which stacks were written.
 *
 * Layer: export. Threads: as a trace.
 */
#ifndef SND_EXPORT_TABLES_TABLES_H
#define SND_EXPORT_TABLES_TABLES_H

#include <stddef.h>

#include "base/error.h"
#include "sonde/model.h"

enum snd_sql_type { SND_SQL_INTEGER, SND_SQL_REAL, SND_SQL_TEXT };

struct snd_sql_column {
    const char       *name;
    enum snd_sql_type type;
};

#define TABLE(name) SND_TABLE_##name,
#define COLUMN(name, type)
#define END
enum snd_sql_table_id {
#include "export/tables/tables.def"
    SND_SQL_TABLES
};
#undef TABLE
#undef COLUMN
#undef END

#define SND_SQL_COLUMNS_MAX 20

/* For each table a struct of which the offset of a member is the number of that column. */
#define TABLE(name) struct snd_columns_of_##name {
#define COLUMN(name, type) char name;
#define END \
    }       \
    ;
#include "export/tables/tables.def"
#undef TABLE
#undef COLUMN
#undef END
#define SND_SQL_COLUMN(table, column) (1u << offsetof(struct snd_columns_of_##table, column))

struct snd_sql_table {
    const char           *name;
    struct snd_sql_column columns[SND_SQL_COLUMNS_MAX]; /* the last has no name */
};
extern const struct snd_sql_table snd_sql_tables[SND_SQL_TABLES];
size_t                            snd_sql_column_count(const struct snd_sql_table *table);
/* The column of this name, or SIZE_MAX. */
size_t snd_sql_column_find(const struct snd_sql_table *table, const char *name);

/* A value of its column's type. Text is borrowed for the call; it may not be UTF-8. */
struct snd_sql_value {
    union {
        int64_t           number;
        double            real;
        struct sonde_text text;
    };
    bool     is_null;
    uint32_t name; /* of a text: others of this name are the same; 0: it has none */
};
/* A name is of a name of the trace, which stays where it is: its number plus one. Or of a text that was made of others. */
#define SND_SQL_MADE_NAME (1u << 31)

/* Where to remember of names what is known of their texts: nearly all come again and again. */
#define SND_SQL_NAMES 256
static inline size_t snd_sql_name_place(uint32_t name)
{
    return (name + (name >> 24)) % SND_SQL_NAMES;
}

/*
 * Takes a row, of as many values as its table has columns. From number `given` on they are plain: null or 0, and the same in all rows of
 * the table of which so many are given. False ends the walk.
 */
typedef bool snd_sql_row_fn(void *user, enum snd_sql_table_id table,
                            const struct snd_sql_value *values, size_t given);

struct snd_sql_range;
struct snd_sql_maker;
/* Who takes rows. */
struct snd_sql_taker {
    snd_sql_row_fn *row;
    /*
     * Takes ranges instead of their rows (row_parts.h); NULL: rows. A range is there until settle(), or without that for the call.
     * False of either ends the walk.
     */
    bool (*range)(void *user, struct snd_sql_maker *maker, const struct snd_sql_range *range);
    bool (*settle)(void *user);
    void *user;
};

#define SND_SQL_ONLY(table) (1u << SND_TABLE_##table)
#define SND_SQL_EVERY ((1u << SND_SQL_TABLES) - 1)

/*
 * By time, which of a range is its end. Or about so of each process, the processes in turns, and a range that has none inside
 * when it begins: that takes half the time.
 */
enum snd_sql_order { SND_SQL_BY_TIME, SND_SQL_BY_PROCESS };

/*
 * Hands over every row of the tables that are `wanted`, bits by number: those of a table in order, the tables in none. Only
 * what they need is read.
 */
SND_CHECKED enum sonde_status snd_sql_rows(struct sonde_trace *trace, unsigned wanted,
                                           enum snd_sql_order order, const struct snd_sql_taker *to,
                                           struct sonde_error *err);
/* The walk in this thread too, where snd_sql_rows() has another for it if that pays: `to` is called in this one either way. */
SND_CHECKED enum sonde_status snd_sql_rows_here(struct sonde_trace *trace, unsigned wanted,
                                                enum snd_sql_order          order,
                                                const struct snd_sql_taker *to,
                                                struct sonde_error         *err);

/* The same of one table. Values of columns that are not in `columns`, bits by number, are of no meaning. */
SND_CHECKED enum sonde_status snd_sql_table_rows(struct sonde_trace   *trace,
                                                 enum snd_sql_table_id table, uint32_t columns,
                                                 enum snd_sql_order order, snd_sql_row_fn *row,
                                                 void *user, struct sonde_error *err);

/*
 * The same of the tables of jobs, collectives and activity, for snd_sql_rows(): on the next walk of the trace, which is by time or by
 * process. `*stopped` once a row was not taken. The end is told how the walk went, and returns that if it fails at nothing itself.
 * Owns: the caller, who ends it whatever this returns; *out may be NULL then.
 */
struct snd_sql_ranks;
SND_CHECKED enum sonde_status snd_sql_ranks_begin(struct sonde_trace *trace, unsigned wanted,
                                                  snd_sql_row_fn *row, void *user, bool *stopped,
                                                  struct snd_sql_ranks **out,
                                                  struct sonde_error    *err);
/* The walk, where there is no other. */
SND_CHECKED enum sonde_status snd_sql_ranks_walk(struct snd_sql_ranks *ranks,
                                                 struct sonde_error   *err);
SND_CHECKED enum sonde_status snd_sql_ranks_end(struct snd_sql_ranks *ranks, enum sonde_status st,
                                                struct sonde_error *err);

/* The same of the table gpu_work alone, for snd_sql_rows(); `*stopped` once a row was not taken. */
SND_CHECKED enum sonde_status snd_sql_gpu_rows(struct sonde_trace *trace, snd_sql_row_fn *row,
                                               void *user, bool *stopped, struct sonde_error *err);

#endif
