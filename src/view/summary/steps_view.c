/* SPDX-License-Identifier: Apache-2.0 */
/* The steps view: one row per step, and the spread of their durations. */
#include <stdlib.h>

#include "base/data/sort.h"
#include "model/summary/summary.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "step", "Step", SND_COUNT, SND_FIT_FIXED },
    { "start_ns", "Start", SND_TIME, SND_FIT_FIXED },
    { "duration_ns", "Duration", SND_TIME, SND_FIT_FIXED },
    { "ranges", "# of Ranges", SND_COUNT, SND_FIT_FIXED },
    { "device_ns", "GPU time", SND_TIME, SND_FIT_FIXED },
    { "part", "Part", SND_TEXT, SND_FIT_CONTENT },
};

enum { COLUMN_DEVICE = 5, COLUMN_PART = 6 };

static int compare_ns(const void *left, const void *right)
{
    const int64_t *x = left, *y = right;

    return SND_RISING(*x, *y);
}

static enum sonde_status add_spread(struct snd_doc *doc, struct sonde_error *err)
{
    size_t   all = sonde_summary_step_count(doc->summary), count = 0, steps = 0;
    int64_t *ns = calloc(all ? all : 1, sizeof *ns);
    double   sum = 0;

    if (!ns)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %zu steps", all);
    for (size_t i = 0; i < all; i++) {
        const struct sonde_step_row *row = sonde_summary_step(doc->summary, i);
        steps += row->part != SONDE_STEP_AFTER;
        if (row->part != SONDE_STEP_WHOLE)
            continue;
        ns[count] = row->duration_ns;
        sum += (double)ns[count++];
    }
    snd_sort(ns, count, sizeof *ns, compare_ns);
    snd_doc_total(doc, "steps", "Steps", SND_COUNT, snd_cell_number((int64_t)steps));
    if (count > 0) {
        int64_t low = ns[(count - 1) / 2], high = ns[count / 2];
        snd_doc_total(doc, "min_ns", "Shortest", SND_TIME, snd_cell_number(ns[0]));
        snd_doc_total(doc, "median_ns", "Median", SND_TIME,
                      snd_cell_number(low + (high - low) / 2));
        snd_doc_total(doc, "mean_ns", "Mean", SND_TIME,
                      snd_cell_number((int64_t)(sum / (double)count + 0.5)));
        snd_doc_total(doc, "max_ns", "Longest", SND_TIME, snd_cell_number(ns[count - 1]));
    }
    free(ns);
    return SONDE_OK;
}

SND_VIEW_BUILD(snd_view_steps)
{
    enum sonde_status st = snd_doc_summary(doc, err);

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    if (st != SONDE_OK)
        return st;
    bool has_device = false, has_parts = false;
    for (size_t i = 0; i < sonde_summary_step_count(doc->summary); i++) {
        const struct sonde_step_row *row = sonde_summary_step(doc->summary, i);
        struct snd_cell             *cell = snd_table_add(&doc->rows);

        *cell++ = snd_cell_number(sonde_trace_process(trace, row->process)->pid);
        *cell++ = snd_cell_number((int64_t)row->number);
        *cell++ = snd_cell_number(row->start_ns);
        *cell++ = snd_cell_number(row->duration_ns);
        *cell++ = snd_cell_number((int64_t)row->ranges);
        *cell++ = snd_cell_number(row->device_ns);
        *cell++ = snd_cell_string(sonde_step_part_name(row->part));
        has_device |= row->device_ns != 0;
        has_parts |= row->part != SONDE_STEP_WHOLE;
    }
    doc->rows.hidden[COLUMN_PART] = !has_parts;
    if (!has_device)
        snd_table_leave_out(&doc->rows, COLUMN_DEVICE);
    doc->empty = "The trace has no steps: a program marks them with sonde_step(), in Python also "
                 "with sonde.step() and the steps of profiles and optimizers.";
    return add_spread(doc, err);
}
