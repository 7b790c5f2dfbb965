/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callgrind, of a trace with samples and no counted functions: each function's own time by line, and
 * that of what it called. Or of counters: likewise, their events.
 *
 * A reader adds up what a function called to its total. So that recursion is not counted twice, each
 * function is in a stack once: where it is innermost. `calls` are samples: calls were not counted.
 */
#include "base/data/sort.h"
#include "export/stacks/callgrind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "export/stacks/allocation_stacks.h"
#include "export/stacks/counted_stacks.h"
#include "export/stacks/tree_stacks.h"
#include "export/common/exporter.h"
#include "format/layout.h"
#include "model/samples/sample_counts.h"
#include "read/reader.h"
#include "read/file/scale.h"

#define VALUES_MAX SND_THREAD_COUNTERS_MOST

/* Time, or events, of a line of a function: its own (callee 0), or those of what it calls there. */
struct cost {
    uint32_t function, line, callee;
    int64_t  values[VALUES_MAX];
    uint64_t samples;
};

/* A stack, innermost first, with what it cost. */
struct row {
    const struct snd_mixed_frame *frames;
    size_t                        count;
    int64_t                       values[VALUES_MAX];
    uint64_t                      samples;
    bool                          is_path; /* of a tree: samples are calls of the innermost */
};

struct function {
    struct sonde_text name, file;
    uint32_t          line, seen; /* seen: the number of the last row that has it */
    bool              is_told;
};

struct graph {
    struct sonde_trace        *trace;
    struct snd_callgrind_event events[VALUES_MAX];
    size_t                     event_count;
    struct function           *functions; /* 0 is none */
    struct cost               *costs;
    uint32_t                   function_count, function_room, cost_count, cost_room, row_count;
    struct snd_map             by_name, by_place; /* to numbers of functions, and of costs */
    struct snd_map             files;
    uint32_t                   file_count;
    struct snd_out            *out;
    bool                       failed;
};

/* ---------------------------------------------------------------- adding up */

static uint32_t function_of(struct graph *g, const struct sonde_frame *frame)
{
    struct snd_key key = { (uint64_t)(uintptr_t)frame->function.bytes,
                           (uint64_t)(uintptr_t)frame->file.bytes, 0 };
    uint32_t       at;

    if (snd_map_get(&g->by_name, key, &at))
        return at;
    if (!snd_grow(&g->functions, &g->function_room, g->function_count, sizeof *g->functions) ||
        !snd_map_put(&g->by_name, key, g->function_count)) {
        g->failed = true;
        return 0;
    }
    g->functions[g->function_count] = (struct function){ frame->function, frame->file,
                                                         frame->first_line, 0, false };
    return g->function_count++;
}

static void add_cost(struct graph *g, struct cost cost)
{
    struct snd_key key = { cost.function, cost.line, cost.callee };
    uint32_t       at;

    if (!snd_map_get(&g->by_place, key, &at)) {
        at = g->cost_count;
        if (!snd_grow(&g->costs, &g->cost_room, at, sizeof *g->costs) ||
            !snd_map_put(&g->by_place, key, at)) {
            g->failed = true;
            return;
        }
        g->cost_count++;
        g->costs[at] = cost;
        return;
    }
    for (size_t i = 0; i < g->event_count; i++)
        g->costs[at].values[i] = snd_add(g->costs[at].values[i], cost.values[i]);
    g->costs[at].samples += cost.samples;
}

static void add_row(struct graph *g, const struct row *row)
{
    uint32_t callee = 0;

    g->row_count++;
    for (size_t i = 0; i < row->count && !g->failed; i++) {
        uint32_t function = function_of(g, &row->frames[i].frame);
        if (g->failed || g->functions[function].seen == g->row_count)
            continue;
        g->functions[function].seen = g->row_count;
        /* Of a path that was called so often: its callers' calls are those of their own paths. */
        uint64_t    calls = row->is_path && i != 1 ? 0 : row->samples;
        struct cost cost = { function, row->frames[i].frame.line, callee, { 0 }, calls };
        memcpy(cost.values, row->values, sizeof cost.values);
        add_cost(g, cost);
        callee = function;
    }
    for (size_t n = 0; n < g->event_count && row->count > 0; n++)
        g->events[n].total = snd_add(g->events[n].total, row->values[n]);
}

