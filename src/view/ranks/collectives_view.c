/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives view: one row per group, kind and size; and those that never completed. */
#include "base/text/buf.h"
#include "model/ranks/collective_rows.h"
#include "view/ranks/clocks_note.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "kind", "Collective", SND_TEXT, SND_FIT_CONTENT },
    { "group_name", "Group", SND_TEXT, SND_FIT_CONTENT },
    { "group_ranks", "Ranks", SND_TEXT, SND_FIT_CONTENT },
    { "size_bytes", "Size", SND_BYTES, SND_FIT_FIXED },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
    { "duration_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "wait_ns", "Waiting", SND_TIME, SND_FIT_FIXED },
    { "transfer_ns", "Transfer", SND_TIME, SND_FIT_FIXED },
    { "algorithm_gbps", "Algo GB/s", SND_REAL, SND_FIT_FIXED },
    { "bus_gbps", "Bus GB/s", SND_REAL, SND_FIT_FIXED },
    { "last_rank", "Last", SND_COUNT, SND_FIT_FIXED },
    { "last_count", "How often", SND_COUNT, SND_FIT_FIXED },
    { "unfinished", "Unfinished", SND_COUNT, SND_FIT_FIXED },
    { "mismatched", "Mismatched", SND_COUNT, SND_FIT_FIXED },
};

static const struct snd_column unfinished_columns[] = {
    { "kind", "Collective", SND_TEXT, SND_FIT_CONTENT },
    { "group_name", "Group", SND_TEXT, SND_FIT_CONTENT },
    { "sequence", "Sequence", SND_COUNT, SND_FIT_FIXED },
    { "size_bytes", "Size", SND_BYTES, SND_FIT_FIXED },
    { "start_ns", "Start", SND_TIME, SND_FIT_FIXED },
    { "entered", "Entered", SND_TEXT, SND_FIT_CONTENT },
    { "missing", "Never came", SND_TEXT, SND_FIT_CONTENT },
};

static struct snd_cell ranks_cell(struct snd_doc *doc, const uint32_t *ranks, uint32_t count)
{
    struct sonde_buffer text = { 0 };

    if (!ranks || count == 0)
        return snd_cell_none();
    snd_ranks_text(&text, ranks, count);
    return snd_cell_string(snd_doc_take(doc, &text));
}

static void add_row(struct snd_doc *doc, const struct snd_collective_rows *rows,
                    const struct snd_collective_row *row)
{
    const struct snd_group *group = &rows->groups.groups[row->group];
    struct snd_cell        *cell = snd_table_add(&doc->rows);
    bool                    has_rate = row->transfer_ns > 0 && row->size_bytes > 0;
    double rate = has_rate ? (double)row->size_bytes * (double)row->whole / (double)row->transfer_ns
                           : 0;

    *cell++ = snd_cell_string(snd_collective_word(row->kind));
    *cell++ = snd_cell_text(group->name);
    *cell++ = ranks_cell(doc, group->ranks, group->size);
    *cell++ = snd_cell_number((int64_t)row->size_bytes);
    *cell++ = snd_cell_number((int64_t)row->count);
    *cell++ = snd_cell_number(row->duration_ns);
    *cell++ = row->whole > 0 ? snd_cell_number(row->wait_ns) : snd_cell_none();
    *cell++ = row->whole > 0 ? snd_cell_number(row->transfer_ns) : snd_cell_none();
    *cell++ = has_rate ? snd_cell_real(rate) : snd_cell_none();
    *cell++ = has_rate ? snd_cell_real(rate * snd_collective_bus_share(row->kind, group->size))
                       : snd_cell_none();
    *cell++ = row->last_count > 0 ? snd_cell_number(row->last_rank) : snd_cell_none();
    *cell++ = row->last_count > 0 ? snd_cell_number((int64_t)row->last_count) : snd_cell_none();
    *cell++ = snd_cell_number((int64_t)row->unfinished);
    *cell++ = snd_cell_number((int64_t)row->mismatched);
}

static void add_unfinished(struct snd_doc *doc, struct snd_table *table,
                           const struct snd_collective_rows *rows, const struct snd_unfinished *one)
{
    struct snd_cell *cell = snd_table_add(table);

    *cell++ = snd_cell_string(snd_collective_word(one->kind));
    *cell++ = snd_cell_text(rows->groups.groups[one->group].name);
    *cell++ = snd_cell_number(one->sequence);
    *cell++ = snd_cell_number((int64_t)one->size_bytes);
    *cell++ = snd_cell_number(one->start_ns);
    *cell++ = ranks_cell(doc, one->ranks, one->came);
    *cell++ = ranks_cell(doc, one->ranks + one->came, one->absent);
}

SND_DOC_RELEASE(free_rows, snd_collective_rows_free)

SND_VIEW_BUILD(snd_view_collectives)
{
    struct snd_collective_rows *rows = NULL;
    uint64_t                    mismatched = 0;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = snd_collective_rows_make(trace, &rows, err);
    snd_doc_keep(doc, rows, free_rows);
    if (st != SONDE_OK)
        return st;
    struct snd_table *unfinished = snd_doc_section(doc, "unfinished", "Never completed",
                                                   unfinished_columns,
                                                   SND_COUNT_OF(unfinished_columns));
    for (uint32_t i = 0; i < rows->unfinished_count; i++)
        add_unfinished(doc, unfinished, rows, &rows->unfinished[i]);
    for (uint32_t i = 0; i < rows->count; i++) {
        add_row(doc, rows, &rows->rows[i]);
        mismatched += rows->rows[i].mismatched;
    }
    doc->rows.hidden[12] = rows->unfinished_all == 0;
    doc->rows.hidden[13] = mismatched == 0;
    snd_doc_total(doc, "unfinished_count", NULL, SND_COUNT,
                  snd_cell_number((int64_t)rows->unfinished_all));
    snd_doc_total(doc, "mismatched_count", NULL, SND_COUNT, snd_cell_number((int64_t)mismatched));
    snd_clocks_note(doc);
    return SONDE_OK;
}
