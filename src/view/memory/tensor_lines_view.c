/* SPDX-License-Identifier: Apache-2.0 */
/* The tensor-lines view: tensor memory by source line; pytorch_memlab's line profiler. */
#include "read/file/scale.h"
#include "sonde/tensorlines.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "function", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "file", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "allocs", "# of Allocs", SND_COUNT, SND_FIT_FIXED },
    { "taken_bytes", "Taken", SND_BYTES, SND_FIT_FIXED },
    { "peak_bytes", "Held, most", SND_BYTES, SND_FIT_FIXED },
    { "end_bytes", "At end", SND_BYTES, SND_FIT_FIXED },
    { "active_bytes", "All, most", SND_BYTES, SND_FIT_FIXED },
    { "source", "Source", SND_TEXT, SND_FIT_CONTENT },
};

static struct snd_cell show(int64_t number, uint64_t allocs)
{
    return allocs ? snd_cell_number(number) : snd_cell_none();
}

SND_DOC_RELEASE(free_tensor_lines, sonde_tensor_lines_free)

SND_VIEW_BUILD(snd_view_tensor_lines)
{
    int64_t taken = 0;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct sonde_tensor_lines *tensor_lines = NULL;
    enum sonde_status          st = sonde_tensor_lines_new(trace, &tensor_lines, err);
    snd_doc_keep(doc, tensor_lines, free_tensor_lines);
    if (st != SONDE_OK)
        return st;
    for (size_t i = 0; i < sonde_tensor_lines_count(tensor_lines); i++) {
        const struct sonde_tensor_line *row = sonde_tensor_lines_row(tensor_lines, i);
        struct snd_cell                *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_text(row->function);
        *cell++ = snd_cell_text(row->file);
        *cell++ = snd_cell_number(row->line);
        *cell++ = show((int64_t)row->allocs, row->allocs);
        *cell++ = show(row->taken_bytes, row->allocs);
        *cell++ = show(row->peak_bytes, row->allocs);
        *cell++ = show(row->end_bytes, row->allocs);
        *cell++ = show(row->active_bytes, row->allocs);
        *cell++ = snd_cell_text(row->source);
        taken = snd_add(taken, row->taken_bytes);
    }
    snd_doc_total(doc, "taken_bytes", "Taken", SND_BYTES, snd_cell_number(taken));
    return SONDE_OK;
}
