/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/parquet/parquet_group.h - a row group of a Parquet file: its bytes, and what the file's footer says of it.
 *
 * Layer: export. Threads: a writer belongs to one thread.
 */
#ifndef SND_EXPORT_PARQUET_PARQUET_GROUP_H
#define SND_EXPORT_PARQUET_PARQUET_GROUP_H

#include "base/text/buf.h"
#include "export/tables/column_store.h"

/* Parquet's numbers of its types (parquet.thrift). */
enum { SND_PARQUET_INT64 = 2, SND_PARQUET_DOUBLE = 5, SND_PARQUET_BYTES = 6 };

/* Memory that row groups are made in, used again for the next one. Zero it. */
struct snd_parquet_scratch {
    struct sonde_buffer bytes; /* of the row group */
    struct sonde_buffer page, text;
    int64_t            *values; /* of a column, without nulls */
    uint32_t           *ids, *local, *locals;
    size_t              value_room, local_room;
};
void snd_parquet_scratch_release(struct snd_parquet_scratch *scratch);

struct snd_parquet_rows {
    const struct snd_sql_table *table;
    size_t                      left_out; /* column of the table that the file does not have */
    const struct snd_columns   *columns;  /* of the rows that are written, in their order */
    const struct snd_texts     *texts;
    size_t                      sorted_by; /* column of the file, or SIZE_MAX */
    uint64_t                    offset;    /* where in the file the row group will be */
    int16_t                     ordinal;
};

/* Fills scratch->bytes, and appends the RowGroup to `footer`; false when memory is out. */
bool snd_parquet_group(struct snd_parquet_scratch *scratch, const struct snd_parquet_rows *rows,
                       struct sonde_buffer *footer);
/* Fills the empty `out` with the end of a file: its footer with `count` row groups, and their lengths. */
void snd_parquet_footer(struct sonde_buffer *out, const struct snd_sql_table *table,
                        size_t left_out, const struct sonde_buffer *groups, size_t count,
                        uint64_t rows);

#endif
