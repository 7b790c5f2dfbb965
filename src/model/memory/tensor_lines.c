/* SPDX-License-Identifier: Apache-2.0 */
/* model/memory/tensor_lines.c - tensor memory by source line (sonde/tensorlines.h). */
#include "sonde/tensorlines.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "format/fields.h"
#include "model/ranges/assembly.h"
#include "read/said/trace_facts.h"

#define LINES_MAX (1u << 20)
#define NO_LINE UINT32_MAX

struct function {
    struct sonde_text name, file;
    uint32_t          first, rows, first_row; /* lines from, how many, where in the rows */
};

struct block {
    int64_t  bytes;
    uint32_t row;
};

struct own {
    int64_t live_bytes;
};

struct sonde_tensor_lines {
    struct sonde_trace       *trace;
    struct sonde_tensor_line *rows;
    struct own               *owns;
    uint32_t                  count, row_room, own_room;
    struct function          *functions;
    uint32_t                  function_count, function_room;
    struct snd_map            by_stack; /* (process, stack) to a row; count: none */
    struct snd_map            by_address;
    struct block             *blocks;
    uint32_t                  block_count, block_room;
    int64_t                   live_bytes;
    struct snd_assembly       assembly;
};

/* ------------------------------------------------------------------- functions */

static bool text_equals(struct sonde_text a, struct sonde_text b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

static bool add_row(struct sonde_tensor_lines *t, const struct sonde_tensor_line *row)
{
    if (t->count >= LINES_MAX || !snd_grow(&t->rows, &t->row_room, t->count, sizeof *t->rows) ||
        !snd_grow(&t->owns, &t->own_room, t->count, sizeof *t->owns))
        return false;
    t->owns[t->count].live_bytes = 0;
    t->rows[t->count++] = *row;
    return true;
}

/* In older traces a long function's source is in several parts: each is as a function of its own here. */
static void add_function(struct sonde_tensor_lines *t, const struct function *f)
{
    if (snd_grow(&t->functions, &t->function_room, t->function_count, sizeof *t->functions))
        t->functions[t->function_count++] = *f;
    else
        t->assembly.out_of_memory = true;
}

static void read_function(struct sonde_tensor_lines *t, const struct snd_fact *fact)
{
    int64_t                  first = snd_fact_number(fact, SND_FIELD_LINES_FIRST, 0);
    struct function          f = { snd_fact_text(fact, SND_FIELD_LINES_NAME),
                                   snd_fact_text(fact, SND_FIELD_LINES_FILE), (uint32_t)first, 0, t->count };
    struct sonde_tensor_line row = { .function = snd_fact_text(fact, SND_FIELD_LINES_FUNCTION),
                                     .file = f.file };

    if (first < 1 || first > INT32_MAX)
        return;
    for (uint32_t i = 0; i < fact->count; i++) {
        if (fact->values[i].field != SND_FIELD_LINES_LINE)
            continue;
        row.source = fact->values[i].text;
        row.line = f.first + f.rows;
        if (!add_row(t, &row)) {
            t->assembly.out_of_memory = true;
            return;
        }
        f.rows++;
    }
    if (f.rows > 0)
        add_function(t, &f);
}

static void read_functions(struct sonde_tensor_lines *t)
{
    const struct snd_fact *fact;

    for (uint32_t p = 0; p < t->trace->process_count; p++)
        for (uint32_t at = 0; (fact = snd_fact_next(t->trace, p, SND_FACT_OF_LINES, &at));)
            read_function(t, fact);
}

/* ----------------------------------------------------------------------- lines */

/* A frame's file may be without the folder that packages lie in. */
static bool ends_with(struct sonde_text whole, struct sonde_text end)
{
    return end.length > 0 && whole.length >= end.length &&
           memcmp(whole.bytes + whole.length - end.length, end.bytes, end.length) == 0;
}

static uint32_t match_frame(const struct sonde_tensor_lines *t, const struct sonde_frame *frame)
{
    for (uint32_t i = 0; i < t->function_count; i++) {
        const struct function *f = &t->functions[i];
        if (frame->line >= f->first && frame->line - f->first < f->rows &&
            text_equals(frame->function, f->name) && ends_with(f->file, frame->file))
            return f->first_row + (frame->line - f->first);
    }
    return NO_LINE;
}

/* The row of the innermost chosen line of a stack. */
static uint32_t find_row(struct sonde_tensor_lines *t, uint32_t process, uint32_t stack)
{
    struct snd_key     key = { process, stack, 0 };
    struct sonde_frame frame;
    uint32_t           row = NO_LINE, known;

    if (stack == 0)
        return NO_LINE;
    if (snd_map_get(&t->by_stack, key, &known))
        return known == t->count ? NO_LINE : known;
    for (size_t i = 0; i < SND_STACK_MAX && row == NO_LINE; i++) {
        if (!snd_stack_next(t->trace, process, &stack, &frame))
            break;
        row = match_frame(t, &frame);
    }
    if (!snd_map_put(&t->by_stack, key, row == NO_LINE ? t->count : row))
        snd_assembly_stop(&t->assembly);
    return row;
}

/* ---------------------------------------------------------------------- memory */

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    (void)user, (void)lane;
    if (parent && range->range.stack == 0) /* until an attribute tells its own */
        range->range.stack = parent->range.stack;
}