static int compare(const void *left, const void *right)
{
    const struct cost *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->function, y->function), SND_RISING(x->callee, y->callee),
                     SND_RISING(x->line, y->line));
}

/* ------------------------------------------------------------------ writing */

static void put_text(struct snd_out *out, struct sonde_text text)
{
    snd_callgrind_text(out, text.length > 0 ? text : (struct sonde_text){ "???", 3 });
}

static void put_function(struct graph *g, bool is_callee, uint32_t number)
{
    struct function *f = &g->functions[number];
    struct snd_key   key = { (uint64_t)(uintptr_t)f->file.bytes, 0, 0 };
    uint32_t         file;
    bool             known = snd_map_get(&g->files, key, &file);

    if (!known) {
        file = ++g->file_count;
        g->failed |= !snd_map_put(&g->files, key, file);
    }
    snd_out_format(g->out, "%s=(%" PRIu32 ")%s", is_callee ? "cfi" : "fl", file, known ? "" : " ");
    if (!known)
        put_text(g->out, f->file);
    snd_out_format(g->out, "\n%s=(%" PRIu32 ")%s", is_callee ? "cfn" : "fn", number,
                   f->is_told ? "" : " ");
    if (!f->is_told)
        put_text(g->out, f->name);
    f->is_told = true;
    snd_out_text(g->out, "\n");
}

static void put_costs(struct graph *g)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < g->cost_count; i++) {
        const struct cost *cost = &g->costs[i];
        if (cost->function != before) {
            snd_out_text(g->out, "\n");
            put_function(g, false, cost->function);
            before = cost->function;
        }
        if (cost->callee) {
            put_function(g, true, cost->callee);
            snd_out_format(g->out, "calls=%" PRIu64 " %" PRIu32 "\n", cost->samples,
                           g->functions[cost->callee].line);
        }
        snd_out_format(g->out, "%" PRIu32, cost->line);
        for (size_t n = 0; n < g->event_count; n++)
            snd_out_format(g->out, " %" PRId64, cost->values[n]);
        snd_out_text(g->out, "\n");
    }
}

static bool begin_graph(struct graph *g)
{
    const struct sonde_frame none = { .function = { "", 0 }, .file = { "", 0 } };

    function_of(g, &none); /* 0 */
    return !g->failed;
}

/* Releases it, too. */
static enum sonde_status write_graph(struct graph *g, struct sonde_error *err)
{
    if (!g->failed) {
        snd_sort(g->costs, g->cost_count, sizeof *g->costs, compare);
        snd_callgrind_head(g->out, g->trace, g->events, g->event_count);
        put_costs(g);
    }
    free(g->functions);
    free(g->costs);
    snd_map_release(&g->by_name);
    snd_map_release(&g->by_place);
    snd_map_release(&g->files);
    return g->failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions") : SONDE_OK;
}

static void add_samples(struct graph *g, const struct snd_sample_counts *counts)
{
    struct snd_mixed_frame *frames = calloc(SND_MIXED_FRAMES_MAX, sizeof *frames);

    g->failed |= !frames || !begin_graph(g);
    for (uint32_t i = 0; i < counts->count && !g->failed; i++) {
        const struct snd_sample_count *c = &counts->rows[i];
        uint32_t                       process = g->trace->threads[c->thread].shown.process;
        size_t     count = snd_mixed_frames(&counts->mixed, process, c->stack, c->chain, frames,
                                            SND_MIXED_FRAMES_MAX);
        struct row row = { frames,
                           count < SND_MIXED_FRAMES_MAX ? count : SND_MIXED_FRAMES_MAX,
                           { c->time_ns },
                           c->samples,
                           false };
        add_row(g, &row);
    }
    free(frames);
}

