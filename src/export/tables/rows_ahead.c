/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/rows_ahead.c - snd_sql_rows(): a walk in a thread of its own, and the rows of what it meets in this one.
 *
 * A record is a range or an event as row_parts.h has it, a third of what its row takes; or a row that was made where the walk
 * is: its values as they are, and the bytes of texts behind them. Packing them into less costs more than the bytes.
 */
#include "export/common/walk_ahead.h"
#include "export/tables/row_parts.h"

enum kind { RANGE, MEMORY, EVENT, STACK, ROW };

struct head {
    uint32_t size; /* of the whole record */
    uint8_t  kind;
    uint8_t  table, count; /* of a row: its values */
};

struct range_record {
    struct head          head;
    struct snd_sql_range range;
};

struct memory_record {
    struct head           head;
    struct snd_sql_memory memory;
};

struct event_record {
    struct head        head;
    struct sonde_event event;
};

struct stack_record {
    struct head head;
    uint32_t    process, stack;
};

struct row_record {
    struct head          head;
    struct snd_sql_value values[];
};

_Static_assert(sizeof(struct range_record) % 8 == 0, "records lie one behind the other");
_Static_assert(sizeof(struct memory_record) % 8 == 0, "records lie one behind the other");
_Static_assert(sizeof(struct event_record) % 8 == 0, "records lie one behind the other");
_Static_assert(sizeof(struct stack_record) % 8 == 0, "records lie one behind the other");
_Static_assert(sizeof(struct row_record) % 8 == 0, "values lie behind it");
_Static_assert(sizeof(struct snd_sql_value) % 8 == 0, "records lie one behind the other");

/* ---------------------------------------------------------------------- packing */

static struct snd_sql_range *place_range(void *user)
{
    struct range_record *r = snd_ahead_room(user, sizeof *r);

    if (!r)
        return NULL;
    r->head = (struct head){ .size = sizeof *r, .kind = RANGE };
    return &r->range;
}

static bool pack_range(void *user, const struct snd_sql_range *range)
{
    (void)range; /* it is there */
    snd_ahead_put(user, sizeof(struct range_record));
    return true;
}

static bool pack_memory(void *user, const struct snd_sql_memory *memory)
{
    struct snd_ahead_writer *writer = user;
    struct memory_record    *r = snd_ahead_room(writer, sizeof *r);

    if (!r)
        return false;
    r->head = (struct head){ .size = sizeof *r, .kind = MEMORY };
    r->memory = *memory;
    snd_ahead_put(writer, sizeof *r);
    return true;
}

static bool pack_event(void *user, const struct sonde_event *event)
{
    struct snd_ahead_writer *writer = user;
    struct event_record     *r = snd_ahead_room(writer, sizeof *r);

    if (!r)
        return false;
    r->head = (struct head){ .size = sizeof *r, .kind = EVENT };
    r->event = *event;
    snd_ahead_put(writer, sizeof *r);
    return true;
}

static bool pack_stack(void *user, uint32_t process, uint32_t stack)
{
    struct snd_ahead_writer *writer = user;
    struct stack_record     *r = snd_ahead_room(writer, sizeof *r);

    if (!r)
        return false;
    *r = (struct stack_record){ { .size = sizeof *r, .kind = STACK }, process, stack };
    snd_ahead_put(writer, sizeof *r);
    return true;
}

/* Names stay where they are; other texts may be there for the call alone. */
static size_t copied(const struct snd_sql_column *column, const struct snd_sql_value *value)
{
    return column->type != SND_SQL_TEXT || value->is_null || value->name != 0
               ? 0
               : (value->text.length + 7) / 8 * 8;
}

static void copy_texts(const struct snd_sql_table *table, struct row_record *r)
{
    char *at = (char *)&r->values[r->head.count];

    for (size_t k = 0; k < r->head.count; k++) {
        struct snd_sql_value *value = &r->values[k];
        size_t                size = copied(&table->columns[k], value);
        if (size == 0)
            continue;
        memcpy(at, value->text.bytes, value->text.length);
        value->text.bytes = at;
        at += size;
    }
}

