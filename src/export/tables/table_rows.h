/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/table_rows.h - what is behind sonde/tables.h: columns of a table with their texts.
 *
 * table_columns.c  a table, filled and shown
 * table_scan.c     a table in batches, each of which is a table of its own
 *
 * Layer: export. Threads: one at a time fills it; any number may read what is shown.
 */
#ifndef SND_EXPORT_TABLES_TABLE_ROWS_H
#define SND_EXPORT_TABLES_TABLE_ROWS_H

#include "export/tables/column_store.h"
#include "sonde/tables.h"

struct sonde_table {
    const struct snd_sql_table *of;
    struct snd_columns          rows;
    struct snd_column_texts     texts;
    struct sonde_table_column   shown[SND_SQL_COLUMNS_MAX];
    /* Of a batch: where it goes when it is freed, from whatever thread; and the next one of a list. */
    void (*give_back)(struct sonde_table *batch);
    void               *owner;
    struct sonde_table *next;
};

/* The number of the table of this name. Errors: SONDE_E_ARGUMENT, with the names that there are. */
SND_CHECKED enum sonde_status snd_sqltable_find(const char *name, enum snd_sql_table_id *id,
                                                struct sonde_error *err);

/* NULL: out of memory. */
struct sonde_table *snd_sqltable_begin(const struct snd_sql_table *of, struct snd_chosen chosen);
/* Shows the rows that it has by now. False: out of memory. */
SND_CHECKED bool snd_sqltable_show(struct sonde_table *table);
/* No rows any more; their memory stays. */
void snd_sqltable_clear(struct sonde_table *table);
/* Frees its memory, whatever it belongs to. */
void snd_sqltable_release(struct sonde_table *table);

#endif
