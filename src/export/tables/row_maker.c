/* SPDX-License-Identifier: Apache-2.0 */
/* export/tables/row_maker.c - rows of ranges, events and stacks, of what a walk has met (row_parts.h). */
#include <math.h>
#include <string.h>

#include "export/tables/row_parts.h"
#include "export/timeline/torch_tensors.h"
#include "format/fields.h"
#include "read/walk/trace_walk.h"

/* ---------------------------------------------------------------------- values */

static void add_real(struct snd_sql_line *line, double real)
{
    snd_line_add(line, isnan(real))->real = isnan(real) ? 0 : real;
}

static void add_name(struct snd_sql_line *line, const struct sonde_trace *trace, uint32_t name)
{
    const struct snd_text *text = &trace->names.items[name];
    struct snd_sql_value  *value = snd_line_add(line, false);

    value->text.bytes = text->bytes;
    value->text.length = text->length;
    value->name = name + 1;
}

static void add_stack(struct snd_sql_line *line, uint32_t stack)
{
    if (stack)
        snd_line_number(line, stack);
    else
        snd_line_null(line);
}

static bool end_row(struct snd_sql_maker *m, enum snd_sql_table_id table)
{
    m->line.count = 0;
    return !(m->wanted & 1u << table) ||
           m->to.row(m->to.user, table, m->line.values, SND_SQL_COLUMNS_MAX);
}

/* ---------------------------------------------------------------------- stacks */

