/* SPDX-License-Identifier: Apache-2.0 */
/* The threads view: one row per thread. */
#include "view/render/view.h"

static const struct snd_column columns[] = {
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

enum { COLUMN_WAITING = 9, COLUMN_RANK = 11, COLUMN_HOST };

SND_VIEW_BUILD(snd_view_threads)
{
    enum sonde_status st = snd_doc_summary(doc, err);
    bool              has_waiting = false, has_rank = false;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
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
    doc->rows.hidden[COLUMN_WAITING] = !has_waiting;
    doc->rows.hidden[COLUMN_RANK] = doc->rows.hidden[COLUMN_HOST] = !has_rank;
    doc->empty = "The trace has no threads.";
    snd_doc_total(doc, "threads", NULL, SND_COUNT, snd_cell_number((int64_t)doc->rows.row_count));
    return SONDE_OK;
}
