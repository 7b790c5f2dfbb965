/* SPDX-License-Identifier: Apache-2.0 */
/* The summary view: what ran, its size and cost, and the ranges that took most time themselves. */
#include <stdio.h>
#include <time.h>

#include "read/walk/device_work.h"
#include "read/said/trace_metadata.h"
#include "read/file/scale.h"
#include "view/render/view.h"
#include "view/summary/advice_view.h"

static const struct snd_column columns[] = {
    { "name", "Name", SND_TEXT, SND_FIT_NAME },
    { "self_percent", "Self CPU %", SND_SHARE, SND_FIT_FIXED },
    { "self_ns", "Self CPU", SND_TIME, SND_FIT_FIXED },
    { "total_ns", "CPU total", SND_TIME, SND_FIT_FIXED },
    { "self_device_ns", "Self GPU", SND_TIME, SND_FIT_FIXED },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
};
enum { COLUMN_DEVICE = 4 };
#define TOP_ROWS 10

static void add_count(struct snd_doc *doc, const char *key, const char *title, uint64_t count)
{
    snd_doc_total(doc, key, count ? title : NULL, SND_COUNT, snd_cell_number((int64_t)count));
}

static const char *format_date(struct snd_doc *doc, int64_t real_ns)
{
    time_t    seconds = (time_t)(real_ns / 1000000000);
    struct tm tm;
    char      text[64];

    if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
        return "";
    return snd_doc_format(doc, "%s", text);
}

/* Its arguments, where it has any. */
static void add_command(struct snd_doc *doc, const struct sonde_trace *trace)
{
    struct sonde_text command;

    if (snd_meta_find(trace, 0, SND_META_COMMAND, &command))
        snd_doc_total(doc, "command", "Command", SND_TEXT, (struct snd_cell){ .text = command });
}

/* A process has several files if it is sampled from inside and outside, or has cycles of a schedule. */
static uint32_t count_processes(const struct sonde_trace *trace)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        const struct sonde_process *own = sonde_trace_process(trace, i);
        bool                        seen = false;
        for (uint32_t k = 0; k < i && !seen; k++) {
            const struct sonde_process *other = sonde_trace_process(trace, k);
            seen = other->pid == own->pid && strcmp(other->host, own->host) == 0;
        }
        count += !seen;
    }
    return count;
}

static void add_processes(struct snd_doc *doc, const struct sonde_trace *trace)
{
    uint32_t count = sonde_trace_process_count(trace);

    if (count > 0) {
        const struct sonde_process *first = sonde_trace_process(trace, 0);
        snd_doc_total(doc, "program", "Program", SND_TEXT, snd_cell_string(first->program));
        add_command(doc, trace);
        snd_doc_total(doc, "host", "Host", SND_TEXT, snd_cell_string(first->host));
        snd_doc_total(doc, "started", "Started", SND_TEXT,
                      snd_cell_string(format_date(doc, first->start_real_ns)));
    }
    add_count(doc, "processes", "Processes", count_processes(trace));
    add_count(doc, "threads", "Threads", sonde_trace_thread_count(trace));
}

/*
 * The profiler's own cost, as the recorder measured it at start in each process: what the
 * times shown contain of it. Raw times are shown, the cost apart from them.
 */
static void add_cost(struct snd_doc *doc, const struct sonde_trace *trace)
{
    double cost_ns = 0;

    for (size_t i = 0; i < sonde_summary_thread_count(doc->summary); i++) {
        const struct sonde_thread_row *row = sonde_summary_thread(doc->summary, i);
        uint32_t                       process = sonde_trace_thread(trace, row->thread)->process;
        cost_ns += (double)row->ranges * sonde_trace_process(trace, process)->range_cost_ns;
    }
    if (cost_ns < 9e18)
        snd_doc_total(doc, "profiling_cost_ns", cost_ns > 0 ? "Cost of profiling" : NULL, SND_TIME,
                      snd_cell_number((int64_t)cost_ns));
    if (sonde_trace_process_count(trace) > 0)
        snd_doc_total(doc, "range_cost_ns", NULL, SND_REAL,
                      snd_cell_real(sonde_trace_process(trace, 0)->range_cost_ns));
}

/* Asynchronous ranges, which are no part of the ranges' self time: collectives, futures. */
static void add_waiting(struct snd_doc *doc)
{
    int64_t sum = 0;

    for (size_t i = 0; i < sonde_summary_thread_count(doc->summary); i++)
        sum = snd_add(sum, sonde_summary_thread(doc->summary, i)->waiting_ns);
    snd_doc_total(doc, "waiting_ns", sum > 0 ? "Waiting" : NULL, SND_TIME, snd_cell_number(sum));
}

