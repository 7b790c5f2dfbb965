/* SPDX-License-Identifier: Apache-2.0 */
/* The heap-functions view: who allocates, by function and line. */
#include "model/memory/heap_functions.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "peak_bytes", "Peak", SND_BYTES, SND_FIT_FIXED },
    { "total_peak_bytes", "Total Peak", SND_BYTES, SND_FIT_FIXED },
    { "bytes", "Bytes", SND_BYTES, SND_FIT_FIXED },
    { "total_bytes", "Total Bytes", SND_BYTES, SND_FIT_FIXED },
    { "allocations", "Allocations", SND_COUNT, SND_FIT_FIXED },
    { "total_allocations", NULL, SND_COUNT, SND_FIT_FIXED },
    { "temporary", "Temporary", SND_COUNT, SND_FIT_FIXED },
    { "total_temporary", "Total Temp.", SND_COUNT, SND_FIT_FIXED },
    { "leaked_bytes", "Leaked", SND_BYTES, SND_FIT_FIXED },
    { "total_leaked_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "memory", "Memory", SND_TEXT, SND_FIT_CONTENT },
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
};

static void add_row(struct snd_doc *doc, const struct snd_heaps *heaps,
                    const struct snd_heap_function *row)
{
    const struct snd_heap *heap = snd_heaps_heap(heaps, row->heap);
    struct snd_cell       *cell = snd_table_add(&doc->rows);
    bool                   is_sampled = heap->period != 0;

    *cell++ = snd_cell_text(row->frame.function);
    *cell++ = snd_cell_text(row->frame.file);
    *cell++ = row->frame.line ? snd_cell_number(row->frame.line) : snd_cell_none();
    *cell++ = snd_cell_number((int64_t)row->self.peak_bytes);
    *cell++ = snd_cell_number((int64_t)row->total.peak_bytes);
    *cell++ = snd_cell_number((int64_t)row->self.bytes);
    *cell++ = snd_cell_number((int64_t)row->total.bytes);
    *cell++ = snd_cell_number((int64_t)row->self.allocations);
    *cell++ = snd_cell_number((int64_t)row->total.allocations);
    /* Of samples nobody knows what came next. */
    *cell++ = is_sampled ? snd_cell_none() : snd_cell_number((int64_t)row->self.temporary);
    *cell++ = is_sampled ? snd_cell_none() : snd_cell_number((int64_t)row->total.temporary);
    *cell++ = snd_cell_number((int64_t)row->self.live_bytes);
    *cell++ = snd_cell_number((int64_t)row->total.live_bytes);
    *cell++ = snd_cell_string(heap->is_mapped ? "mapped" : "malloc");
    *cell++ = snd_cell_number(sonde_trace_process(doc->trace, heap->process)->pid);
}

SND_VIEW_BUILD(snd_view_heap_functions)
{
    struct snd_heaps         *heaps = NULL;
    struct snd_heap_functions functions = { 0 };

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = snd_heaps_new(trace, false, &heaps, err);
    if (st == SONDE_OK)
        st = snd_heap_functions_new(trace, heaps, &functions, err);
    for (uint32_t i = 0; st == SONDE_OK && i < functions.count; i++)
        add_row(doc, heaps, &functions.rows[i]);
    snd_heap_functions_release(&functions);
    snd_heaps_free(heaps);
    return st;
}
