/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops view: torch.profiler's key_averages().table().
 *
 * Where that one errs, this does not: with stacks and FLOPs shown each value stands under its
 * own title, and top-level ranges are shown with stacks too.
 */
#include "view/ops/ops_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/sink.h"
#include "view/render/render.h"

/* What decides whether the text shows a column. */
enum when {
    WHEN_ALWAYS = 1,
    WHEN_MEMORY = 2,
    WHEN_DEVICE_MEMORY = 4,
    WHEN_PROCESS = 8,
    WHEN_THREAD = 16,
    WHEN_SHAPES = 32,
    WHEN_STACKS = 64,
    WHEN_FLOPS = 128,
    WHEN_MODULE = 256,
    WHEN_OVERLOAD = 512,
    WHEN_DEVICE_TIME = 1024,
    WHEN_RANK = 2048,
};

static const struct snd_column columns[] = {
#define SND_OPS(key, title, kind, fit, when, cell) { key, title, SND_##kind, SND_FIT_##fit },
#include "view/ops/ops.def"
#undef SND_OPS
};

static const unsigned column_when[] = {
#define SND_OPS(key, title, kind, fit, when, cell) WHEN_##when,
#include "view/ops/ops.def"
#undef SND_OPS
};

static double mean_us(const struct sonde_average *row)
{
    return row->count ? (double)row->total_ns / 1000.0 / (double)row->count : 0.0;
}

static double device_mean_us(const struct sonde_average *row)
{
    return row->count ? (double)row->device_ns / 1000.0 / (double)row->count : 0.0;
}

/* torch shows the share of an asynchronous range as a bare 0. */
static struct snd_cell total_share(const struct sonde_average         *row,
                                   const struct sonde_averages_totals *all)
{
    struct snd_cell cell = snd_cell_share(row->is_async ? 0 : row->total_ns, all->self_ns);

    cell.number = row->is_async;
    return cell;
}

static struct snd_cell process_cell(const struct sonde_trace   *trace,
                                    const struct sonde_average *row)
{
    return row->process == SONDE_NONE
               ? snd_cell_none()
               : snd_cell_number(sonde_trace_process(trace, row->process)->pid);
}

/* Of the process, or of the thread's, that the row is of. */
static uint32_t find_rank(const struct sonde_trace *trace, const struct sonde_average *row)
{
    uint32_t process = row->process;

    if (process == SONDE_NONE && row->thread != SONDE_NONE)
        process = sonde_trace_thread(trace, row->thread)->process;
    return process != SONDE_NONE ? sonde_trace_process(trace, process)->rank : SONDE_NONE;
}

static struct snd_cell rank_cell(const struct sonde_trace *trace, const struct sonde_average *row)
{
    uint32_t rank = find_rank(trace, row);

    return rank != SONDE_NONE ? snd_cell_number(rank) : snd_cell_none();
}

static struct snd_cell thread_cell(const struct sonde_trace *trace, const struct sonde_average *row)
{
    return row->thread == SONDE_NONE ? snd_cell_none()
                                     : snd_cell_number(sonde_trace_thread(trace, row->thread)->tid);
}

static struct snd_cell thread_name_cell(const struct sonde_trace   *trace,
                                        const struct sonde_average *row)
{
    return row->thread == SONDE_NONE ? snd_cell_none()
                                     : snd_cell_text(sonde_trace_thread(trace, row->thread)->name);
}

static void fill(struct snd_cell *cells, const struct sonde_trace *trace,
                 const struct sonde_averages_totals *all, const struct sonde_average *row)
{
    const struct sonde_average *sum = row;

#define SND_OPS(key, title, kind, fit, when, cell) *cells++ = cell;
#include "view/ops/ops.def"
#undef SND_OPS
}

/* Columns by the line of the list that describes them: each has one of its own. */
#define PASTE(a, b) a##b
#define AT_LINE(line) PASTE(COLUMN_AT_, line)
enum {
#define SND_OPS(key, title, kind, fit, when, cell) AT_LINE(__LINE__),
#include "view/ops/ops.def"
#undef SND_OPS
};

