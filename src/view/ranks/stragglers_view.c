/* SPDX-License-Identifier: Apache-2.0 */
/* The stragglers view: the ranks that the others wait for. */
#include "model/ranks/rank_times.h"
#include "view/ranks/clocks_note.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "rank", "Rank", SND_COUNT, SND_FIT_FIXED },
    { "host", "Host", SND_TEXT, SND_FIT_CONTENT },
    { "cause", "Cause", SND_TEXT, SND_FIT_CONTENT },
    { "caused_wait_ns", "Others waited", SND_TIME, SND_FIT_FIXED },
    { "caused_percent", "Of the run %", SND_SHARE, SND_FIT_FIXED },
    { "more_ns", "More than median", SND_TIME, SND_FIT_FIXED },
    { "how", "How", SND_TEXT, SND_FIT_CONTENT },
    { "chance", "By chance", SND_REAL, SND_FIT_FIXED },
    { "where", "Where", SND_TEXT, SND_FIT_CONTENT },
};

SND_DOC_RELEASE(free_times, snd_rank_times_free)

SND_VIEW_BUILD(snd_view_stragglers)
{
    struct snd_rank_times *times = NULL;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = snd_rank_times_make(trace, false, &times, err);
    snd_doc_keep(doc, times, free_times);
    for (uint32_t i = 0; st == SONDE_OK && i < times->straggler_count; i++) {
        const struct snd_straggler *one = &times->stragglers[i];
        const struct snd_rank_row  *row = &times->rows[one->row];
        struct snd_cell            *cell = snd_table_add(&doc->rows);
        *cell++ = row->rank != SONDE_NONE ? snd_cell_number(row->rank) : snd_cell_none();
        *cell++ = snd_cell_string(sonde_trace_process(trace, row->process)->host);
        *cell++ = snd_cell_string(snd_rank_cause_words[one->cause]);
        *cell++ = snd_cell_number(row->caused_ns);
        *cell++ = snd_cell_share(row->caused_ns, row->span_ns);
        *cell++ = snd_cell_number(one->more_ns);
        *cell++ = snd_cell_string(one->is_persistent ? "persistent" : "occasional");
        *cell++ = snd_cell_real(one->chance);
        *cell++ = snd_cell_text(one->where);
    }
    snd_clocks_note(doc);
    return st;
}
