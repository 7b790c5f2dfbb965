/* SPDX-License-Identifier: Apache-2.0 */
/* The views summary, advice, steps, threads and ledger: what ran, its size and cost, and what to know of it first. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/data/sort.h"
#include "base/text/buf.h"
#include "model/highlights/advice.h"
#include "model/summary/summary.h"
#include "read/file/scale.h"
#include "read/said/trace_metadata.h"
#include "read/walk/device_work.h"
#include "view/render/format.h"
#include "view/render/view.h"

/* ------------------------------------------------------------------- advice */

#define ADVICE_TITLE "What to try"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

enum { ADVICE_NAME, ADVICE_TEXT, ADVICE_PLACE, ADVICE_TRIES };
static const struct snd_column advice_columns[] = {
    { "name", "Pattern", SND_TEXT, SND_FIT_CONTENT },
    { "text", "Found", SND_TEXT, SND_FIT_CONTENT },
    { "place", "Place", SND_TEXT, SND_FIT_CONTENT },
    { "try", ADVICE_TITLE, SND_TEXT, SND_FIT_CONTENT },
    { "share", NULL, SND_SHARE, SND_FIT_FIXED },
    { "link", NULL, SND_TEXT, SND_FIT_CONTENT },
};

SND_DOC_RELEASE(free_advisor, snd_advisor_free)

/* Before the view's first walk; the document keeps it. */
static enum sonde_status begin_advice(struct snd_doc *doc, struct sonde_trace *trace,
                                      struct snd_advisor **out, struct sonde_error *err)
{
    enum sonde_status st = snd_advisor_new(trace, out, err);

    snd_doc_keep(doc, *out, free_advisor);
    return st;
}

/* Fills `table`, whose columns are those above. The document's summary is finished by then. */
static enum sonde_status add_advice(struct snd_doc *doc, struct snd_advisor *advisor,
                                    struct snd_table *table, struct sonde_error *err)
{
    const struct snd_advices *advices;
    enum sonde_status         st = snd_advice_find(advisor, doc->summary, &advices, err);

    for (size_t i = 0; st == SONDE_OK && i < advices->count; i++) {
        const struct snd_advice *advice = &advices->items[i];
        struct snd_cell         *cell = snd_table_add(table);
        *cell++ = snd_cell_string(advice->name);
        *cell++ = snd_cell_string(snd_doc_format(doc, "%s", advice->text));
        *cell++ = *advice->place ? snd_cell_string(snd_doc_format(doc, "%s", advice->place))
                                 : snd_cell_none();
        *cell++ = snd_cell_string(advice->tries);
        *cell++ = advice->share > 0 ? snd_cell_real(advice->share) : snd_cell_none();
        *cell = snd_cell_string(snd_doc_format(doc, "%s", advice->link));
    }
    return st;
}

static void put_text(const struct snd_cell *cell, const char *before, struct snd_out *out)
{
    struct sonde_buffer text = { 0 };

    snd_format_text(&text, cell->text.bytes, cell->text.length);
    snd_out_text(out, before);
    snd_out_put(out, snd_buf_string(&text), text.length);
    snd_out_text(out, "\n");
    sonde_buffer_release(&text);
}

/* The rows as sentences: of a section. */
static void put_advice(const struct snd_table *table, const struct sonde_report_options *options,
                       struct snd_out *out)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const struct snd_cell *row = snd_table_row(table, i);
        snd_out_text(out, options->colour ? BOLD "* " : "* ");
        put_text(&row[ADVICE_TEXT], "", out);
        snd_out_text(out, options->colour ? PLAIN : "");
        if (!row[ADVICE_PLACE].none)
            put_text(&row[ADVICE_PLACE], "  ", out);
        put_text(&row[ADVICE_TRIES], "  ", out);
    }
}

static void put_all(const struct snd_doc *doc, const struct sonde_report_options *options,
                    struct snd_out *out)
{
    if (doc->rows.row_count > 0)
        snd_out_text(out, ADVICE_TITLE "\n");
    put_advice(&doc->rows, options, out);
    if (doc->rows.row_count == 0 && doc->empty)
        snd_out_format(out, "%s\n", doc->empty);
}

