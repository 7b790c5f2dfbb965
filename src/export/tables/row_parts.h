/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/row_parts.h - what the rows of tables.h are made of, between the walk of the trace and who makes rows of it.
 *
 * tables.c      walks the trace and hands over what it meets: a range or an event is less to hand over than its row
 * rows_ahead.c  hands that from a thread to another
 * row_maker.c   makes rows of it
 *
 * Layer: export. Threads: those of the walk and the maker may be two.
 */
#ifndef SND_EXPORT_TABLES_ROW_PARTS_H
#define SND_EXPORT_TABLES_ROW_PARTS_H

#include "base/text/buf.h"
#include "base/data/map.h"
#include "export/encode/rendered_texts.h"
#include "export/tables/tables.h"

/* A range: what its row shows. */
struct snd_sql_range {
    int64_t  start_ns, total_ns, self_ns;
    int64_t  cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;
    uint64_t step; /* number */
    double   flops;
    uint32_t process, thread, name, depth, shapes, module, stack;
    bool     has_step, is_user, is_async;
};

/* An allocation or a free. */
struct snd_sql_memory {
    int64_t  time_ns, size_bytes;
    uint64_t address;
    uint32_t process, thread, device;
    bool     is_free;
};

/* Takes what a walk has met, in order. False ends the walk. */
struct snd_sql_parts {
    /* Where the next range is to be written, and that it is there: a copy would wait for its parts. NULL ends the walk. */
    struct snd_sql_range *(*range_place)(void *user);
    bool (*range)(void *user, const struct snd_sql_range *range);
    bool (*memory)(void *user, const struct snd_sql_memory *memory);
    /* A sample, mark or counter's value. */
    bool (*event)(void *user, const struct sonde_event *event);
    /* A stack that another table refers to. */
    bool (*stack)(void *user, uint32_t process, uint32_t stack);
    snd_sql_row_fn *row; /* all other rows are made where they are met */
    void           *user;
};

/* Errors: SONDE_E_NOMEM; those of a walk. */
SND_CHECKED enum sonde_status snd_sql_parts_walk(struct sonde_trace *trace, unsigned wanted,
                                                 enum snd_sql_order          order,
                                                 const struct snd_sql_parts *to,
                                                 struct sonde_error         *err);

/* A row that is being filled, column after column. */
struct snd_sql_line {
    struct snd_sql_value values[SND_SQL_COLUMNS_MAX];
    size_t               count;
};

/* Set member by member: a copy of a whole would wait for its parts. */
static inline struct snd_sql_value *snd_line_add(struct snd_sql_line *line, bool is_null)
{
    struct snd_sql_value *value = &line->values[line->count++];

    value->is_null = is_null;
    return value;
}

static inline void snd_line_null(struct snd_sql_line *line)
{
    snd_line_add(line, true)->number = 0;
}

static inline void snd_line_number(struct snd_sql_line *line, int64_t number)
{
    snd_line_add(line, false)->number = number;
}

static inline void snd_line_text(struct snd_sql_line *line, struct sonde_text text)
{
    struct snd_sql_value *value = snd_line_add(line, false);

    value->text.bytes = text.bytes;
    value->text.length = text.length;
    value->name = 0;
}

/* Makes rows of parts. */
struct snd_sql_maker {
    struct sonde_trace  *trace;
    unsigned             wanted;
    uint32_t             columns; /* of the one table that is wanted, or all bits */
    struct snd_sql_taker to;
    struct snd_map       stacks; /* (process, stack) that were written */
    struct sonde_buffer  text;
    struct snd_rendered  shapes;
    struct snd_sql_range range; /* of a walk in the same thread */
    struct snd_sql_line  line;
    struct snd_sql_line  plain; /* of a range without details: those are set */
    bool                 out_of_memory;
};

void snd_sqlmaker_begin(struct snd_sql_maker *maker, struct sonde_trace *trace, unsigned wanted,
                        uint32_t columns, const struct snd_sql_taker *to);
/* The texts of a range, as its row has them: name, shapes, module. There until the next call. NULL: out of memory. */
const struct snd_sql_value *snd_sqlmaker_texts(struct snd_sql_maker       *maker,
                                               const struct snd_sql_range *range);
/* What a walk hands over goes into rows. */
struct snd_sql_parts snd_sqlmaker_parts(struct snd_sql_maker *maker);
/* Returns `st`, or that memory ran out. */
SND_CHECKED enum sonde_status snd_sqlmaker_end(struct snd_sql_maker *maker, enum sonde_status st,
                                               struct sonde_error *err);

#endif
