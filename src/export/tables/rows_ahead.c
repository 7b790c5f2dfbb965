/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/rows_ahead.c - snd_sql_rows(): rows whose walk has a thread of its own, as records from that to this one.
 *
 * A record is a row's values as they are, and the bytes of texts behind them: packing them into less costs more than the bytes.
 */
#include "export/common/walk_ahead.h"
#include "export/tables/tables.h"

struct record {
    uint32_t             size; /* of the whole */
    uint8_t              table, given;
    uint8_t              count;    /* of values that are there */
    bool                 is_plain; /* it lacks columns, or is the first of those */
    struct snd_sql_value values[];
};

_Static_assert(sizeof(struct record) % 8 == 0, "values lie behind it");
_Static_assert(sizeof(struct snd_sql_value) % 8 == 0, "records lie one behind the other");

/* ---------------------------------------------------------------------- packing */

/* Which columns are texts. */
struct shape {
    uint8_t count, text_count;
    uint8_t texts[SND_SQL_COLUMNS_MAX];
};

struct pack {
    struct snd_ahead_writer *writer;
    struct shape             shapes[SND_SQL_TABLES];
    bool                     has_plain[SND_SQL_TABLES]; /* what is plain has been told */
};

static void shape_tables(struct shape shapes[SND_SQL_TABLES])
{
    for (size_t i = 0; i < SND_SQL_TABLES; i++) {
        const struct snd_sql_table *table = &snd_sql_tables[i];
        shapes[i].count = (uint8_t)snd_sql_column_count(table);
        for (uint8_t k = 0; k < shapes[i].count; k++)
            if (table->columns[k].type == SND_SQL_TEXT)
                shapes[i].texts[shapes[i].text_count++] = k;
    }
}

/* Names stay where they are; other texts may be there for the call alone. */
static size_t copied(const struct snd_sql_value *value)
{
    return value->is_null || value->name != 0 ? 0 : (value->text.length + 7) / 8 * 8;
}

static size_t measure_texts(const struct shape *shape, const struct snd_sql_value *values,
                            size_t count)
{
    size_t size = 0;

    for (size_t k = 0; k < shape->text_count && shape->texts[k] < count; k++)
        size += copied(&values[shape->texts[k]]);
    return size;
}

static void copy_texts(struct record *r, const struct shape *shape)
{
    char *at = (char *)&r->values[r->count];

    for (size_t k = 0; k < shape->text_count && shape->texts[k] < r->count; k++) {
        struct snd_sql_value *value = &r->values[shape->texts[k]];
        size_t                size = copied(value);
        if (size == 0)
            continue;
        memcpy(at, value->text.bytes, value->text.length);
        value->text.bytes = at;
        at += size;
    }
}

/* A snd_sql_row_fn. */
static bool pack_row(void *user, enum snd_sql_table_id table, const struct snd_sql_value *values,
                     size_t given)
{
    struct pack        *pack = user;
    const struct shape *shape = &pack->shapes[table];
    bool                is_plain = given < shape->count;
    bool                is_whole = !is_plain || !pack->has_plain[table];
    size_t              count = is_whole ? shape->count : given;
    size_t              texts = measure_texts(shape, values, count);
    size_t              size = sizeof(struct record) + count * sizeof *values + texts;
    struct record      *r = size > UINT32_MAX ? NULL : snd_ahead_room(pack->writer, size);

    if (!r) {
        pack->writer->out_of_memory |= size > UINT32_MAX;
        return false;
    }
    *r = (struct record){ (uint32_t)size, (uint8_t)table, (uint8_t)given, (uint8_t)count,
                          is_plain };
    pack->has_plain[table] |= is_plain;
    memcpy(r->values, values, count * sizeof *values);
    if (texts > 0)
        copy_texts(r, shape);
    snd_ahead_put(pack->writer, size);
    return true;
}

/* -------------------------------------------------------------------- replaying */

struct replay {
    snd_sql_row_fn      *row;
    void                *user;
    struct snd_sql_value plain[SND_SQL_TABLES][SND_SQL_COLUMNS_MAX]; /* of rows that lack columns */
};

static bool call(struct replay *replay, const struct record *r)
{
    const struct snd_sql_value *values = r->values;

    if (r->is_plain) {
        memcpy(replay->plain[r->table], r->values, r->count * sizeof *r->values);
        values = replay->plain[r->table];
    }
    return replay->row(replay->user, (enum snd_sql_table_id)r->table, values, r->given);
}

/* The rows of a block. False: one was not taken. */
static bool take_rows(struct replay *replay, const struct snd_block *block)
{
    const char *at = block->bytes, *stop = at + block->length;
    bool        good = true;

    for (; at < stop && good; at += ((const struct record *)at)->size)
        good = call(replay, (const struct record *)at);
    return good;
}

/* ------------------------------------------------------------------------ whole */

struct rows_ahead {
    struct sonde_trace *trace;
    unsigned            wanted;
    enum snd_sql_order  order;
};

static enum sonde_status pack_rows(void *user, struct snd_ahead_writer *writer,
                                   struct sonde_error *err)
{
    const struct rows_ahead *rows = user;
    struct pack              pack = { .writer = writer };

    shape_tables(pack.shapes);
    return snd_sql_rows_here(rows->trace, rows->wanted, rows->order, pack_row, &pack, err);
}

/* The walk and what makes rows of it in a thread of its own, which hands them over here. */
enum sonde_status snd_sql_rows(struct sonde_trace *trace, unsigned wanted, enum snd_sql_order order,
                               snd_sql_row_fn *row, void *user, struct sonde_error *err)
{
    struct rows_ahead       rows = { trace, wanted, order };
    struct snd_ahead        ahead;
    struct replay           replay = { .row = row, .user = user };
    const struct snd_block *block;

    if (!snd_ahead_pays(trace) || !snd_ahead_begin(&ahead, pack_rows, &rows))
        return snd_sql_rows_here(trace, wanted, order, row, user, err);
    while ((block = snd_ahead_next(&ahead)) != NULL && take_rows(&replay, block))
        ;
    if (block)
        snd_ahead_stop(&ahead);
    return snd_ahead_end(&ahead, err);
}
