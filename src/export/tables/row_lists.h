/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/row_lists.h - for each different text the rows that have it: what an index is made of.
 *
 * Rows are kept as differences, in pieces of a few bytes: somewhat over a byte a row.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_TABLES_ROW_LISTS_H
#define SND_EXPORT_TABLES_ROW_LISTS_H

#include "base/data/map.h"
#include "export/tables/tables.h"
#include "sonde/trace.h"

#define SND_ROWLIST_PIECE 27
#define SND_ROWLIST_RECENT 256

struct snd_rowlist_piece {
    uint32_t next; /* 0: none */
    uint8_t  used;
    uint8_t  bytes[SND_ROWLIST_PIECE];
};

struct snd_rowlist {
    int64_t  latest;
    uint32_t text; /* in texts */
    uint32_t first, last;
};

/* Zero it. */
struct snd_rowlists {
    struct snd_texts          texts;
    struct snd_rowlist       *lists; /* by number of the text, until they are sorted */
    struct snd_rowlist_piece *pieces;
    uint32_t                  list_count, list_room, piece_count, piece_room;
    uint32_t recent[SND_ROWLIST_RECENT]; /* numbers of texts, by where their bytes were */
    struct {
        uint32_t name, number; /* snd_sql_value.name */
    } names[SND_SQL_NAMES];
};

/* Adds a row, whose number rises. `name`: of the text (snd_sql_value), or 0. False: out of memory. */
bool snd_rowlists_add(struct snd_rowlists *lists, struct sonde_text text, uint32_t name,
                      int64_t row);
/* Puts lists[] into the order of their texts' bytes. No row is added then. */
void snd_rowlists_sort(struct snd_rowlists *lists);
void snd_rowlists_release(struct snd_rowlists *lists);

struct snd_rowlist_position {
    int64_t  row;
    uint32_t piece;
    uint8_t  at;
};
static inline struct snd_rowlist_position snd_rowlist_first(const struct snd_rowlist *list)
{
    return (struct snd_rowlist_position){ .piece = list->first };
}
/* False after the last row. */
bool snd_rowlist_next(const struct snd_rowlists *lists, struct snd_rowlist_position *at,
                      int64_t *row);

#endif