/* Where rows come from that are made when they are shown. */
struct source {
    const struct sonde_trace    *trace;
    struct sonde_averages_totals all;
    const struct sonde_averages *averages;
    uint64_t                     passes; /* of a benchmark: rows are of one of them; or 0 */
};

static struct snd_cell make_cell(const struct snd_table *table, size_t number, size_t column)
{
    const struct source                *source = table->source;
    const struct sonde_trace           *trace = source->trace;
    const struct sonde_averages_totals *all = &source->all;
    const struct sonde_average          whole = sonde_averages_get(source->averages, number);
    const struct sonde_average          mean = sonde_average_of_pass(&whole, source->passes);
    const struct sonde_average         *sum = &whole, *row = &mean;

    switch (column) {
#define SND_OPS(key, title, kind, fit, when, cell) \
    case AT_LINE(__LINE__):                        \
        return cell;
#include "view/ops/ops.def"
#undef SND_OPS
    default:
        return snd_cell_none();
    }
}

/* What this row gives reason to show. */
static unsigned shows(const struct sonde_trace *trace, const struct sonde_average *row)
{
    unsigned mask = WHEN_ALWAYS;

    mask |= row->self_device_ns > 0 ? WHEN_DEVICE_TIME : WHEN_ALWAYS;
    mask |= row->self_device_bytes != 0 ? WHEN_DEVICE_MEMORY : WHEN_ALWAYS;
    mask |= row->process != SONDE_NONE ? WHEN_PROCESS : WHEN_ALWAYS;
    mask |= find_rank(trace, row) != SONDE_NONE ? WHEN_RANK : WHEN_ALWAYS;
    mask |= row->thread != SONDE_NONE ? WHEN_THREAD : WHEN_ALWAYS;
    mask |= row->shapes.length > 0 && strcmp(row->shapes.bytes, "[]") != 0 ? WHEN_SHAPES
                                                                           : WHEN_ALWAYS;
    mask |= row->stack.length > 0 ? WHEN_STACKS : WHEN_ALWAYS;
    mask |= row->module.length > 0 ? WHEN_MODULE : WHEN_ALWAYS;
    mask |= row->overload.length > 0 ? WHEN_OVERLOAD : WHEN_ALWAYS;
    mask |= row->flops > 0 ? WHEN_FLOPS : WHEN_ALWAYS;
    return mask;
}

void snd_ops_begin(struct snd_ops *ops, struct snd_doc *doc, const struct sonde_trace *trace,
                   const struct sonde_averages_totals *all)
{
    *ops = (struct snd_ops){ .doc = doc, .trace = trace, .all = all };
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->rows.torch_units = true;
    doc->unsaid_cut = true;
}

void snd_ops_add(struct snd_ops *ops, const struct sonde_average *row)
{
    fill(snd_table_add(&ops->doc->rows), ops->trace, ops->all, row);
    ops->shown |= shows(ops->trace, row);
}

/* All rows of `averages`, which stay until the document is printed; none of their cells is kept. */
static void add_all(struct snd_ops *ops, const struct sonde_averages *averages, uint64_t passes)
{
    struct source *source = malloc(sizeof *source);

    if (source)
        *source = (struct source){ ops->trace, *ops->all, averages, passes };
    for (size_t i = 0; i < sonde_averages_count(averages); i++) {
        const struct sonde_average row = sonde_averages_get(averages, i);
        ops->shown |= shows(ops->trace, &row);
    }
    snd_table_lazy(&ops->doc->rows, sonde_averages_count(averages), make_cell, source);
}