/* A snd_sql_row_fn, of rows that are whole. */
static bool pack_row(void *user, enum snd_sql_table_id id, const struct snd_sql_value *values,
                     size_t given)
{
    struct snd_ahead_writer    *writer = user;
    const struct snd_sql_table *table = &snd_sql_tables[id];
    size_t                      count = snd_sql_column_count(table);
    size_t                      size = sizeof(struct row_record) + count * sizeof *values;

    (void)given;
    for (size_t k = 0; k < count; k++)
        size += copied(&table->columns[k], &values[k]);
    struct row_record *r = size > UINT32_MAX ? NULL : snd_ahead_room(writer, size);
    if (!r) {
        writer->out_of_memory |= size > UINT32_MAX;
        return false;
    }
    r->head = (struct head){ (uint32_t)size, ROW, (uint8_t)id, (uint8_t)count };
    memcpy(r->values, values, count * sizeof *values);
    copy_texts(table, r);
    snd_ahead_put(writer, size);
    return true;
}

/* ----------------------------------------------------------------------- taking */

static bool take(const struct snd_sql_parts *to, const struct head *head)
{
    const struct range_record  *range = (const struct range_record *)head;
    const struct memory_record *memory = (const struct memory_record *)head;
    const struct event_record  *event = (const struct event_record *)head;
    const struct stack_record  *stack = (const struct stack_record *)head;
    const struct row_record    *row = (const struct row_record *)head;

    switch ((enum kind)head->kind) {
    case RANGE:
        return to->range(to->user, &range->range);
    case MEMORY:
        return to->memory(to->user, &memory->memory);
    case EVENT:
        return to->event(to->user, &event->event);
    case STACK:
        return to->stack(to->user, stack->process, stack->stack);
    case ROW:
        break;
    }
    return to->row(to->user, (enum snd_sql_table_id)head->table, row->values, SND_SQL_COLUMNS_MAX);
}

/* The records of a block. False: one was not taken. */
static bool take_block(const struct snd_sql_parts *to, const struct snd_block *block)
{
    const char *at = block->bytes, *stop = at + block->length;
    bool        good = true;

    for (; at < stop && good; at += ((const struct head *)at)->size)
        good = take(to, (const struct head *)at);
    return good;
}

/* ------------------------------------------------------------------------ whole */

struct rows_ahead {
    struct sonde_trace *trace;
    unsigned            wanted;
    enum snd_sql_order  order;
};

static enum sonde_status pack_parts(void *user, struct snd_ahead_writer *writer,
                                    struct sonde_error *err)
{
    const struct rows_ahead   *rows = user;
    const struct snd_sql_parts packing = { .range_place = place_range,
                                           .range = pack_range,
                                           .memory = pack_memory,
                                           .event = pack_event,
                                           .stack = pack_stack,
                                           .row = pack_row,
                                           .user = writer };

    return snd_sql_parts_walk(rows->trace, rows->wanted, rows->order, &packing, err);
}

enum sonde_status snd_sql_rows(struct sonde_trace *trace, unsigned wanted, enum snd_sql_order order,
                               const struct snd_sql_taker *to, struct sonde_error *err)
{
    struct rows_ahead       rows = { trace, wanted, order };
    struct snd_ahead        ahead;
    struct snd_sql_maker    maker;
    const struct snd_block *block;

    if (!snd_ahead_pays(trace) || !snd_ahead_begin(&ahead, pack_parts, &rows))
        return snd_sql_rows_here(trace, wanted, order, to, err);
    snd_sqlmaker_begin(&maker, trace, wanted, UINT32_MAX, to);
    const struct snd_sql_parts parts = snd_sqlmaker_parts(&maker);
    while ((block = snd_ahead_next(&ahead)) != NULL && take_block(&parts, block) &&
           (!to->settle || to->settle(to->user)))
        ;
    if (block)
        snd_ahead_stop(&ahead);
    return snd_sqlmaker_end(&maker, snd_ahead_end(&ahead, err), err);
}