static void give_back(struct sonde_tensor_lines *t, struct snd_key key)
{
    uint32_t place;

    if (!snd_map_get(&t->by_address, key, &place))
        return;
    const struct block *block = &t->blocks[place];
    t->live_bytes = snd_sub(t->live_bytes, block->bytes);
    if (block->row != NO_LINE)
        t->owns[block->row].live_bytes = snd_sub(t->owns[block->row].live_bytes, block->bytes);
    snd_map_remove(&t->by_address, key);
}

static void take(struct sonde_tensor_lines *t, struct snd_key key, int64_t bytes, uint32_t row)
{
    if (!snd_grow(&t->blocks, &t->block_room, t->block_count, sizeof *t->blocks) ||
        !snd_map_put(&t->by_address, key, t->block_count)) {
        snd_assembly_stop(&t->assembly);
        return;
    }
    t->blocks[t->block_count++] = (struct block){ bytes, row };
    t->live_bytes = snd_add(t->live_bytes, bytes);
    if (row == NO_LINE)
        return;
    struct sonde_tensor_line *line = &t->rows[row];
    int64_t                  *live = &t->owns[row].live_bytes;
    *live = snd_add(*live, bytes);
    line->allocs++;
    line->taken_bytes = snd_add(line->taken_bytes, bytes);
    if (*live > line->peak_bytes)
        line->peak_bytes = *live;
    if (t->live_bytes > line->active_bytes)
        line->active_bytes = t->live_bytes;
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_tensor_lines *t = user;
    struct snd_key             key = { SND_PAIR(SND_LOW(words[1]), lane->process), words[2], 0 };

    (void)ns;
    give_back(t, key); /* of a block taken anew, the free is not in the trace */
    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC)
        take(t, key, snd_net_bytes(words),
             innermost ? find_row(t, lane->process, innermost->range.stack) : NO_LINE);
}

/* ------------------------------------------------------------------- the whole */

enum sonde_status sonde_tensor_lines_new(struct sonde_trace *trace, struct sonde_tensor_lines **out,
                                         struct sonde_error *err)
{
    *out = NULL;
    struct sonde_tensor_lines *t = calloc(1, sizeof *t);
    if (!t)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    const struct snd_consumer consumer = { .user = t,
                                           .flops = SONDE_FLOPS_NONE,
                                           .any_flops = true,
                                           .open = on_open,
                                           .memory = on_memory };
    t->trace = trace;
    read_functions(t);
    bool              failed = t->assembly.out_of_memory;
    enum sonde_status st = SONDE_OK;
    if (t->count > 0) /* memory of no other lines is asked for */
        st = snd_assemble(&t->assembly, trace, SONDE_BY_TIME, &consumer, 1, err);
    snd_assembly_release(&t->assembly);
    if (st == SONDE_OK && (failed || t->assembly.out_of_memory))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    if (st != SONDE_OK) {
        sonde_tensor_lines_free(t);
        return st;
    }
    for (uint32_t i = 0; i < t->count; i++)
        t->rows[i].end_bytes = t->owns[i].live_bytes;
    *out = t;
    return SONDE_OK;
}

void sonde_tensor_lines_free(struct sonde_tensor_lines *t)
{
    if (!t)
        return;
    free(t->rows);
    free(t->owns);
    free(t->functions);
    free(t->blocks);
    snd_map_release(&t->by_stack);
    snd_map_release(&t->by_address);
    free(t);
}

size_t sonde_tensor_lines_count(const struct sonde_tensor_lines *lines)
{
    return lines->count;
}

const struct sonde_tensor_line *sonde_tensor_lines_row(const struct sonde_tensor_lines *lines,
                                                       size_t                           index)
{
    return index < lines->count ? &lines->rows[index] : NULL;
}
