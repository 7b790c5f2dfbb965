/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events/event_columns.c - columns of the events, each made when it is first asked for.
 *
 * Some columns are the rows' own arrays. Most follow from an event's kind or thread: a value is worked
 * out once for each of these, then copied. A column of nothing but 0 is memory that is never written.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/large_pages.h"
#include "format/fields.h"
#include "model/events/event_rows.h"
#include "model/torch_stacks.h"

/* --------------------------------------------------------------- values of kinds */

/* A value as it is stored, in the low bytes. */
static uint64_t bits(double number)
{
    uint64_t word;

    memcpy(&word, &number, sizeof word);
    return word;
}

static uint64_t text_of_name(const struct sonde_events *e, uint32_t name)
{
    return name == e->empty ? 0 : (uint64_t)name + 1;
}

static uint64_t text_of_id(const struct sonde_events *e, uint32_t process, uint32_t id)
{
    uint32_t name = id != 0 ? snd_name_of(&e->trace->processes[process], id) : UINT32_MAX;

    return name == UINT32_MAX ? 0 : text_of_name(e, name);
}

/* clang-format off */
#define OF_KIND(column, value)                                                     \
    static uint64_t kind_##column(const struct sonde_events *e, uint32_t number)   \
    {                                                                              \
        const struct snd_row_kind *k = &e->kinds[number];                        \
        return (value);                                                            \
    }
OF_KIND(name, text_of_name(e, k->shown_name))
OF_KIND(trace_name, k->flags & SONDE_EVENT_IS_MEMORY ? 0 : text_of_name(e, k->name))
OF_KIND(overload, text_of_id(e, k->process, k->overload))
OF_KIND(arguments, text_of_id(e, k->process, k->arguments))
OF_KIND(keywords, text_of_id(e, k->process, k->keywords))
OF_KIND(module, text_of_id(e, k->process, k->module))
OF_KIND(process, k->process)
OF_KIND(shapes, k->shapes)
OF_KIND(strides, k->strides)
OF_KIND(stack, k->stack)
OF_KIND(scope, k->scope)
OF_KIND(flags, k->flags)
OF_KIND(flops, bits(k->flops))
OF_KIND(macs, bits(k->macs))
OF_KIND(moved_bytes, bits(k->moved_bytes))
OF_KIND(python_module, k->flags & SONDE_EVENT_IS_FUNCTION
                           ? (uint64_t)snd_module_number(snd_events_name(e, k->name))
                           : UINT64_MAX)

/* ------------------------------------------------- values of threads and of rows */

static uint64_t thread_torch_thread(const struct sonde_events *e, uint32_t thread)
{
    return e->torch_threads[thread];
}

/* clang-format on */
static int64_t device_ns(const struct sonde_events *e, uint32_t row, bool own)
{
    const struct snd_row_extra *x = snd_extra_of(e, row);
    unsigned                    flags = snd_kind_of(e, row)->flags;

    if (flags & SONDE_EVENT_ON_DEVICE)
        return snd_sub(e->rows.end_ns[row], e->rows.start_ns[row]);
    return flags & SONDE_EVENT_IS_ASYNC ? 0 : own ? x->self_device_ns : x->device_ns;
}

static const struct snd_queue_record *queue_of(const struct sonde_events *e, uint32_t row)
{
    static const struct snd_queue_record none;
    const struct snd_row_gpu            *gpu = snd_gpu_of(e, row);

    return gpu && gpu->queue != 0
               ? &e->trace->processes[snd_kind_of(e, row)->process].tables.queues[gpu->queue]
               : &none;
}

static const struct snd_device_item *work_of(const struct sonde_events *e, uint32_t row)
{
    const struct snd_row_gpu *gpu = snd_gpu_of(e, row);

    return gpu && gpu->item != 0 ? &e->trace->devices->items[gpu->item - 1] : NULL;
}

static struct snd_row_memory memory_of(const struct sonde_events *e, uint32_t row, bool self)
{
    const struct snd_row_extra *extra = snd_extra_of(e, row);

    if (snd_is_function(e, row))
        return self ? e->calls[e->rows.extra[row] - 1].self
                    : e->calls[e->rows.extra[row] - 1].total;
    return (struct snd_row_memory){
        snd_sub(extra->cpu_bytes, self ? extra->child_cpu_bytes : 0),
        snd_sub(extra->device_bytes, self ? extra->child_device_bytes : 0),
    };
}
/* clang-format off */

#define OF_ROW(column, value)                                                   \
    static uint64_t row_##column(const struct sonde_events *e, uint32_t row)    \
    {                                                                           \
        return (uint64_t)(value);                                               \
    }