SND_VIEW_BUILD(snd_view_advice)
{
    (void)options;
    snd_table_init(&doc->rows, advice_columns, SND_COUNT_OF(advice_columns));
    struct snd_advisor *advisor;
    enum sonde_status   st = begin_advice(doc, trace, &advisor, err);
    if (st == SONDE_OK)
        st = snd_doc_summary(doc, err);
    if (st == SONDE_OK)
        st = add_advice(doc, advisor, &doc->rows, err);
    doc->text = put_all;
    return st;
}

/* ------------------------------------------------------------------ summary */

static const struct snd_column summary_columns[] = {
    { "name", "Name", SND_TEXT, SND_FIT_NAME },
    { "self_percent", "Self CPU %", SND_SHARE, SND_FIT_FIXED },
    { "self_ns", "Self CPU", SND_TIME, SND_FIT_FIXED },
    { "total_ns", "CPU total", SND_TIME, SND_FIT_FIXED },
    { "self_device_ns", "Self GPU", SND_TIME, SND_FIT_FIXED },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
};
enum { SUMMARY_DEVICE = 4 };
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

    for (uint32_t i = 0; st == SONDE_OK && devices && i < devices->count; i++) {
        snd_devices_pass(devices, i, NULL);
        if (!snd_work_counts(snd_device_work(trace, &devices->items[i])))
            continue;
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
    add_count(doc, "steps", "Step marks", all->steps);
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
        snd_table_leave_out(&doc->rows, SUMMARY_DEVICE);
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
    snd_table_init(&doc->rows, summary_columns, SND_COUNT_OF(summary_columns));
    struct sonde_averages *averages = NULL;
    struct snd_advisor    *advisor;
    enum sonde_status      st = begin_advice(doc, trace, &advisor, err);
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
        st = add_advice(doc, advisor,
                        snd_doc_section(doc, "advice", ADVICE_TITLE, advice_columns,
                                        SND_COUNT_OF(advice_columns)),
                        err);
    if (st != SONDE_OK)
        return st;
    doc->sections[doc->section_count - 1].text = put_advice;
    doc->totals_first = true;
    doc->empty = "The trace has no ranges.";
    st = snd_table_sort(&doc->rows, "self_ns", err);
    keep_first_rows(doc);
    return st;
}

/* -------------------------------------------------------------------- steps */

static const struct snd_column step_columns[] = {
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "step", "Step", SND_COUNT, SND_FIT_FIXED },
    { "start_ns", "Start", SND_TIME, SND_FIT_FIXED },
    { "duration_ns", "Duration", SND_TIME, SND_FIT_FIXED },
    { "ranges", "# of Ranges", SND_COUNT, SND_FIT_FIXED },
    { "device_ns", "GPU time", SND_TIME, SND_FIT_FIXED },
    { "part", "Part", SND_TEXT, SND_FIT_CONTENT },
};

enum { STEP_DEVICE = 5, STEP_PART = 6 };

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
    snd_table_init(&doc->rows, step_columns, SND_COUNT_OF(step_columns));
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
    doc->rows.hidden[STEP_PART] = !has_parts;
    if (!has_device)
        snd_table_leave_out(&doc->rows, STEP_DEVICE);
    doc->empty = "The trace has no steps: a program marks them with sonde_step(), in Python also "
                 "with sonde.step() and the steps of profiles and optimizers.";
    return add_spread(doc, err);
}

/* ------------------------------------------------------------------ threads */

static const struct snd_column thread_columns[] = {
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "thread", "Thread", SND_COUNT, SND_FIT_FIXED },
    { "events", "# of Events", SND_COUNT, SND_FIT_FIXED },
    { "ranges", "# of Ranges", SND_COUNT, SND_FIT_FIXED },
    { "samples", "# of Samples", SND_COUNT, SND_FIT_FIXED },
    { "start_ns", "Start", SND_TIME, SND_FIT_FIXED },
    { "span_ns", "Span", SND_TIME, SND_FIT_FIXED },
    { "busy_ns", "In ranges", SND_TIME, SND_FIT_FIXED },
    { "busy_percent", "In ranges %", SND_SHARE, SND_FIT_FIXED },
    { "waiting_ns", "Waiting", SND_TIME, SND_FIT_FIXED },
    { "lost_events", "Lost", SND_COUNT, SND_FIT_FIXED },
    { "rank", "Rank", SND_COUNT, SND_FIT_FIXED },
    { "host", "Host", SND_TEXT, SND_FIT_CONTENT },
    { "name", "Name", SND_TEXT, SND_FIT_CONTENT },
};

