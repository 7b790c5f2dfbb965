/* SPDX-License-Identifier: Apache-2.0 */
/* The range-counters view: one row per range name, with what its thread's counters rose by in it. */
#include <stdlib.h>

#include "model/rangecounts.h"
#include "view/view.h"

enum { FIXED = 4 };

struct page {
    struct snd_range_counts counts;
    struct snd_column       columns[FIXED + 2 * SND_RANGE_COUNTERS_MOST];
    char                    keys[2 * SND_RANGE_COUNTERS_MOST][64];
};

static void free_page(void *object)
{
    struct page *page = object;

    snd_range_counts_release(&page->counts);
    free(page);
}

/* "page-faults" is page_faults and self_page_faults. */
static void make_key(char key[64], const char *before, const char *name)
{
    snprintf(key, 64, "%s%s", before, name);
    for (char *at = key; *at; at++)
        *at = *at == '-' ? '_' : *at;
}

static size_t make_columns(struct snd_doc *doc, struct page *page)
{
    static const struct snd_column fixed[FIXED] = {
        { "name", "Name", SND_TEXT, SND_FIT_NAME },
        { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
        { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
        { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    };
    size_t n = 0;

    while (n < FIXED) {
        page->columns[n] = fixed[n];
        n++;
    }
    for (uint32_t i = 0; i < page->counts.counter_count; i++) {
        const struct snd_counter *counter = page->counts.counters[i];
        enum snd_kind             kind = counter->unit == SND_COUNTER_NS ? SND_TIME : SND_COUNT;
        make_key(page->keys[2 * i], "", counter->name);
        make_key(page->keys[2 * i + 1], "self_", counter->name);
        page->columns[n++] = (struct snd_column){ page->keys[2 * i], counter->name, kind,
                                                  SND_FIT_CONTENT };
        page->columns[n++] = (struct snd_column){ page->keys[2 * i + 1],
                                                  snd_doc_format(doc, "self %s", counter->name),
                                                  kind, SND_FIT_CONTENT };
    }
    return n;
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
    snd_table_init(&doc->rows, page->columns, make_columns(doc, page));
    for (uint32_t i = 0; i < page->counts.count; i++) {
        const struct snd_range_counts_row *row = &page->counts.rows[i];
        struct snd_cell                   *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row->name);
        *cell++ = snd_cell_number((int64_t)row->count);
        *cell++ = snd_cell_number(row->total_ns);
        *cell++ = snd_cell_number(row->self_ns);
        for (uint32_t k = 0; k < page->counts.counter_count; k++) {
            *cell++ = snd_cell_number((int64_t)row->total[k]);
            *cell++ = snd_cell_number((int64_t)row->self[k]);
        }
    }
    return SONDE_OK;
}