OF_ROW(sequence, e->rows.sequence[row] - 1) /* -1: none */
OF_ROW(fwd_thread, e->rows.sequence[row] != 0 ? snd_kind_of(e, row)->fwd_thread : 0)
OF_ROW(python_id, snd_is_function(e, row) ? e->calls[e->rows.extra[row] - 1].id : 0)
OF_ROW(python_parent, snd_is_function(e, row) ? e->calls[e->rows.extra[row] - 1].parent : 0)
OF_ROW(cpu_bytes, memory_of(e, row, false).cpu_bytes)
OF_ROW(device_bytes, memory_of(e, row, false).device_bytes)
OF_ROW(device_ns, device_ns(e, row, false))
OF_ROW(self_device_ns, device_ns(e, row, true))
OF_ROW(device, queue_of(e, row)->device)
OF_ROW(stream, queue_of(e, row)->stream)
OF_ROW(correlation, snd_gpu_of(e, row) ? snd_gpu_of(e, row)->correlation : 0)
OF_ROW(function, snd_gpu_of(e, row) ? snd_gpu_of(e, row)->function : 0)
OF_ROW(owner, snd_gpu_of(e, row) ? (int64_t)snd_gpu_of(e, row)->owner : -1)
OF_ROW(work, work_of(e, row) ? work_of(e, row)->work : 0)
OF_ROW(work_kind, work_of(e, row) ? snd_device_work(e->trace, work_of(e, row))->kind : 0)
OF_ROW(self_cpu_bytes, memory_of(e, row, true).cpu_bytes)
OF_ROW(self_device_bytes, memory_of(e, row, true).device_bytes)

/* --------------------------------------------------------------------- the table */

enum source { ROWS_OWN, BY_KIND, BY_THREAD, BY_ROW };

struct column {
    const char *name;
    size_t      shown, size; /* where its address goes; width */
    enum source source;
    size_t      own; /* ROWS_OWN: where the rows keep it */
    uint64_t (*value)(const struct sonde_events *e, uint32_t number);
};

#define SHOWN(column) \
    #column, offsetof(struct sonde_events_columns, column), \
        sizeof *((struct sonde_events_columns *)0)->column
#define OWN(column) { SHOWN(column), ROWS_OWN, offsetof(struct snd_event_rows, column), NULL }
#define KIND(column) { SHOWN(column), BY_KIND, 0, kind_##column }
#define ROW(column) { SHOWN(column), BY_ROW, 0, row_##column }

static const struct column columns[] = {
    OWN(start_ns), OWN(end_ns), OWN(self_ns), OWN(parent), OWN(thread),
    KIND(name), KIND(trace_name), KIND(overload), KIND(process), KIND(shapes), KIND(strides),
    KIND(arguments), KIND(keywords), KIND(stack), KIND(module), KIND(python_module), KIND(scope),
    KIND(flags), KIND(flops), KIND(macs), KIND(moved_bytes),
    { SHOWN(torch_thread), BY_THREAD, 0, thread_torch_thread },
    ROW(sequence), ROW(fwd_thread), ROW(python_id), ROW(python_parent),
    ROW(cpu_bytes), ROW(self_cpu_bytes), ROW(device_bytes), ROW(self_device_bytes),
    ROW(device_ns), ROW(self_device_ns), ROW(device), ROW(stream), ROW(correlation), ROW(owner),
    ROW(function), ROW(work), ROW(work_kind),
};
/* clang-format on */
#define COLUMNS SND_COUNT_OF(columns)

/* ------------------------------------------------------------------------ filling */

static char *get_column(const struct sonde_events *e, const struct column *column)
{
    char *at;

    memcpy(&at, (const char *)&e->shown + column->shown, sizeof at);
    return at;
}

static void set_column(struct sonde_events *e, const struct column *column, const void *at)
{
    memcpy((char *)&e->shown + column->shown, &at, sizeof at);
}

static size_t size_of(const struct sonde_events *e, const struct column *column)
{
    return ((size_t)e->rows.count + 1) * column->size;
}

/* values[which[row]] in each row. */
static void spread_values(void *to, size_t size, const uint64_t *values, const uint32_t *which,
                          uint32_t count)
{
    if (size == 8)
        for (uint32_t i = 0; i < count; i++)
            ((uint64_t *)to)[i] = values[which[i]];
    else if (size == 4)
        for (uint32_t i = 0; i < count; i++)
            ((uint32_t *)to)[i] = (uint32_t)values[which[i]];
    else
        for (uint32_t i = 0; i < count; i++)
            ((uint8_t *)to)[i] = (uint8_t)values[which[i]];
}

