/* SPDX-License-Identifier: Apache-2.0 */
/* The views range-counters and function-counters: what the counters of threads rose by in ranges and functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "model/counters/range_counters.h"
#include "model/counters/stack_counters.h"
#include "model/python/counted_functions.h"
#include "view/render/view.h"

/* ---------------------------------------------------------- columns of both */

#define COUNTER_COLUMNS (2 * SND_THREAD_COUNTERS_MOST)

/* "page-faults" is page_faults and self_page_faults. */
static const char *make_key(struct snd_doc *doc, const char *before, struct sonde_text name)
{
    char key[64];

    snprintf(key, sizeof key, "%s%.*s", before, (int)name.length, name.bytes);
    for (char *at = key; *at; at++)
        *at = *at == '-' || *at == ':' ? '_' : *at;
    return snd_doc_format(doc, "%s", key);
}

/* Columns of counters of threads, two for each: total and self; `doc` keeps their texts. Returns how many. */
static size_t add_columns(struct snd_doc *doc, const struct snd_counter_names *names,
                          struct snd_column *columns)
{
    static const char *const before[2][2] = { { "", "" }, { "self_", "self " } };
    size_t                   n = 0;

    for (uint32_t i = 0; i < names->count; i++) {
        struct sonde_text name = names->items[i].name;
        bool              is_time = names->items[i].known->unit == SND_COUNTER_NS;
        for (int self = 0; self < 2; self++)
            columns[n++] = (struct snd_column){ make_key(doc, before[self][0], name),
                                                snd_doc_format(doc, "%s%.*s", before[self][1],
                                                               (int)name.length, name.bytes),
                                                is_time ? SND_TIME : SND_COUNT, SND_FIT_CONTENT };
    }
    return n;
}

/* Writes the cells of a row; returns the next one. */
static struct snd_cell *add_cells(struct snd_cell *cell, uint32_t count, const uint64_t *total,
                                  const uint64_t *self)
{
    for (uint32_t i = 0; i < count; i++) {
        *cell++ = snd_cell_number((int64_t)total[i]);
        *cell++ = snd_cell_number((int64_t)self[i]);
    }
    return cell;
}

/* ------------------------------------------------------------------- ranges */

static const struct snd_column range_columns[] = {
    { "name", "Name", SND_TEXT, SND_FIT_NAME },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
};

struct range_page {
    struct snd_range_counts counts;
    struct snd_column       columns[SND_COUNT_OF(range_columns) + COUNTER_COLUMNS];
};

static void free_range_page(void *object)
{
    struct range_page *page = object;

    snd_range_counts_release(&page->counts);
    free(page);
}

SND_VIEW_BUILD(snd_view_range_counters)
{
    struct range_page *page = calloc(1, sizeof *page);

    (void)options;
    if (!page)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the counters of ranges");
    snd_doc_keep(doc, page, free_range_page);
    bool              there = snd_range_counts_there(trace);
    enum sonde_status status = there ? snd_range_counts_make(trace, &page->counts, err) : SONDE_OK;
    if (status != SONDE_OK)
        return status;
    memcpy(page->columns, range_columns, sizeof range_columns);
    size_t more = add_columns(doc, &page->counts.names,
                              page->columns + SND_COUNT_OF(range_columns));
    snd_table_init(&doc->rows, page->columns, SND_COUNT_OF(range_columns) + more);
    for (uint32_t i = 0; i < page->counts.count; i++) {
        const struct snd_range_counts_row *row = &page->counts.rows[i];
        struct snd_cell                   *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row->name);
        *cell++ = snd_cell_number((int64_t)row->count);
        *cell++ = snd_cell_number(row->total_ns);
        *cell++ = snd_cell_number(row->self_ns);
        add_cells(cell, page->counts.names.count, row->total, row->self);
    }
    return SONDE_OK;
}

/* ---------------------------------------------------------------- functions */

static const struct snd_column function_columns[] = {
    { "function", "Function", SND_TEXT, SND_FIT_NAME },
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "calls", "Calls", SND_COUNT, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
};

struct function_page {
    struct sonde_functions      *functions;
    struct snd_counted_functions native;
    uint32_t                    *order; /* the longest first */
    struct snd_column            columns[SND_COUNT_OF(function_columns) + COUNTER_COLUMNS];
};

static void free_function_page(void *object)
{
    struct function_page *page = object;

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

static bool sort_rows(struct function_page *page)
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

static void add_rows(struct snd_doc *doc, const struct function_page *page)
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
        add_cells(cell, f->counters.count, counts->total, counts->self);
    }
}

/* Samples of counters have neither the number of calls nor their time. */
static void add_native(struct snd_doc *doc, const struct function_page *page)
{
    for (uint32_t i = 0; i < page->native.count; i++) {
        const struct snd_counted_function *row = &page->native.rows[i];
        struct snd_cell                   *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row->name);
        *cell++ = snd_cell_text(row->file);
        *cell++ = snd_cell_number(row->line);
        for (int none = 0; none < 3; none++)
            *cell++ = snd_cell_none();
        add_cells(cell, page->functions->counters.count, row->total, row->self);
    }
}

SND_VIEW_BUILD(snd_view_function_counters)
{
    struct function_page *page = calloc(1, sizeof *page);

    (void)options;
    if (!page)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the counters of functions");
    snd_doc_keep(doc, page, free_function_page);
    enum sonde_status status = sonde_functions_new(trace, &page->functions, err);
    if (status == SONDE_OK)
        status = snd_counted_functions_fill(&page->native, trace, &page->functions->counters, err);
    if (status != SONDE_OK)
        return status;
    if (!sort_rows(page))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the counters of functions");
    memcpy(page->columns, function_columns, sizeof function_columns);
    size_t more = add_columns(doc, &page->functions->counters,
                              page->columns + SND_COUNT_OF(function_columns));
    snd_table_init(&doc->rows, page->columns, SND_COUNT_OF(function_columns) + more);
    add_rows(doc, page);
    add_native(doc, page);
    return SONDE_OK;
}