/* Ranges: a trace with Python functions is not written here. */
static enum sonde_status add_paths(struct graph *g, struct sonde_error *err)
{
    struct snd_tree_stacks stacks;
    enum sonde_status      st = snd_tree_stacks_open(&stacks, g->trace, err);

    g->failed |= st == SONDE_OK && !begin_graph(g);
    while (st == SONDE_OK && !g->failed && snd_tree_stacks_next(&stacks))
        add_row(g, &(struct row){
                       stacks.frames, stacks.count, { stacks.self_ns }, stacks.call_count, true });
    snd_tree_stacks_release(&stacks);
    return st;
}

enum sonde_status snd_callgrind_samples(struct sonde_trace *trace, struct snd_out *out,
                                        struct sonde_error *err)
{
    struct graph              g = { .trace = trace, .out = out, .event_count = 1 };
    struct snd_sample_counts *counts;

    g.events[0] = (struct snd_callgrind_event)SND_CALLGRIND_TIME;
    enum sonde_status st = snd_sample_counts_new(trace, &counts, err);
    if (st == SONDE_OK && counts->count == 0)
        st = add_paths(&g, err);
    else if (st == SONDE_OK)
        add_samples(&g, counts);
    if (st == SONDE_OK)
        st = write_graph(&g, err);
    snd_sample_counts_free(counts);
    return st;
}

static void add_counted(struct graph *g, struct snd_counted_export *counted)
{
    const struct snd_counted_stack *stack;

    g->event_count = counted->counter_count;
    for (uint32_t n = 0; n < counted->counter_count; n++)
        g->events[n].name = g->events[n].title = snd_counted_name(counted, n);
    g->failed |= !begin_graph(g);
    while (!g->failed && (stack = snd_counted_next(counted)) != NULL) {
        struct row row = { .frames = counted->frames, .count = counted->frame_count };
        for (uint32_t n = 0; n < counted->counter_count; n++) {
            row.values[n] = (int64_t)snd_counted_events(counted, stack, n);
            row.samples += snd_counted_samples(counted, stack, n);
        }
        add_row(g, &row);
    }
}

SND_EXPORT_WRITE(snd_counted_callgrind)
{
    struct graph              g = { .trace = trace, .out = out };
    struct snd_counted_export counted;
    enum sonde_status         st = snd_counted_open(&counted, trace, options->counter, err);

    if (st == SONDE_OK) {
        add_counted(&g, &counted);
        st = write_graph(&g, err);
    }
    snd_counted_release(&counted);
    return st;
}

static void add_heap(struct graph *g, struct snd_heap_stacks *heap)
{
    g->failed |= !begin_graph(g);
    while (!g->failed && snd_heap_stacks_next(heap)) {
        const struct snd_heap_sums *sums = &heap->row->sums;
        add_row(g, &(struct row){ heap->frames,
                                  heap->count,
                                  { (int64_t)sums->peak_bytes, (int64_t)sums->bytes,
                                    (int64_t)sums->live_bytes },
                                  sums->allocations,
                                  false });
    }
}

SND_EXPORT_WRITE(snd_heap_callgrind)
{
    struct graph           g = { .trace = trace,
                                 .out = out,
                                 .events = { { { "peak", 4 }, { "bytes held at the peak", 22 }, 0 },
                                             { { "allocated", 9 }, { "bytes allocated", 15 }, 0 },
                                             { { "leaked", 6 }, { "bytes not freed", 15 }, 0 } },
                                 .event_count = 3 };
    struct snd_heap_stacks heap;
    enum sonde_status      st = snd_heap_stacks_open(&heap, trace, err);

    (void)options; /* a reader chooses among the events */
    if (st == SONDE_OK) {
        add_heap(&g, &heap);
        st = write_graph(&g, err);
    }
    snd_heap_stacks_release(&heap);
    return st;
}
