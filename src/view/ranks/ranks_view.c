/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks view: one row per rank of a job. */
#include "model/ranks/rank_times.h"
#include "view/ranks/clocks_note.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "rank", "Rank", SND_COUNT, SND_FIT_FIXED },
    { "host", "Host", SND_TEXT, SND_FIT_CONTENT },
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "steps", "Steps", SND_COUNT, SND_FIT_FIXED },
    { "span_ns", "Span", SND_TIME, SND_FIT_FIXED },
    { "compute_ns", "Compute", SND_TIME, SND_FIT_FIXED },
    { "communication_ns", "Communication", SND_TIME, SND_FIT_FIXED },
    { "exposed_communication_ns", "Exposed", SND_TIME, SND_FIT_FIXED },
    { "wait_ns", "Waiting", SND_TIME, SND_FIT_FIXED },
    { "copy_ns", "Copies", SND_TIME, SND_FIT_FIXED },
    { "data_loading_ns", "Data loading", SND_TIME, SND_FIT_FIXED },
    { "idle_ns", "Idle", SND_TIME, SND_FIT_FIXED },
    { "busy_percent", "Busy %", SND_SHARE, SND_FIT_FIXED },
    { "collectives", "Collectives", SND_COUNT, SND_FIT_FIXED },
    { "last_count", "Last", SND_COUNT, SND_FIT_FIXED },
    { "caused_wait_ns", "Caused", SND_TIME, SND_FIT_FIXED },
};

SND_DOC_RELEASE(free_times, snd_rank_times_free)

SND_VIEW_BUILD(snd_view_ranks)
{
    struct snd_rank_times *times = NULL;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = snd_rank_times_make(trace, &times, err);
    snd_doc_keep(doc, times, free_times);
    for (uint32_t i = 0; st == SONDE_OK && i < times->count; i++) {
        const struct snd_rank_row  *row = &times->rows[i];
        const struct sonde_process *process = sonde_trace_process(trace, row->process);
        if (row->span_ns == 0)
            continue;
        struct snd_cell *cell = snd_table_add(&doc->rows);
        *cell++ = row->rank != SONDE_NONE ? snd_cell_number(row->rank) : snd_cell_none();
        *cell++ = snd_cell_string(process->host);
        *cell++ = snd_cell_number(process->pid);
        *cell++ = snd_cell_number((int64_t)row->steps);
        *cell++ = snd_cell_number(row->span_ns);
        *cell++ = snd_cell_number(row->compute_ns);
        *cell++ = snd_cell_number(row->communication_ns);
        *cell++ = snd_cell_number(row->exposed_ns);
        *cell++ = snd_cell_number(row->wait_ns);
        *cell++ = snd_cell_number(row->copy_ns);
        *cell++ = snd_cell_number(row->loading_ns);
        *cell++ = snd_cell_number(row->idle_ns);
        *cell++ = snd_cell_share(snd_sub(row->span_ns, row->idle_ns), row->span_ns);
        *cell++ = snd_cell_number((int64_t)row->collectives);
        *cell++ = snd_cell_number((int64_t)row->last);
        *cell++ = snd_cell_number(row->caused_ns);
    }
    snd_clocks_note(doc);
    return st;
}
