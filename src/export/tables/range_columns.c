/* SPDX-License-Identifier: Apache-2.0 */
#include "export/tables/range_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/timeline/torch_tensors.h"
#include "read/reader.h"

void snd_ranges_release(struct snd_range_filler *filler)
{
    free(filler->names);
    sonde_buffer_release(&filler->text);
    *filler = (struct snd_range_filler){ 0 };
}

/* ------------------------------------------------------------------------ texts */

static bool find_name(struct snd_range_filler *f, uint32_t name, uint32_t *text)
{
    const struct snd_text *of = &f->trace->names.items[name];

    if (f->names[name] == 0) {
        if (!snd_column_text(f->texts, (struct sonde_text){ of->bytes, of->length }, text))
            return false;
        f->names[name] = *text + 1;
    }
    *text = f->names[name] - 1;
    return true;
}

static bool find_module(struct snd_range_filler *f, struct snd_range_text *to)
{
    return snd_column_text(f->texts, sonde_trace_string(f->trace, to->process, to->id), &to->text);
}

static bool find_shapes(struct snd_range_filler *f, struct snd_range_text *to)
{
    to->is_null = !snd_tensors_text(f->trace, to->process, to->id, &f->text);
    return !f->text.failed &&
           (to->is_null ||
            snd_column_text(f->texts, (struct sonde_text){ f->text.bytes, f->text.length },
                            &to->text));
}

typedef bool find_fn(struct snd_range_filler *f, struct snd_range_text *to);

/* The text of an id that is not 0, of a process; NULL: out of memory. */
static inline const struct snd_range_text *look_up(struct snd_range_filler *f,
                                                   struct snd_range_text *known, uint32_t process,
                                                   uint32_t id, find_fn *find)
{
    struct snd_range_text *at = &known[(id + 31 * process) % SND_RANGE_TEXTS];

    if (at->id == id && at->process == process)
        return at;
    struct snd_range_text found = { .process = process, .id = id };
    if (!find(f, &found))
        return NULL;
    *at = found;
    return at;
}

/* ---------------------------------------------------------------------- columns */

struct batch {
    struct snd_range_filler           *filler;
    const struct snd_sql_range *const *ranges;
    size_t                             count;
    bool                              *is_null;
    size_t                             null_count; /* of the column that was filled last */
};

/* clang-format off */
/* Reals by their bits. */
#define NUMBERS(name, value)                                        \
    static bool fill_##name(struct batch *b, void *to)              \
    {                                                               \
        int64_t *numbers = to;                                      \
        for (size_t i = 0; i < b->count; i++) {                     \
            const struct snd_sql_range *r = b->ranges[i];           \
            numbers[i] = (int64_t)(value);                          \
        }                                                           \
        return true;                                                \
    }
/* The same, 0 where it is null. */
#define NUMBERS_OR_NULL(name, lacks, value)                         \
    static bool fill_##name(struct batch *b, void *to)              \
    {                                                               \
        int64_t *numbers = to;                                      \
        for (size_t i = 0; i < b->count; i++) {                     \
            const struct snd_sql_range *r = b->ranges[i];           \
            b->is_null[i] = (lacks);                                \
            b->null_count += b->is_null[i];                         \
            numbers[i] = b->is_null[i] ? 0 : (int64_t)(value);      \
        }                                                           \
        return true;                                                \
    }
/* clang-format on */

static inline int64_t bits_of(double real)
{
    int64_t bits;

    memcpy(&bits, &real, sizeof bits);
    return bits;
}

NUMBERS(process, r->process)
NUMBERS(thread, r->thread)
NUMBERS(start_ns, r->start_ns)
NUMBERS(duration_ns, r->total_ns)
NUMBERS(self_ns, r->self_ns)
NUMBERS(depth, r->depth)
NUMBERS_OR_NULL(step, !r->has_step, r->step)
NUMBERS(is_user, r->is_user)
NUMBERS(is_async, r->is_async)
NUMBERS_OR_NULL(stack, r->stack == 0, r->stack)
NUMBERS_OR_NULL(flops, isnan(r->flops), bits_of(r->flops))
NUMBERS(cpu_bytes, r->cpu_bytes)
NUMBERS(self_cpu_bytes, r->self_cpu_bytes)
NUMBERS(device_bytes, r->device_bytes)
NUMBERS(self_device_bytes, r->self_device_bytes)

static bool fill_name(struct batch *b, void *to)
{
    uint32_t *texts = to;

    for (size_t i = 0; i < b->count; i++)
        if (!find_name(b->filler, b->ranges[i]->name, &texts[i]))
            return false;
    return true;
}

static inline bool fill_texts(struct batch *b, uint32_t *texts, bool is_shapes)
{
    struct snd_range_filler *f = b->filler;

    for (size_t i = 0; i < b->count; i++) {
        const struct snd_sql_range  *r = b->ranges[i];
        uint32_t                     id = is_shapes ? r->shapes : r->module;
        const struct snd_range_text *text = NULL;
        if (id != 0)
            text = is_shapes ? look_up(f, f->shapes, r->process, id, find_shapes)
                             : look_up(f, f->modules, r->process, id, find_module);
        if (id != 0 && !text)
            return false;
        b->is_null[i] = id == 0 || text->is_null;
        b->null_count += b->is_null[i];
        texts[i] = b->is_null[i] ? 0 : text->text;
    }
    return true;
}

static bool fill_shapes(struct batch *b, void *to)
{
    return fill_texts(b, to, true);
}

static bool fill_module(struct batch *b, void *to)
{
    return fill_texts(b, to, false);
}

/* By column of the table. */
#define FILL(column) [offsetof(struct snd_columns_of_ranges, column)] = fill_##column
static bool (*const fills[])(struct batch *b, void *to) = {
    FILL(process),        FILL(thread),       FILL(name),
    FILL(start_ns),       FILL(duration_ns),  FILL(self_ns),
    FILL(depth),          FILL(step),         FILL(is_user),
    FILL(is_async),       FILL(shapes),       FILL(module),
    FILL(stack),          FILL(flops),        FILL(cpu_bytes),
    FILL(self_cpu_bytes), FILL(device_bytes), FILL(self_device_bytes),
};

bool snd_ranges_fill(struct snd_range_filler *filler, struct snd_columns *columns,
                     const struct snd_sql_range *const *ranges, size_t count)
{
    struct batch batch = {
        .filler = filler, .ranges = ranges, .count = count, .is_null = filler->is_null
    };

    if (!filler->names)
        filler->names = calloc((size_t)filler->trace->names.count + 1, sizeof *filler->names);
    if (!filler->names || !snd_columns_reserve(columns, count))
        return false;
    for (struct snd_column *c = columns->columns, *end = c + columns->column_count; c < end; c++) {
        batch.null_count = 0;
        if (!fills[c->from](&batch, filler->values))
            return false;
        snd_column_put(c, columns->count, filler->values, count,
                       batch.null_count > 0 ? batch.is_null : NULL);
    }
    columns->count += count;
    return true;
}
