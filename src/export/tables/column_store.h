/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/column_store.h - rows of a table (tables.h) collected as columns, for formats that hold columns.
 *
 * Texts are numbers in a table of texts that many columns share.
 *
 * Layer: export. Threads: one at a time.
 */
#ifndef SND_EXPORT_TABLES_COLUMN_STORE_H
#define SND_EXPORT_TABLES_COLUMN_STORE_H

#include "base/data/map.h"
#include "export/tables/tables.h"

struct snd_column {
    enum snd_sql_type type;
    uint8_t           from; /* which column of the table it is */
    union {
        int64_t  *numbers;
        double   *reals;
        uint32_t *texts;
        void     *any;
    };
    uint8_t
          *valid; /* a bit for each row; of no meaning while null_count is 0, or that of the rows */
    size_t null_count;
    /* Until a row differs, only this is there of all rows, as most columns stay; of a text, its number. */
    bool    is_same, is_same_null;
    int64_t same;
    int64_t plain; /* of rows that lack it ... */
    bool    is_plain_null;
};

/* Which columns of a table, and in which order. */
struct snd_chosen {
    size_t  count;
    uint8_t items[SND_SQL_COLUMNS_MAX];
};
/* All but `left_out`, or SIZE_MAX. */
struct snd_chosen snd_chosen_but(const struct snd_sql_table *table, size_t left_out);

/* Zero it, then snd_columns_init(). Which columns it has is fixed then. */
struct snd_columns {
    struct snd_column columns[SND_SQL_COLUMNS_MAX];
    size_t            column_count, count, capacity;
    size_t            row_bytes;   /* what a row takes */
    size_t            lacking;     /* so many last rows, until they are settled, have only ... */
    size_t            lacked_from; /* ... the columns before this one, as so many are given */
    size_t            lacked_given;
    bool              is_in_order; /* of the table: only then rows may lack some */
};

/* Where texts of the table are that were added lately, by address, or by their names. */
#define SND_COLUMN_TEXTS 256
struct snd_column_texts {
    struct snd_texts all;
    uint32_t         latest[SND_COLUMN_TEXTS]; /* in `all`, plus one; 0: none */
    struct {
        uint32_t name, text; /* snd_sql_value.name; in `all` */
    } names[SND_SQL_NAMES];
};

void snd_columns_init(struct snd_columns *columns, const struct snd_sql_table *table,
                      struct snd_chosen chosen);
/* No rows any more; their memory stays for others. */
void snd_columns_clear(struct snd_columns *columns);
void snd_columns_release(struct snd_columns *columns);
/* Adds a row, of all columns of the table, of which the last may be plain (snd_sql_row_fn); false when memory is out. */
bool snd_columns_add(struct snd_columns *columns, const struct snd_sql_value *values, size_t given,
                     struct snd_column_texts *texts);
/*
 * Rows that are added column after column: room for them; then, of each column, their values behind row `row`, 0 where one is
 * null; then `count` of the columns rises. False: out of memory.
 */
bool snd_columns_reserve(struct snd_columns *columns, size_t count);
void snd_column_put(struct snd_column *column, size_t row, const void *values, size_t count,
                    const bool *is_null);
/* The number of a text; false: out of memory. */
bool snd_column_text(struct snd_column_texts *texts, struct sonde_text text, uint32_t *number);
/* To be called before values are looked at: plain ones are written all at once. Columns may be `is_same` ... */
void snd_columns_settle(struct snd_columns *columns);
/* ... but those that are made whole then. */
void snd_columns_spread(struct snd_columns *columns);
void snd_column_spread(struct snd_column *column, size_t count);
/* Adds these rows of columns of the same table; likewise. */
bool snd_columns_copy(struct snd_columns *columns, const struct snd_columns *source,
                      const uint32_t *rows, size_t count);

/* Replaces the rows by these of columns of the same table, in this order: to be looked at, no more are added. False: likewise. */
bool snd_columns_pick(struct snd_columns *columns, const struct snd_columns *source,
                      const uint32_t *rows, size_t count);

/* Keeps these rows, runs of them that follow one another. Its memory stays. */
struct snd_run {
    uint32_t first, count;
};
void snd_columns_keep(struct snd_columns *columns, const struct snd_run *runs, size_t count);

static inline bool snd_column_is_null(const struct snd_column *column, size_t row)
{
    return column->null_count > 0 && !(column->valid[row / 8] & (1u << row % 8));
}

#endif
