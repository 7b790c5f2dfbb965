/* SPDX-License-Identifier: Apache-2.0 */
/* The critical view: what lies on the critical path of a job, and what shortening it would win. */
#include "model/ranks/critical.h"
#include "view/ranks/clocks_note.h"
#include "view/render/view.h"

enum { COLUMN_STEP };

static const struct snd_column columns[] = {
    { "step", "Step", SND_COUNT, SND_FIT_FIXED },
    { "rank", "Rank", SND_COUNT, SND_FIT_FIXED },
    { "where", "Thread or stream", SND_TEXT, SND_FIT_CONTENT },
    { "kind", "Kind", SND_TEXT, SND_FIT_CONTENT },
    { "what", "What", SND_TEXT, SND_FIT_CONTENT },
    { "duration_ns", "On the path", SND_TIME, SND_FIT_FIXED },
    { "percent", "Of the path %", SND_SHARE, SND_FIT_FIXED },
    { "win_ns", "Would win", SND_TIME, SND_FIT_FIXED },
    { "count", "Parts", SND_COUNT, SND_FIT_FIXED },
};

static struct snd_cell where_cell(struct snd_doc *doc, struct sonde_trace *trace,
                                  const struct snd_critical_row *row)
{
    const struct snd_tables *tables = &trace->processes[row->process].tables;

    if (row->thread != SONDE_NONE) {
        const struct sonde_thread *thread = &trace->threads[row->thread].shown;
        return thread->name.length > 0
                   ? snd_cell_text(thread->name)
                   : snd_cell_string(snd_doc_format(doc, "thread %u", thread->tid));
    }
    if (row->queue == 0 || row->queue >= tables->queue_count)
        return snd_cell_string("stream");
    return snd_cell_string(snd_doc_format(doc, "stream %u", tables->queues[row->queue].stream));
}

static struct snd_cell name_cell(struct sonde_trace *trace, uint32_t name)
{
    if (name == SONDE_NONE)
        return snd_cell_none();
    return snd_cell_text(
        (struct sonde_text){ trace->names.items[name].bytes, trace->names.items[name].length });
}

SND_DOC_RELEASE(free_critical, snd_critical_free)

SND_VIEW_BUILD(snd_view_critical)
{
    struct snd_critical *critical = NULL;
    bool                 by_step = options->groups & SONDE_GROUP_STEP;

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = snd_critical_make(trace, by_step, &critical, err);
    snd_doc_keep(doc, critical, free_critical);
    if (st != SONDE_OK)
        return st;
    for (uint32_t i = 0; i < critical->count; i++) {
        const struct snd_critical_row *row = &critical->rows[i];
        struct snd_cell               *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_number((int64_t)row->step);
        *cell++ = row->rank != SONDE_NONE ? snd_cell_number(row->rank) : snd_cell_none();
        *cell++ = where_cell(doc, trace, row);
        *cell++ = snd_cell_string(snd_part_kind_words[row->kind]);
        *cell++ = name_cell(trace, row->name);
        *cell++ = snd_cell_number(row->ns);
        *cell++ = snd_cell_share(row->ns, row->path_ns);
        *cell++ = snd_cell_number(row->win_ns);
        *cell++ = snd_cell_number((int64_t)row->count);
    }
    if (!by_step)
        snd_table_leave_out(&doc->rows, COLUMN_STEP);
    snd_doc_total(doc, "path_ns", "Critical path", SND_TIME, snd_cell_number(critical->span_ns));
    snd_doc_total(doc, "steps", NULL, SND_COUNT, snd_cell_number((int64_t)critical->steps));
    snd_clocks_note(doc);
    return SONDE_OK;
}