void snd_ops_end(struct snd_ops *ops, bool memory, bool flops)
{
    unsigned mask = ops->shown | (memory ? WHEN_MEMORY : 0);

    if (!memory)
        mask &= ~(unsigned)WHEN_DEVICE_MEMORY;
    if (!flops)
        mask &= ~(unsigned)WHEN_FLOPS;
    for (size_t i = 0; i < SND_COUNT_OF(columns); i++)
        ops->doc->rows.hidden[i] = !(column_when[i] & mask);
    snd_doc_total(ops->doc, "self_cpu_time_total", "Self CPU time total", SND_TIME,
                  snd_cell_number(ops->all->self_ns));
    snd_doc_total(ops->doc, "self_device_time_total",
                  mask & WHEN_DEVICE_TIME ? "Self CUDA time total" : NULL, SND_TIME,
                  snd_cell_number(ops->all->device_ns));
}

SND_DOC_RELEASE(free_averages, sonde_averages_free)

SND_VIEW_BUILD(snd_view_ops)
{
    struct sonde_averages_options asked = { .struct_size = sizeof asked,
                                            .groups = options->groups,
                                            .stack_depth = options->stack_depth,
                                            .top_level = options->top_level,
                                            .flops = options->flops };
    struct snd_ops                ops;

    struct sonde_averages *averages = NULL;
    enum sonde_status      st = sonde_averages_new(trace, &asked, &averages, err);
    snd_doc_keep(doc, averages, free_averages);
    if (st != SONDE_OK)
        return st;
    struct sonde_averages_totals one = *sonde_averages_totals(averages), *all = &one;
    uint64_t                     passes = sonde_averages_passes(averages);
    if (passes > 1)
        one.self_ns /= (int64_t)passes, one.device_ns /= (int64_t)passes;
    snd_ops_begin(&ops, doc, trace, all);
    add_all(&ops, averages, passes);
    snd_ops_end(&ops, all->has_memory, true);
    if (passes > 0)
        snd_doc_total(doc, "passes", "Mean of passes", SND_COUNT, snd_cell_number((int64_t)passes));
    snd_doc_total(doc, "ranges", NULL, SND_COUNT, snd_cell_number((int64_t)all->ranges));
    snd_doc_total(doc, "events", NULL, SND_COUNT, snd_cell_number((int64_t)all->events));
    return SONDE_OK;
}

/* --------------------------------------------------- torch's tables of rows made before */

/* The number of the column with this key. */
static size_t find_column(const char *key)
{
    size_t i = 0;

    while (!columns[i].key || strcmp(columns[i].key, key) != 0)
        i++;
    return i;
}

enum sonde_status snd_ops_print(struct snd_doc *doc, const struct sonde_report_options *options,
                                const struct sonde_sink *sink, struct sonde_error *err)
{
    struct sonde_report_options used;
    enum sonde_status           st = snd_report_options(options, &used, err);

    if (st == SONDE_OK && used.sort)
        st = snd_table_sort(&doc->rows, used.sort, err);
    if (used.top_level)
        doc->rows.filter = find_column("is_top_level") + 1;
    if (st == SONDE_OK && snd_doc_has_failed(doc))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for a table of %zu rows",
                      doc->rows.row_count);
    if (st == SONDE_OK) {
        struct snd_out out;
        snd_out_init(&out, sink);
        snd_render_text(doc, &used, &out);
        st = snd_out_finish(&out, err);
    }
    snd_doc_release(doc);
    return st;
}

enum sonde_status sonde_averages_table(const struct sonde_trace          *trace,
                                       const struct sonde_averages       *averages,
                                       const struct sonde_report_options *options, unsigned shown,
                                       const struct sonde_sink *sink, struct sonde_error *err)
{
    struct sonde_averages_totals all = { 0 };
    struct snd_doc               doc = { .view = "ops" };
    struct snd_ops               ops;

    for (size_t i = 0; i < sonde_averages_count(averages); i++) { /* shares are of what is shown */
        const struct sonde_average row = sonde_averages_get(averages, i);
        all.self_ns += row.self_ns;
        all.device_ns += row.on_device && !row.is_user_annotation ? row.self_device_ns : 0;
    }
    snd_ops_begin(&ops, &doc, trace, &all);
    add_all(&ops, averages, 0);
    snd_ops_end(&ops, shown & SONDE_TABLE_MEMORY, shown & SONDE_TABLE_FLOPS);
    return snd_ops_print(&doc, options, sink, err);
}