static bool fill_by_number(const struct sonde_events *e, const struct column *column, void *to,
                           const uint32_t *which, uint32_t numbers)
{
    uint64_t *values = malloc(((size_t)numbers + 1) * sizeof *values), any = 0;

    if (!values)
        return false;
    for (uint32_t i = 0; i < numbers; i++)
        any |= values[i] = column->value(e, i);
    if (any != 0)
        spread_values(to, column->size, values, which, e->rows.count);
    free(values);
    return true;
}

static void fill_by_row(const struct sonde_events *e, const struct column *column, void *to)
{
    for (uint32_t row = 0; row < e->rows.count; row++) {
        uint64_t value = column->value(e, row);
        if (value == 0)
            continue;
        if (column->size == 8)
            ((uint64_t *)to)[row] = value;
        else
            ((uint32_t *)to)[row] = (uint32_t)value;
    }
}

/* A call of a GPU's API was called from where its operator was, whose stack is known by now. */
static void lend_to_calls(const struct sonde_events *e, uint32_t *stack)
{
    for (uint32_t row = 0; row < e->rows.count; row++) {
        const struct snd_row_gpu *gpu = snd_gpu_of(e, row);
        if (gpu && gpu->owner >= 0 && (snd_kind_of(e, row)->flags & SONDE_EVENT_IS_API))
            stack[row] = stack[gpu->owner];
    }
}

/* What runs backward was called from where its forward operator was. */
static bool lend_stacks(const struct sonde_events *e, uint32_t *stack)
{
    struct snd_map forwards = { 0 };
    bool           good = true;
    uint32_t       at;

    for (uint32_t row = 0; row < e->rows.count && good; row++) {
        uint32_t       torch_thread = e->torch_threads[e->rows.thread[row]];
        struct snd_key key = { SND_PAIR(torch_thread, snd_kind_of(e, row)->process),
                               e->rows.sequence[row] - 1, 0 };
        if (e->rows.sequence[row] != 0 && !snd_extra_of(e, row)->is_back &&
            !snd_map_get(&forwards, key, &at))
            good = snd_map_put(&forwards, key, row);
    }
    for (uint32_t row = 0; row < e->rows.count && good; row++) {
        const struct snd_row_extra *x = snd_extra_of(e, row);
        struct snd_key              key = { SND_PAIR(x->back_thread, snd_kind_of(e, row)->process),
                                            (uint64_t)x->back_sequence, 0 };
        if (x->is_back) /* forward rows are not written here */
            stack[row] = snd_map_get(&forwards, key, &at) ? stack[at] : 0;
    }
    snd_map_release(&forwards);
    return good;
}

static bool fill(struct sonde_events *e, const struct column *column)
{
    const struct snd_event_rows *rows = &e->rows;
    bool                         good = true;

    if (column->source == ROWS_OWN) {
        char *own;
        memcpy(&own, (const char *)rows + column->own, sizeof own);
        set_column(e, column, own);
        return true;
    }
    void *to = snd_pages_take(size_of(e, column));
    if (!to)
        return false;
    if (column->source == BY_KIND)
        good = fill_by_number(e, column, to, rows->kind, e->kind_count);
    else if (column->source == BY_THREAD)
        good = fill_by_number(e, column, to, rows->thread, e->trace->thread_count);
    else
        fill_by_row(e, column, to);
    if (good && e->has_back && column->value == kind_stack)
        good = lend_stacks(e, to);
    if (good && e->gpu_count > 0 && column->value == kind_stack)
        lend_to_calls(e, to);
    if (good)
        set_column(e, column, to);
    else
        snd_pages_free(to, size_of(e, column));
    return good;
}

enum sonde_status snd_events_fill(struct sonde_events *e, const char *name, struct sonde_error *err)
{
    bool found = false;

    for (size_t i = 0; i < COLUMNS; i++) {
        if (name && strcmp(name, columns[i].name) != 0)
            continue;
        found = true;
        if (!get_column(e, &columns[i]) && !fill(e, &columns[i]))
            return snd_fail(err, SONDE_E_NOMEM, "out of memory for the column %s of %u events",
                            columns[i].name, e->rows.count);
    }
    return found ? SONDE_OK
                 : snd_fail(err, SONDE_E_ARGUMENT, "events have no column '%.60s'", name);
}

void snd_events_release_columns(struct sonde_events *e)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (columns[i].source != ROWS_OWN)
            snd_pages_free(get_column(e, &columns[i]), size_of(e, &columns[i]));
}
