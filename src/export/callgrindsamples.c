/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callgrind, of a trace with samples and no counted functions: each function's own time by line, and
 * that of what it called.
 *
 * A reader adds up what a function called to its total. So that recursion is not counted twice, each
 * function is in a stack once: where it is innermost. `calls` are samples: calls were not counted.
 */
#include "export/callgrind.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/map.h"
#include "format/layout.h"
#include "model/samplecounts.h"
#include "read/reader.h"
#include "read/scale.h"

#define FRAMES_MAX (SND_STACK_MAX + 1024u) /* of one stack, ranges included */

/* Time of a line of a function, its own (callee 0) or that of what it calls there. */
struct cost {
    uint32_t function, line, callee;
    int64_t  ns;
    uint64_t samples;
};

struct function {
    struct sonde_text name, file;
    uint32_t          line, seen; /* seen: the last row that has it, plus one */
    bool              is_told;
};

struct graph {
    struct snd_sample_counts counts;
    struct function         *functions; /* 0 is none */
    struct cost             *costs;
    uint32_t                 function_count, function_room, cost_count, cost_room;
    struct snd_map           by_name, by_place; /* to numbers of functions, and of costs */
    struct snd_map           files;
    uint32_t                 file_count;
    struct snd_out          *out;
    bool                     failed;
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
    g->costs[at].ns = snd_add(g->costs[at].ns, cost.ns);
    g->costs[at].samples += cost.samples;
}

static void add_row(struct graph *g, uint32_t number, struct snd_mixed_frame *frames)
{
    const struct snd_sample_count *row = &g->counts.rows[number];
    uint32_t process = g->counts.trace->threads[row->thread].shown.process, callee = 0;
    size_t   count = snd_mixed_frames(&g->counts.mixed, process, row->stack, row->chain, frames,
                                      FRAMES_MAX);

    for (size_t i = 0; i < count && i < FRAMES_MAX && !g->failed; i++) {
        uint32_t function = function_of(g, &frames[i].frame);
        if (g->failed || g->functions[function].seen == number + 1)
            continue;
        g->functions[function].seen = number + 1;
        add_cost(g, (struct cost){ function, frames[i].frame.line, callee, row->time_ns,
                                   row->samples });
        callee = function;
    }
}

static int compare(const void *left, const void *right)
{
    const struct cost *x = left, *y = right;

    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->callee != y->callee)
        return x->callee < y->callee ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
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

static int64_t add_own(const struct graph *g)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < g->cost_count; i++)
        if (g->costs[i].callee == 0)
            total = snd_add(total, g->costs[i].ns);
    return total;
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
        snd_out_format(g->out, "%" PRIu32 " %" PRId64 "\n", cost->line, cost->ns);
    }
}

static void write_graph(struct graph *g)
{
    struct snd_mixed_frame  *frames = calloc(FRAMES_MAX, sizeof *frames);
    const struct sonde_frame none = { .function = { "", 0 }, .file = { "", 0 } };

    g->failed |= !frames;
    if (frames) {
        function_of(g, &none); /* 0 */
        for (uint32_t i = 0; i < g->counts.count && !g->failed; i++)
            add_row(g, i, frames);
        if (g->cost_count > 1)
            qsort(g->costs, g->cost_count, sizeof *g->costs, compare);
        snd_callgrind_head(g->out, g->counts.trace, add_own(g));
        put_costs(g);
    }
    free(frames);
}

enum sonde_status snd_callgrind_samples(struct sonde_trace *trace, struct snd_out *out,
                                        struct sonde_error *err)
{
    struct graph      g = { .out = out };
    enum sonde_status st = snd_sample_counts_make(&g.counts, trace, err);

    if (st == SONDE_OK && g.counts.count == 0)
        st = snd_fail(err, SONDE_E_STATE,
                      "the trace has no Python functions and no samples; record them with "
                      "--functions or --sample");
    else if (st == SONDE_OK)
        write_graph(&g);
    if (st == SONDE_OK && g.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
    snd_sample_counts_release(&g.counts);
    free(g.functions);
    free(g.costs);
    snd_map_release(&g.by_name);
    snd_map_release(&g.by_place);
    snd_map_release(&g.files);
    return st;
}
