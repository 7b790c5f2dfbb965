/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks view: one row per rank of a job, or per step and rank. */
#include "model/ranks/rank_times.h"
#include "view/ranks/clocks_note.h"
#include "view/render/view.h"

enum { COLUMN_STEP, COLUMN_STEPS = 4, COLUMN_MEMORY = 17 };

static const struct snd_column columns[] = {
    { "step", "Step", SND_COUNT, SND_FIT_FIXED },
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
    { "memory_peak_bytes", "Memory peak", SND_BYTES, SND_FIT_FIXED },
};

SND_DOC_RELEASE(free_times, snd_rank_times_free)

static bool add_row(struct snd_doc *doc, struct sonde_trace *trace, const struct snd_rank_row *row)
{
    const struct sonde_process *process = sonde_trace_process(trace, row->process);
    struct snd_cell            *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_number((int64_t)row->step);
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
    *cell++ = row->peak_bytes >= 0 ? snd_cell_number(row->peak_bytes) : snd_cell_none();
    return row->peak_bytes >= 0;
}

SND_VIEW_BUILD(snd_view_ranks)
{
    struct snd_rank_times *times = NULL;
    bool                   by_step = options->groups & SONDE_GROUP_STEP, has_memory = false;

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = snd_rank_times_make(trace, by_step, &times, err);
    snd_doc_keep(doc, times, free_times);
    if (st != SONDE_OK)
        return st;
    const struct snd_rank_row *rows = by_step ? times->steps : times->rows;
    uint32_t                   count = by_step ? times->step_count : times->count;
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].span_ns > 0)
            has_memory |= add_row(doc, trace, &rows[i]);
    snd_table_leave_out(&doc->rows, by_step ? COLUMN_STEPS : COLUMN_STEP);
    if (!has_memory)
        snd_table_leave_out(&doc->rows, COLUMN_MEMORY);
    snd_clocks_note(doc);
    return SONDE_OK;
}
