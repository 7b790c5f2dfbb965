/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels view: one row per kernel, copy and fill that GPUs ran, and what launched it. */
#include <math.h>

#include "format/fields.h"
#include "model/gpu/kernels.h"
#include "view/gpu/gpu_names.h"
#include "view/render/view.h"

enum {
    COLUMN_NAME,
    COLUMN_KIND,
    COLUMN_PROCESS,
    COLUMN_DEVICE,
    COLUMN_SHARE,
    COLUMN_TOTAL,
    COLUMN_COUNT,
    COLUMN_MEAN,
    COLUMN_MIN,
    COLUMN_MAX,
    COLUMN_DELAY,
    COLUMN_DELAY_95,
    COLUMN_GRID,
    COLUMN_BLOCK,
    COLUMN_CONFIGURATIONS,
    COLUMN_REGISTERS,
    COLUMN_SHARED,
    COLUMN_OCCUPANCY,
    COLUMN_LIMIT,
    COLUMN_BYTES,
    COLUMN_RATE,
    COLUMN_GRAPH,
    COLUMN_OPERATOR,
    COLUMN_OPERATORS,
    COLUMN_MODULE,
    COLUMN_LINE,
    COLUMN_SHAPES,
    COLUMN_STACK,
    COLUMNS,
};

static const struct snd_column columns[COLUMNS] = {
    [COLUMN_NAME] = { "name", "Name", SND_TEXT, SND_FIT_NAME },
    [COLUMN_KIND] = { "kind", NULL, SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_PROCESS] = { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    [COLUMN_DEVICE] = { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_SHARE] = { "total_percent", "GPU %", SND_SHARE, SND_FIT_FIXED },
    [COLUMN_TOTAL] = { "total_ns", "GPU total", SND_TIME, SND_FIT_FIXED },
    [COLUMN_COUNT] = { "count", "# of Runs", SND_COUNT, SND_FIT_FIXED },
    [COLUMN_MEAN] = { "mean_ns", "GPU avg", SND_TIME, SND_FIT_FIXED },
    [COLUMN_MIN] = { "min_ns", "GPU min", SND_TIME, SND_FIT_FIXED },
    [COLUMN_MAX] = { "max_ns", "GPU max", SND_TIME, SND_FIT_FIXED },
    [COLUMN_DELAY] = { "delay_median_ns", "Delay", SND_TIME, SND_FIT_FIXED },
    [COLUMN_DELAY_95] = { "delay_p95_ns", "Delay 95 %", SND_TIME, SND_FIT_FIXED },
    [COLUMN_GRID] = { "grid", "Grid", SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_BLOCK] = { "block", "Block", SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_CONFIGURATIONS] = { "configurations", NULL, SND_COUNT, SND_FIT_FIXED },
    [COLUMN_REGISTERS] = { "registers", "Registers", SND_COUNT, SND_FIT_FIXED },
    [COLUMN_SHARED] = { "shared_bytes", "Shared Mem", SND_BYTES, SND_FIT_FIXED },
    [COLUMN_OCCUPANCY] = { "occupancy_percent", "Occupancy", SND_SHARE, SND_FIT_FIXED },
    [COLUMN_LIMIT] = { "occupancy_limit", NULL, SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_BYTES] = { "bytes", "Bytes", SND_BYTES, SND_FIT_FIXED },
    [COLUMN_RATE] = { "gb_per_second", "GB/s", SND_REAL, SND_FIT_FIXED },
    [COLUMN_GRAPH] = { "graph_count", "In Graphs", SND_COUNT, SND_FIT_FIXED },
    [COLUMN_OPERATOR] = { "operator", "Launched by", SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_OPERATORS] = { "operators", NULL, SND_COUNT, SND_FIT_FIXED },
    [COLUMN_MODULE] = { "module", "Module", SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_LINE] = { "line", "Line", SND_TEXT, SND_FIT_CONTENT },
    [COLUMN_SHAPES] = { "input_shapes", "Input Shapes", SND_SHAPES, SND_FIT_SHAPES },
    [COLUMN_STACK] = { "stack", "Source Location", SND_LINES, SND_FIT_SOURCE },
};
static const char *const spare[] = { "GPU min",    "GPU max",   "Delay 95 %", "Registers", "Block",
                                     "Shared Mem", "Module",    "Grid",       "Occupancy", "Bytes",
                                     "GB/s",       "In Graphs", "Delay",      "GPU avg",   NULL };

/* "(132, 4, 1)"; of several configurations, that which took most time. */
static struct snd_cell size_cell(struct snd_doc *doc, const uint32_t size[3])
{
    return snd_cell_string(snd_doc_format(doc, "(%u, %u, %u)", size[0], size[1], size[2]));
}

static void fill_kernel(struct snd_doc *doc, struct snd_cell *cells,
                        const struct snd_kernel_row *row)
{
    cells[COLUMN_GRID] = size_cell(doc, row->work.grid);
    cells[COLUMN_BLOCK] = size_cell(doc, row->work.block);
    cells[COLUMN_REGISTERS] = snd_cell_number(row->work.registers);
    cells[COLUMN_SHARED] =
        snd_cell_number((int64_t)row->work.shared_static + row->work.shared_dynamic);
    if (!isnan(row->occupancy)) {
        cells[COLUMN_OCCUPANCY] = snd_cell_real(row->occupancy);
        cells[COLUMN_LIMIT] = snd_cell_string(snd_limit_words[row->limit]);
    }
}

static void fill_place(struct snd_doc *doc, struct snd_cell *cells, const struct snd_kernels *k,
                       const struct snd_kernel_row *row)
{
    struct sonde_text module = snd_where_module(k->launches, &row->where);

    cells[COLUMN_OPERATOR] = snd_cell_text(snd_where_name(k->launches, &row->where));
    cells[COLUMN_OPERATORS] = snd_cell_number(row->operators);
    if (module.length > 0)
        cells[COLUMN_MODULE] = snd_cell_text(module);
    cells[COLUMN_LINE] = snd_gpu_line_cell(doc, k->launches, &row->where);
}

static void add_row(struct snd_doc *doc, const struct snd_kernels *k,
                    const struct snd_kernel_row *row)
{
    struct snd_cell *cells = snd_table_add(&doc->rows);

    for (size_t i = 0; i < COLUMNS; i++)
        cells[i] = snd_cell_none();
    cells[COLUMN_NAME] = snd_cell_text(row->name);
    cells[COLUMN_KIND] = snd_cell_string(snd_work_words[row->kind]);
    if (row->process != SONDE_NONE)
        cells[COLUMN_PROCESS] = snd_cell_number(sonde_trace_process(doc->trace, row->process)->pid);
    if (row->device != SONDE_NONE)
        cells[COLUMN_DEVICE] = snd_cell_string(snd_gpu_name(doc, row->device));
    cells[COLUMN_SHARE] = snd_cell_share(row->total_ns, k->total_ns);
    cells[COLUMN_TOTAL] = snd_cell_number(row->total_ns);
    cells[COLUMN_COUNT] = snd_cell_number((int64_t)row->count);
    cells[COLUMN_MEAN] = snd_cell_number(row->total_ns / (int64_t)row->count);
    cells[COLUMN_MIN] = snd_cell_number(row->min_ns);
    cells[COLUMN_MAX] = snd_cell_number(row->max_ns);
    if (row->delays > 0) {
        cells[COLUMN_DELAY] = snd_cell_number(row->delay_median_ns);
        cells[COLUMN_DELAY_95] = snd_cell_number(row->delay_p95_ns);
    }
    cells[COLUMN_CONFIGURATIONS] = snd_cell_number(row->configurations);
    cells[COLUMN_GRAPH] = snd_cell_number((int64_t)row->graph_count);
    if (row->kind == SND_WORK_KERNEL) {
        fill_kernel(doc, cells, row);
    } else {
        cells[COLUMN_BYTES] = snd_cell_number((int64_t)row->bytes);
        if (row->total_ns > 0)
            cells[COLUMN_RATE] = snd_cell_real((double)row->bytes / (double)row->total_ns);
    }
    if (row->launched)
        fill_place(doc, cells, k, row);
    cells[COLUMN_SHAPES] = snd_cell_text(row->shapes);
    cells[COLUMN_STACK] = snd_cell_text(row->stack);
}

/* A column that is empty in every row is left out of the text. */
static void hide_empty(struct snd_table *table, const struct snd_kernels *k, unsigned groups)
{
    bool in_graphs = false;

    for (uint32_t i = 0; i < k->count; i++)
        in_graphs |= k->rows[i].graph_count > 0;
    snd_hide_empty(table, 0, COLUMNS - 1);
    table->hidden[COLUMN_GRAPH] = !in_graphs;
    table->hidden[COLUMN_SHAPES] = !(groups & SONDE_GROUP_SHAPE);
    table->hidden[COLUMN_STACK] = !(groups & SONDE_GROUP_STACK);
    table->hidden[COLUMN_LINE] |= (groups & SONDE_GROUP_STACK) != 0; /* the stack has it */
}

SND_DOC_RELEASE(free_kernels, snd_kernels_free)

SND_VIEW_BUILD(snd_view_kernels)
{
    struct snd_kernels *k = NULL;

    snd_table_init(&doc->rows, columns, COLUMNS);
    doc->rows.spare = spare;
    doc->rows.share = COLUMN_SHARE + 1;
    doc->rows.time = COLUMN_TOTAL + 1;
    enum sonde_status st = snd_kernels_new(trace, options->groups, options->stack_depth, &k, err);
    snd_doc_keep(doc, k, free_kernels);
    if (st != SONDE_OK)
        return st;
    uint64_t count = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        add_row(doc, k, &k->rows[i]);
        count += k->rows[i].count;
    }
    hide_empty(&doc->rows, k, options->groups);
    doc->empty = snd_gpu_empty(doc);
    snd_doc_total(doc, "total_ns", "GPU time total", SND_TIME, snd_cell_number(k->total_ns));
    snd_doc_total(doc, "count", NULL, SND_COUNT, snd_cell_number((int64_t)count));
    return snd_table_sort(&doc->rows, "total_ns", err);
}
