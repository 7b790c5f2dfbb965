/* SPDX-License-Identifier: Apache-2.0 */
/* The range-counters view: one row per range name, with what its thread's counters rose by in it. */
#include <stdlib.h>
#include <string.h>

#include "model/counters/range_counters.h"
#include "view/counters/counter_columns.h"

static const struct snd_column fixed[] = {
    { "name", "Name", SND_TEXT, SND_FIT_NAME },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
};

struct page {
    struct snd_range_counts counts;
    struct snd_column       columns[SND_COUNT_OF(fixed) + SND_COUNTER_COLUMNS];
};

static void free_page(void *object)
{
    struct page *page = object;

    snd_range_counts_release(&page->counts);
    free(page);
}

SND_VIEW_BUILD(snd_view_range_counters)
{
    struct page *page = calloc(1, sizeof *page);

    (void)options;
    if (!page)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the counters of ranges");
    snd_doc_keep(doc, page, free_page);
    bool              there = snd_range_counts_there(trace);
    enum sonde_status status = there ? snd_range_counts_make(trace, &page->counts, err) : SONDE_OK;
    if (status != SONDE_OK)
        return status;
    memcpy(page->columns, fixed, sizeof fixed);
    size_t more = snd_counter_columns(doc, &page->counts.names,
                                      page->columns + SND_COUNT_OF(fixed));
    snd_table_init(&doc->rows, page->columns, SND_COUNT_OF(fixed) + more);
    for (uint32_t i = 0; i < page->counts.count; i++) {
        const struct snd_range_counts_row *row = &page->counts.rows[i];
        struct snd_cell                   *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row->name);
        *cell++ = snd_cell_number((int64_t)row->count);
        *cell++ = snd_cell_number(row->total_ns);
        *cell++ = snd_cell_number(row->self_ns);
        snd_counter_cells(cell, page->counts.names.count, row->total, row->self);
    }
    return SONDE_OK;
}
