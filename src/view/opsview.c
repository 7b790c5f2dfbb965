/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops view: torch.profiler's key_averages().table().
 *
 * Where that one errs, this does not: with stacks and FLOPs shown each value stands under its
 * own title, and top-level ranges are shown with stacks too.
 */
#include <string.h>

#include "view/view.h"

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
};

static const struct snd_column columns[] = {
#define SND_OPS(key, title, kind, fit, when, cell) { key, title, SND_##kind, SND_FIT_##fit },
#include "view/ops.def"
#undef SND_OPS
};

static const unsigned column_when[] = {
#define SND_OPS(key, title, kind, fit, when, cell) WHEN_##when,
#include "view/ops.def"
#undef SND_OPS
};

static double mean_us(const struct sonde_average *row)
{
    return row->count ? (double)row->total_ns / 1000.0 / (double)row->count : 0.0;
}

static struct snd_cell process_cell(const struct sonde_trace   *trace,
                                    const struct sonde_average *row)
{
    return row->process == SONDE_NONE
               ? snd_cell_none()
               : snd_cell_number(sonde_trace_process(trace, row->process)->pid);
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
#define SND_OPS(key, title, kind, fit, when, cell) *cells++ = cell;
#include "view/ops.def"
#undef SND_OPS
}

/* What this row gives reason to show. */
static unsigned shows(const struct sonde_average *row)
{
    unsigned mask = WHEN_ALWAYS;

    mask |= row->self_device_bytes != 0 ? WHEN_DEVICE_MEMORY : 0;
    mask |= row->process != SONDE_NONE ? WHEN_PROCESS : 0;
    mask |= row->thread != SONDE_NONE ? WHEN_THREAD : 0;
    mask |= row->shapes.length > 0 && strcmp(row->shapes.bytes, "[]") != 0 ? WHEN_SHAPES : 0;
    mask |= row->stack.length > 0 ? WHEN_STACKS : 0;
    mask |= row->module.length > 0 ? WHEN_MODULE : 0;
    mask |= row->flops > 0 ? WHEN_FLOPS : 0;
    return mask;
}

SND_VIEW_BUILD(snd_view_ops)
{
    struct sonde_averages_options asked = { .groups = options->groups,
                                            .stack_depth = options->stack_depth,
                                            .top_level = options->top_level };

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = sonde_averages_new(trace, &asked, &doc->averages, err);
    if (st != SONDE_OK)
        return st;

    const struct sonde_averages_totals *all = sonde_averages_totals(doc->averages);
    unsigned                            mask = all->has_memory ? WHEN_MEMORY : 0;
    for (size_t i = 0; i < sonde_averages_count(doc->averages); i++) {
        const struct sonde_average *row = sonde_averages_row(doc->averages, i);
        fill(snd_table_add(&doc->rows), trace, all, row);
        mask |= shows(row);
    }
    for (size_t i = 0; i < SND_COUNT_OF(columns); i++)
        doc->rows.hidden[i] = !(column_when[i] & mask);
    doc->rows.torch_units = true;
    doc->unsaid_cut = true;
    snd_doc_total(doc, "self_cpu_time_total", "Self CPU time total", SND_TIME,
                  snd_cell_number(all->self_ns));
    snd_doc_total(doc, "ranges", NULL, SND_COUNT, snd_cell_number((int64_t)all->ranges));
    snd_doc_total(doc, "events", NULL, SND_COUNT, snd_cell_number((int64_t)all->events));
    return SONDE_OK;
}
