/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/parquet/parquet_part.h - one Parquet file: the rows of a table that one process has.
 *
 * Rows are collected and written in row groups, sorted by time. Ranges come when they end, so that one that
 * began long ago may come after later ones were written: such rows, few by nature, are collected apart
 * and are the last row group. Between writes no file is open: there may be thousands of parts.
 *
 * Layer: export. Threads: one at a time; the queue has another.
 */
#ifndef SND_EXPORT_PARQUET_PARQUET_PART_H
#define SND_EXPORT_PARQUET_PARQUET_PART_H

#include "export/parquet/parquet_queue.h"
#include "export/tables/range_columns.h"

#define SND_PARQUET_GROUP_ROWS 32768u

struct snd_parquet_part {
    enum snd_sql_table_id table;
    size_t                left_out, time; /* columns of the table, or SIZE_MAX */
    char                 *path;           /* owned */
    struct snd_columns    rows, late;
    int64_t               written_to; /* rows that are earlier are late */
    /* The file's, which the queue has while groups are on their way. */
    bool                has_file;
    uint64_t            size, row_count;
    struct sonde_buffer groups; /* for the footer */
    uint32_t            group_count;
};
/* The column of the file that rows are sorted by, or SIZE_MAX. */
static inline size_t snd_parquet_sorted_by(const struct snd_parquet_part *part)
{
    return part->time == SIZE_MAX ? SIZE_MAX : part->time - (part->time > part->left_out);
}

/* What all parts share. Zero it, then set what `ranges` asks for. */
struct snd_parquet_shared {
    struct snd_column_texts  texts;
    struct snd_range_filler  ranges;
    struct snd_parquet_queue queue;
    uint32_t                *order;
    size_t                   order_room;
    struct snd_run          *kept; /* runs of rows that stay when half of them are written */
    uint8_t                 *is_kept;
};
void snd_parquet_shared_release(struct snd_parquet_shared *shared);

/* Owns: takes `path`, also when it fails. */
void snd_parquet_part_init(struct snd_parquet_part *part, enum snd_sql_table_id table, char *path);
void snd_parquet_part_release(struct snd_parquet_part *part);

/* Errors, of all: SONDE_E_IO, SONDE_E_NOMEM. */
SND_CHECKED enum sonde_status snd_parquet_part_add(struct snd_parquet_part    *part,
                                                   struct snd_parquet_shared  *shared,
                                                   const struct snd_sql_value *values, size_t given,
                                                   struct sonde_error *err);
/* Adds rows of a range, or of as many as there is room for, of which none is late. */
SND_CHECKED enum sonde_status snd_parquet_part_add_ranges(struct snd_parquet_part           *part,
                                                          struct snd_parquet_shared         *shared,
                                                          const struct snd_sql_range *const *ranges,
                                                          size_t count, struct sonde_error *err);
/* Whether later rows than one of this moment are written already: it comes late. */
static inline bool snd_parquet_part_is_past(const struct snd_parquet_part *part, int64_t time_ns)
{
    return time_ns < part->written_to;
}
static inline bool snd_parquet_part_is_late(const struct snd_parquet_part *part,
                                            const struct snd_sql_value    *values)
{
    return part->time != SIZE_MAX && snd_parquet_part_is_past(part, values[part->time].number);
}
/* How many rows that are not late can be added until one takes memory or completes a row group. */
static inline size_t snd_parquet_part_room(const struct snd_parquet_part *part)
{
    size_t until = part->rows.capacity < 2 * SND_PARQUET_GROUP_ROWS - 1
                       ? part->rows.capacity
                       : 2 * SND_PARQUET_GROUP_ROWS - 1;

    return until > part->rows.count ? until - part->rows.count : 0;
}
/* Writes half of what is collected, the earlier one, and gives its memory back. */
SND_CHECKED enum sonde_status snd_parquet_part_spill(struct snd_parquet_part   *part,
                                                     struct snd_parquet_shared *shared,
                                                     struct sonde_error        *err);
/* Writes the rest. */
SND_CHECKED enum sonde_status snd_parquet_part_flush(struct snd_parquet_part   *part,
                                                     struct snd_parquet_shared *shared,
                                                     struct sonde_error        *err);
/* The same, and the footer. */
SND_CHECKED enum sonde_status snd_parquet_part_finish(struct snd_parquet_part   *part,
                                                      struct snd_parquet_shared *shared,
                                                      struct sonde_error        *err);
/* What its rows take. */
static inline size_t snd_parquet_part_memory(const struct snd_parquet_part *part)
{
    return part->rows.capacity * part->rows.row_bytes + part->late.capacity * part->late.row_bytes;
}

#endif
