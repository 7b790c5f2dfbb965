/* SPDX-License-Identifier: Apache-2.0 */
#include "model/memory/heap_functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "base/data/sort.h"
#include "format/limits.h"

struct gathering {
    struct sonde_trace        *trace;
    struct snd_heap_functions *out;
    struct snd_map             numbers; /* (heap and line, function, file) to a row */
    struct sonde_frame        *frames;  /* of a stack */
    uint32_t                   stacks;  /* so far */
};

static bool find_row(struct gathering *g, uint32_t heap, const struct sonde_frame *frame,
                     uint32_t *row)
{
    struct snd_heap_functions *out = g->out;
    struct snd_key             key = { (uint64_t)heap << 32 | frame->line,
                                       (uint64_t)(uintptr_t)frame->function.bytes,
                                       (uint64_t)(uintptr_t)frame->file.bytes };

    if (snd_map_get(&g->numbers, key, row))
        return true;
    if (!snd_grow(&out->rows, &out->room, out->count, sizeof *out->rows))
        return false;
    *row = out->count;
    out->rows[out->count++] = (struct snd_heap_function){ .heap = heap, .frame = *frame };
    return snd_map_put(&g->numbers, key, *row);
}

static bool add_stack(struct gathering *g, const struct snd_heap *heap,
                      const struct snd_heap_row *from)
{
    static const char        unknown[] = "(not known)";
    const struct sonde_frame none = { .function = { unknown, sizeof unknown - 1 },
                                      .file = { "", 0 } };
    size_t count = sonde_trace_stack(g->trace, heap->process, from->stack, g->frames,
                                     SND_STACK_MAX);

    if (count > SND_STACK_MAX)
        count = SND_STACK_MAX;
    if (count == 0)
        g->frames[count++] = none;
    g->stacks++;
    for (size_t i = 0; i < count; i++) {
        uint32_t row;
        if (!find_row(g, from->heap, &g->frames[i], &row))
            return false;
        if (i == 0)
            snd_heap_sums_add(&g->out->rows[row].self, &from->sums);
        if (g->out->rows[row].latest == g->stacks)
            continue;
        g->out->rows[row].latest = g->stacks;
        snd_heap_sums_add(&g->out->rows[row].total, &from->sums);
    }
    return true;
}

static int compare_texts(struct sonde_text x, struct sonde_text y)
{
    size_t shorter = x.length < y.length ? x.length : y.length;
    int    order = shorter ? memcmp(x.bytes, y.bytes, shorter) : 0;

    return order ? order : (x.length > y.length) - (x.length < y.length);
}

static int compare_rows(const void *left, const void *right)
{
    const struct snd_heap_function *x = left, *y = right;
    const uint64_t                  keys[][2] = {
                         { y->heap, x->heap },
                         { x->self.peak_bytes, y->self.peak_bytes },
                         { x->self.bytes, y->self.bytes },
                         { x->total.peak_bytes, y->total.peak_bytes },
                         { x->total.bytes, y->total.bytes },
    };

    for (size_t i = 0; i < SND_COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? 1 : -1;
    int order = compare_texts(x->frame.function, y->frame.function);
    return order ? order : (x->frame.line > y->frame.line) - (x->frame.line < y->frame.line);
}

static bool gather(struct gathering *g, const struct snd_heaps *heaps)
{
    const struct snd_heap *heap;

    for (uint32_t i = 0; (heap = snd_heaps_heap(heaps, i)); i++)
        for (uint32_t n = 0; n < heap->count; n++)
            if (!add_stack(g, heap, snd_heaps_row(heaps, heap->first + n)))
                return false;
    return true;
}

enum sonde_status snd_heap_functions_new(struct sonde_trace *trace, const struct snd_heaps *heaps,
                                         struct snd_heap_functions *out, struct sonde_error *err)
{
    struct gathering g = { .trace = trace,
                           .out = out,
                           .frames = calloc(SND_STACK_MAX, sizeof *g.frames) };

    *out = (struct snd_heap_functions){ 0 };
    bool ok = g.frames && gather(&g, heaps);
    snd_sort(out->rows, out->count, sizeof *out->rows, compare_rows);
    free(g.frames);
    snd_map_release(&g.numbers);
    return ok ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for the heap's functions");
}

void snd_heap_functions_release(struct snd_heap_functions *functions)
{
    free(functions->rows);
    *functions = (struct snd_heap_functions){ 0 };
}
