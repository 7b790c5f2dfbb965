/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/range_columns.h - rows of many ranges at once, for formats that hold columns.
 *
 * A column is filled by a loop of its own over the ranges, without values (tables.h) between them.
 *
 * Layer: export. Threads: one at a time.
 */
#ifndef SND_EXPORT_TABLES_RANGE_COLUMNS_H
#define SND_EXPORT_TABLES_RANGE_COLUMNS_H

#include "export/tables/column_store.h"
#include "export/tables/row_parts.h"

#define SND_RANGES_MOST 256u /* that are taken at once */

/* Which of a process's texts has which number in a table of texts; of what comes again and again. */
#define SND_RANGE_TEXTS 1024u
struct snd_range_text {
    uint32_t process, id; /* of shapes or a module; 0: none */
    uint32_t text;
    bool     is_null;
};

/* Zero it, then set `trace` and `texts`. */
struct snd_range_filler {
    struct sonde_trace      *trace;
    struct snd_column_texts *texts;
    uint32_t                *names; /* text of each name of the trace, plus one; 0: not known yet */
    struct snd_range_text    shapes[SND_RANGE_TEXTS], modules[SND_RANGE_TEXTS];
    struct sonde_buffer      text;
    int64_t                  values[SND_RANGES_MOST]; /* of a column */
    bool                     is_null[SND_RANGES_MOST];
};

/* Adds rows of at most SND_RANGES_MOST ranges to columns of the table of ranges. False: out of memory. */
bool snd_ranges_fill(struct snd_range_filler *filler, struct snd_columns *columns,
                     const struct snd_sql_range *const *ranges, size_t count);
void snd_ranges_release(struct snd_range_filler *filler);

#endif