/* Kernels, copies and fills, each counted in full; only of a trace that has any. */
static enum sonde_status add_gpu(struct snd_doc *doc, struct sonde_trace *trace,
                                 struct sonde_error *err)
{
    const struct snd_devices *devices;
    enum sonde_status         st = snd_trace_devices(trace, &devices, err);
    int64_t                   count = 0, sum = 0;

    for (uint32_t i = 0; st == SONDE_OK && devices && i < devices->count; i++)
        if (snd_work_counts(snd_device_work(trace, &devices->items[i]))) {
            sum = snd_add(sum, devices->items[i].duration_ns);
            count++;
        }
    if (count > 0) {
        snd_doc_total(doc, "gpu_work", "Work of GPUs", SND_COUNT, snd_cell_number(count));
        snd_doc_total(doc, "gpu_ns", "GPU time", SND_TIME, snd_cell_number(sum));
    }
    return st;
}

static void add_totals(struct snd_doc *doc, const struct sonde_trace *trace)
{
    const struct sonde_summary_totals *all = sonde_summary_totals(doc->summary);

    add_processes(doc, trace);
    snd_doc_total(doc, "span_ns", "Span", SND_TIME, snd_cell_number(all->span_ns));
    snd_doc_total(doc, "size_bytes", "Size", SND_BYTES, snd_cell_number((int64_t)all->size_bytes));
    add_count(doc, "events", "Events", all->events);
    add_count(doc, "ranges", "Ranges", all->ranges);
    add_count(doc, "marks", "Marks", all->marks);
    add_count(doc, "counters", "Counter values", all->counters);
    add_count(doc, "allocs", "Allocations", all->allocs);
    add_count(doc, "frees", "Frees", all->frees);
    add_count(doc, "links", "Link ends", all->links);
    add_count(doc, "samples", "Samples", all->samples);
    add_count(doc, "steps", "Steps", all->steps);
    add_waiting(doc);
    add_cost(doc, trace);
}

SND_DOC_RELEASE(free_averages, sonde_averages_free)

static void add_rows(struct snd_doc *doc, const struct sonde_averages *averages)
{
    const struct sonde_averages_totals *all = sonde_averages_totals(averages);

    for (size_t i = 0; i < sonde_averages_count(averages); i++) {
        const struct sonde_average row = sonde_averages_get(averages, i);
        if (row.on_device) /* kernels are the kernels view's */
            continue;
        struct snd_cell *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row.name);
        *cell++ = snd_cell_share(row.self_ns, all->self_ns);
        *cell++ = snd_cell_number(row.self_ns);
        *cell++ = snd_cell_number(row.total_ns);
        *cell++ = snd_cell_number(row.self_device_ns);
        *cell++ = snd_cell_number((int64_t)row.count);
    }
    if (all->device_ns == 0)
        snd_table_leave_out(&doc->rows, COLUMN_DEVICE);
}

/* The whole list is the ops view's: here the first ones, and how many there are. */
static void keep_first_rows(struct snd_doc *doc)
{
    doc->rows_title = "Ranges by self time";
    if (doc->rows.row_count <= TOP_ROWS)
        return;
    doc->rows_title =
        snd_doc_format(doc, "Ranges by self time, the first %d of %zu (--view ops has all)",
                       TOP_ROWS, doc->rows.row_count);
    doc->rows.row_count = TOP_ROWS;
}

SND_VIEW_BUILD(snd_view_summary)
{
    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct sonde_averages *averages = NULL;
    struct snd_advisor    *advisor;
    enum sonde_status      st = snd_advice_begin(doc, trace, &advisor, err);
    if (st == SONDE_OK)
        st = sonde_averages_new(trace, NULL, &averages, err);
    snd_doc_keep(doc, averages, free_averages);
    if (st == SONDE_OK)
        st = snd_doc_summary(doc, err);
    if (st != SONDE_OK)
        return st;

    add_rows(doc, averages);
    add_totals(doc, trace);
    st = add_gpu(doc, trace, err);
    if (st == SONDE_OK)
        st = snd_advice_rows(doc, advisor,
                             snd_doc_section(doc, "advice", SND_ADVICE_TITLE, snd_advice_columns,
                                             snd_advice_column_count),
                             err);
    if (st != SONDE_OK)
        return st;
    doc->sections[doc->section_count - 1].text = snd_advice_text;
    doc->totals_first = true;
    doc->empty = "The trace has no ranges.";
    st = snd_table_sort(&doc->rows, "self_ns", err);
    keep_first_rows(doc);
    return st;
}
