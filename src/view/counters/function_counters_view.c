/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function-counters view: one row per function. Of Python's, what its thread's counters rose by while it
 * ran; of others, the events that samples found it at.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "model/python/counted_functions.h"
#include "model/counters/stack_counters.h"
#include "view/counters/counter_columns.h"

static const struct snd_column fixed[] = {
    { "function", "Function", SND_TEXT, SND_FIT_NAME },
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "calls", "Calls", SND_COUNT, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
};

struct page {
    struct sonde_functions      *functions;
    struct snd_counted_functions native;
    uint32_t                    *order; /* the longest first */
    struct snd_column            columns[SND_COUNT_OF(fixed) + SND_COUNTER_COLUMNS];
};

static void free_page(void *object)
{
    struct page *page = object;

    sonde_functions_free(page->functions);
    snd_counted_functions_release(&page->native);
    free(page->order);
    free(page);
}

static int compare_rows(const void *x, const void *y, void *functions)
{
    const struct sonde_functions *f = functions;
    uint32_t                      i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    int64_t                       a = f->rows[i].total_ns, b = f->rows[k].total_ns;

    return SND_ORDER(SND_FALLING(a, b), SND_RISING(i, k));
}

static bool sort_rows(struct page *page)
{
    struct sonde_functions *f = page->functions;

    page->order = malloc((f->count + 1) * sizeof *page->order);
    if (!page->order)
        return false;
    for (uint32_t i = 0; i < f->count; i++)
        page->order[i] = i;
    qsort_r(page->order, f->count, sizeof *page->order, compare_rows, f);
    return true;
}

static void add_rows(struct snd_doc *doc, const struct page *page)
{
    const struct sonde_functions *f = page->functions;

    for (uint32_t i = 0; f->counts && i < f->count; i++) {
        const struct sonde_function      *row = &f->rows[page->order[i]];
        const struct snd_function_counts *counts = &f->counts[page->order[i]];
        struct snd_cell                  *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row->name);
        *cell++ = snd_cell_text(row->file);
        *cell++ = snd_cell_number(row->line);
        *cell++ = snd_cell_number((int64_t)row->calls);
        *cell++ = snd_cell_number(row->total_ns);
        *cell++ = snd_cell_number(row->self_ns);
        snd_counter_cells(cell, f->counters.count, counts->total, counts->self);
    }
}

/* Samples of counters have neither the number of calls nor their time. */
static void add_native(struct snd_doc *doc, const struct page *page)
{
    for (uint32_t i = 0; i < page->native.count; i++) {
        const struct snd_counted_function *row = &page->native.rows[i];
        struct snd_cell                   *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row->name);
        *cell++ = snd_cell_text(row->file);
        *cell++ = snd_cell_number(row->line);
        for (int none = 0; none < 3; none++)
            *cell++ = snd_cell_none();
        snd_counter_cells(cell, page->functions->counters.count, row->total, row->self);
    }
}

SND_VIEW_BUILD(snd_view_function_counters)
{
    struct page *page = calloc(1, sizeof *page);

    (void)options;
    if (!page)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the counters of functions");
    snd_doc_keep(doc, page, free_page);
    enum sonde_status status = sonde_functions_new(trace, &page->functions, err);
    if (status == SONDE_OK)
        status = snd_counted_functions_fill(&page->native, trace, &page->functions->counters, err);
    if (status != SONDE_OK)
        return status;
    if (!sort_rows(page))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the counters of functions");
    memcpy(page->columns, fixed, sizeof fixed);
    size_t more = snd_counter_columns(doc, &page->functions->counters,
                                      page->columns + SND_COUNT_OF(fixed));
    snd_table_init(&doc->rows, page->columns, SND_COUNT_OF(fixed) + more);
    add_rows(doc, page);
    add_native(doc, page);
    return SONDE_OK;
}