enum { THREAD_WAITING = 9, THREAD_RANK = 11, THREAD_HOST };

SND_VIEW_BUILD(snd_view_threads)
{
    enum sonde_status st = snd_doc_summary(doc, err);
    bool              has_waiting = false, has_rank = false;

    (void)options;
    snd_table_init(&doc->rows, thread_columns, SND_COUNT_OF(thread_columns));
    if (st != SONDE_OK)
        return st;
    for (size_t i = 0; i < sonde_summary_thread_count(doc->summary); i++) {
        const struct sonde_thread_row *row = sonde_summary_thread(doc->summary, i);
        const struct sonde_thread     *thread = sonde_trace_thread(trace, row->thread);
        const struct sonde_process    *process = sonde_trace_process(trace, thread->process);
        struct snd_cell               *cell = snd_table_add(&doc->rows);

        *cell++ = snd_cell_number(process->pid);
        *cell++ = snd_cell_number(thread->tid);
        *cell++ = snd_cell_number((int64_t)row->events);
        *cell++ = snd_cell_number((int64_t)row->ranges);
        *cell++ = snd_cell_number((int64_t)row->samples);
        *cell++ = snd_cell_number(thread->start_ns);
        *cell++ = snd_cell_number(row->span_ns);
        *cell++ = snd_cell_number(row->busy_ns);
        *cell++ = row->span_ns > 0 ? snd_cell_share(row->busy_ns, row->span_ns) : snd_cell_none();
        *cell++ = snd_cell_number(row->waiting_ns);
        *cell++ = snd_cell_number((int64_t)row->lost_events);
        *cell++ = process->rank != SONDE_NONE ? snd_cell_number(process->rank) : snd_cell_none();
        *cell++ = snd_cell_string(process->host);
        *cell++ = snd_cell_text(thread->name);
        has_waiting |= row->waiting_ns != 0;
        has_rank |= process->rank != SONDE_NONE;
    }
    doc->rows.hidden[THREAD_WAITING] = !has_waiting;
    doc->rows.hidden[THREAD_RANK] = doc->rows.hidden[THREAD_HOST] = !has_rank;
    doc->empty = "The trace has no threads.";
    snd_doc_total(doc, "threads", NULL, SND_COUNT, snd_cell_number((int64_t)doc->rows.row_count));
    return SONDE_OK;
}

/* ------------------------------------------------------------------- ledger */

static const struct snd_column ledger_columns[] = {
    { "key", "What", SND_TEXT, SND_FIT_CONTENT },
    { "count", "Count", SND_COUNT, SND_FIT_FIXED },
    { "text", "Meaning", SND_TEXT, SND_FIT_CONTENT },
    { "is_note", NULL, SND_FLAG, SND_FIT_FIXED },
};

SND_VIEW_BUILD(snd_view_ledger)
{
    enum sonde_status st = snd_doc_summary(doc, err);

    (void)trace;
    (void)options;
    snd_table_init(&doc->rows, ledger_columns, SND_COUNT_OF(ledger_columns));
    for (size_t i = 0; st == SONDE_OK && i < sonde_summary_ledger_count(doc->summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(doc->summary, i);
        struct snd_cell                *cell = snd_table_add(&doc->rows);

        *cell++ = snd_cell_string(item->key);
        *cell++ = snd_cell_number((int64_t)item->count);
        *cell++ = snd_cell_string(item->text);
        *cell++ = snd_cell_number(item->is_note);
    }
    doc->empty = "Nothing is missing: the ledger is empty.";
    return st;
}
