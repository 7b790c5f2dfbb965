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
    uint8_t *valid; /* a bit for each row; of no meaning while null_count is 0 */
    size_t   null_count;
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
    size_t            row_bytes; /* what a row takes */
};

/* Where texts of the table are that were added lately, by address: nearly all come again and again. */
#define SND_COLUMN_TEXTS 256
struct snd_column_texts {
    struct snd_texts all;
    uint32_t         latest[SND_COLUMN_TEXTS]; /* in `all`, plus one; 0: none */
};

void snd_columns_init(struct snd_columns *columns, const struct snd_sql_table *table,
                      struct snd_chosen chosen);
/* No rows any more; their memory stays for others. */
void snd_columns_clear(struct snd_columns *columns);
void snd_columns_release(struct snd_columns *columns);
/* Adds a row, of all columns of the table; false when memory is out. */
bool snd_columns_add(struct snd_columns *columns, const struct snd_sql_value *values,
                     struct snd_column_texts *texts);
/* Adds these rows of columns of the same table; likewise. */
bool snd_columns_copy(struct snd_columns *columns, const struct snd_columns *source,
                      const uint32_t *rows, size_t count);

static inline bool snd_column_is_null(const struct snd_column *column, size_t row)
{
    return column->null_count > 0 && !(column->valid[row / 8] & (1u << row % 8));
}

#endif