static bool make_stack(void *user, uint32_t process, uint32_t stack)
{
    struct snd_sql_maker *m = user;
    struct sonde_frame    frame;
    struct snd_key        key = { process, stack, 0 };
    uint32_t              known, rest = stack;

    if (stack == 0 || !(m->wanted & SND_SQL_ONLY(stacks)) || snd_map_get(&m->stacks, key, &known))
        return true;
    if (!snd_map_put(&m->stacks, key, 0)) {
        m->out_of_memory = true;
        return false;
    }
    for (size_t i = 0; i < SND_STACK_MAX && snd_stack_next(m->trace, process, &rest, &frame); i++) {
        snd_line_number(&m->line, process);
        snd_line_number(&m->line, stack);
        snd_line_number(&m->line, (int64_t)i);
        snd_line_text(&m->line, frame.function);
        snd_line_text(&m->line, frame.file);
        snd_line_number(&m->line, frame.line);
        if (!end_row(m, SND_TABLE_stacks))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------------- ranges */

static void add_shapes(struct snd_sql_maker *m, struct snd_sql_line *line, uint32_t process,
                       uint32_t shapes)
{
    struct snd_rendered_key  key = { { process, shapes } };
    const struct sonde_text *kept = snd_rendered_find(&m->shapes, &key);

    if (kept) {
        uint32_t number = snd_rendered_number(kept);
        snd_line_text(line, *kept);
        if (number != 0 && number < SND_SQL_MADE_NAME)
            line->values[line->count - 1].name = SND_SQL_MADE_NAME | number;
    } else if (snd_tensors_text(m->trace, process, shapes, &m->text)) {
        snd_rendered_keep(&m->shapes, &key, m->text.bytes, m->text.length);
        snd_line_text(line, (struct sonde_text){ m->text.bytes, m->text.length });
        m->out_of_memory |= m->text.failed;
    } else {
        snd_line_null(line);
        m->out_of_memory |= m->text.failed;
    }
}

/* What most queries look at. */
static void add_times(struct snd_sql_line *line, const struct sonde_trace *trace,
                      const struct snd_sql_range *r)
{
    snd_line_number(line, r->process);
    snd_line_number(line, r->thread);
    add_name(line, trace, r->name);
    snd_line_number(line, r->start_ns);
    snd_line_number(line, r->total_ns);
    snd_line_number(line, r->self_ns);
    snd_line_number(line, r->depth);
}

static void add_kind(struct snd_sql_line *line, const struct snd_sql_range *r)
{
    if (r->has_step)
        snd_line_number(line, (int64_t)r->step);
    else
        snd_line_null(line);
    snd_line_number(line, r->is_user);
    snd_line_number(line, r->is_async);
}

/* What few ranges have: a plain one is null, null, null, 0, .. in add_details(). */
static bool has_details(const struct snd_sql_range *r)
{
    return (r->shapes | r->module | r->stack) != 0 || r->flops != 0 ||
           (r->cpu_bytes | r->self_cpu_bytes | r->device_bytes | r->self_device_bytes) != 0;
}

static void add_module(const struct snd_sql_maker *m, struct snd_sql_line *line,
                       const struct snd_sql_range *r)
{
    if (r->module)
        snd_line_text(line, sonde_trace_string(m->trace, r->process, r->module));
    else
        snd_line_null(line);
}

static void add_details(struct snd_sql_maker *m, struct snd_sql_line *line,
                        const struct snd_sql_range *r)
{
    if (m->columns & SND_SQL_COLUMN(ranges, shapes))
        add_shapes(m, line, r->process, r->shapes);
    else
        snd_line_null(line);
    add_module(m, line, r);
    add_stack(line, r->stack);
    add_real(line, r->flops);
    snd_line_number(line, r->cpu_bytes);
    snd_line_number(line, r->self_cpu_bytes);
    snd_line_number(line, r->device_bytes);
    snd_line_number(line, r->self_device_bytes);
}

static struct snd_sql_range *place_range(void *user)
{
    struct snd_sql_maker *m = user;

    return &m->range;
}

static bool make_range(void *user, const struct snd_sql_range *r)
{
    struct snd_sql_maker *m = user;

    if (r->stack && !make_stack(m, r->process, r->stack))
        return false;
    if (!(m->wanted & SND_SQL_ONLY(ranges)))
        return true;
    if (m->to.range)
        return m->to.range(m->to.user, m, r);
    bool has_more = m->columns >= SND_SQL_COLUMN(ranges, step); /* that one, or another after it */
    bool is_plain = has_more && !has_details(r);
    struct snd_sql_line *line = is_plain ? &m->plain : &m->line;
    line->count = 0;
    add_times(line, m->trace, r);
    if (has_more)
        add_kind(line, r);
    size_t given = is_plain ? line->count : SND_SQL_COLUMNS_MAX;
    if (has_more && !is_plain)
        add_details(m, line, r);
    line->count = 0;
    return !m->out_of_memory && m->to.row(m->to.user, SND_TABLE_ranges, line->values, given);
}

/* ---------------------------------------------------------------------- events */

static void add_place(struct snd_sql_line *line, const struct sonde_event *e)
{
    snd_line_number(line, e->process);
    snd_line_number(line, e->thread);
    snd_line_number(line, e->time_ns);
}

static bool make_sample(struct snd_sql_maker *m, const struct sonde_event *e)
{
    if (!make_stack(m, e->process, e->sample.stack))
        return false;
    add_place(&m->line, e);
    snd_line_number(&m->line, (int64_t)e->sample.covered_ns);
    snd_line_number(&m->line, e->sample.count);
    snd_line_number(&m->line, (e->sample.state & SONDE_SAMPLE_ON_CPU) != 0);
    snd_line_number(&m->line, (e->sample.state & SONDE_SAMPLE_GIL) != 0);
    add_stack(&m->line, e->sample.stack);
    return end_row(m, SND_TABLE_samples);
}

static bool make_memory(void *user, const struct snd_sql_memory *memory)
{
    struct snd_sql_maker *m = user;

    snd_line_number(&m->line, memory->process);
    snd_line_number(&m->line, memory->thread);
    snd_line_number(&m->line, memory->time_ns);
    snd_line_number(&m->line, memory->is_free);
    snd_line_number(&m->line, SND_DEVICE_TYPE(memory->device));
    if (SND_DEVICE_INDEX(memory->device) == 0xffff)
        snd_line_null(&m->line);
    else
        snd_line_number(&m->line, SND_DEVICE_INDEX(memory->device));
    snd_line_number(&m->line, (int64_t)memory->address);
    snd_line_number(&m->line, memory->size_bytes);
    return end_row(m, SND_TABLE_memory);
}

static bool make_counter(struct snd_sql_maker *m, const struct sonde_event *e)
{
    add_place(&m->line, e);
    snd_line_text(&m->line, sonde_trace_string(m->trace, e->process, e->counter.name));
    add_real(&m->line, e->counter.value);
    return end_row(m, SND_TABLE_counters);
}

static bool make_mark(struct snd_sql_maker *m, const struct sonde_event *e)
{
    if (!make_stack(m, e->process, e->mark.stack))
        return false;
    add_place(&m->line, e);
    snd_line_text(&m->line, sonde_trace_string(m->trace, e->process, e->mark.name));
    add_stack(&m->line, e->mark.stack);
    return end_row(m, SND_TABLE_marks);
}

static bool make_event(void *user, const struct sonde_event *event)
{
    switch (event->kind) {
    case SONDE_EVENT_SAMPLE:
        return make_sample(user, event);
    case SONDE_EVENT_MARK:
        return make_mark(user, event);
    case SONDE_EVENT_COUNTER:
        return make_counter(user, event);
    default:
        return true;
    }
}

/* ----------------------------------------------------------------------- whole */

const struct snd_sql_value *snd_sqlmaker_texts(struct snd_sql_maker       *maker,
                                               const struct snd_sql_range *r)
{
    struct snd_sql_line *line = &maker->line;

    line->count = 0;
    add_name(line, maker->trace, r->name);
    add_shapes(maker, line, r->process, r->shapes);
    add_module(maker, line, r);
    line->count = 0;
    return maker->out_of_memory ? NULL : line->values;
}

/* A row that was made elsewhere. */
static bool pass_row(void *user, enum snd_sql_table_id table, const struct snd_sql_value *values,
                     size_t given)
{
    const struct snd_sql_maker *m = user;

    return m->to.row(m->to.user, table, values, given);
}

void snd_sqlmaker_begin(struct snd_sql_maker *maker, struct sonde_trace *trace, unsigned wanted,
                        uint32_t columns, const struct snd_sql_taker *to)
{
    static const struct snd_sql_range none;

    *maker =
        (struct snd_sql_maker){ .trace = trace, .wanted = wanted, .columns = columns, .to = *to };
    maker->plain.count = offsetof(struct snd_columns_of_ranges, shapes);
    add_details(maker, &maker->plain, &none);
}

struct snd_sql_parts snd_sqlmaker_parts(struct snd_sql_maker *maker)
{
    return (struct snd_sql_parts){ .range_place = place_range,
                                   .range = make_range,
                                   .memory = make_memory,
                                   .event = make_event,
                                   .stack = make_stack,
                                   .row = pass_row,
                                   .user = maker };
}

enum sonde_status snd_sqlmaker_end(struct snd_sql_maker *maker, enum sonde_status st,
                                   struct sonde_error *err)
{
    snd_map_release(&maker->stacks);
    snd_rendered_release(&maker->shapes);
    sonde_buffer_release(&maker->text);
    return st == SONDE_OK && maker->out_of_memory
               ? snd_fail(err, SONDE_E_NOMEM, "out of memory for the tables")
               : st;
}
