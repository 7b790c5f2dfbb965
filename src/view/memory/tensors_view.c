/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The views tensors (what a model and its optimizer hold, tensor by tensor; pytorch_memlab's MemReporter) and
 * tensor-lines (which source lines allocated what).
 *
 * Each tensor is a fact (TENSOR of format/facts.def). Tensors of one storage share it: it counts
 * once, for the first of them.
 */
#include <string.h>

#include "base/data/hash.h"
#include "base/data/map.h"
#include "read/file/scale.h"
#include "read/said/trace_facts.h"
#include "sonde/tensorlines.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "kind", "Kind", SND_TEXT, SND_FIT_CONTENT },
    { "dtype", "Type", SND_TEXT, SND_FIT_CONTENT },
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "shape", "Shape", SND_SHAPES, SND_FIT_SHAPES },
    { "size_bytes", "Size", SND_BYTES, SND_FIT_FIXED },
    { "storage_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "added_bytes", "Storage", SND_BYTES, SND_FIT_FIXED },
    { "name", "Name", SND_TEXT, SND_FIT_CONTENT },
    { "shared_with", "Shares storage of", SND_TEXT, SND_FIT_CONTENT },
};

/* What each kind adds up to, in the order in which kinds are shown. */
static const struct {
    const char *kind, *key, *title;
} kinds[] = {
    { "parameter", "parameter_bytes", "Parameters" },
    { "buffer", "buffer_bytes", "Buffers" },
    { "gradient", "gradient_bytes", "Gradients" },
    { "optimizer", "optimizer_bytes", "Optimizer state" },
    { "tensor", "other_bytes", "Other tensors" },
};

struct sums {
    int64_t        by_kind[SND_COUNT_OF(kinds)], all;
    uint64_t       count;
    struct snd_map storages; /* (address, device, process) to the row that has it */
    bool           failed, shared;
};

static void add_bytes(struct sums *sums, struct sonde_text kind, int64_t bytes)
{
    sums->all = snd_add(sums->all, bytes);
    for (size_t i = 0; i < SND_COUNT_OF(kinds); i++)
        if (snd_text_is(kind, kinds[i].kind))
            sums->by_kind[i] = snd_add(sums->by_kind[i], bytes);
}

/* The name of the row that has this storage already; NULL: it is new. */
static const char *find_owner(struct snd_doc *doc, struct sums *sums, uint32_t process,
                              struct sonde_text device, uint64_t address)
{
    struct snd_key key = { address, snd_hash_bytes(device.bytes, device.length, 0).low, process };
    uint32_t       row;

    if (address == 0)
        return NULL;
    if (snd_map_get(&sums->storages, key, &row)) /* its row may be lost if memory is out */
        return row < doc->rows.row_count ? snd_table_row(&doc->rows, row)[7].text.bytes : NULL;
    sums->failed |= !snd_map_put(&sums->storages, key, (uint32_t)doc->rows.row_count);
    return NULL;
}

static void add_tensor(struct snd_doc *doc, struct sums *sums, uint32_t process,
                       const struct snd_fact *fact)
{
    static const unsigned fields[] = { SND_FIELD_TENSOR_KIND, SND_FIELD_TENSOR_DTYPE,
                                       SND_FIELD_TENSOR_DEVICE, SND_FIELD_TENSOR_SHAPE };
    struct sonde_text     kind = snd_fact_text(fact, SND_FIELD_TENSOR_KIND);
    int64_t               storage = snd_fact_number(fact, SND_FIELD_TENSOR_STORAGE_BYTES, 0);
    uint64_t              address = (uint64_t)snd_fact_number(fact, SND_FIELD_TENSOR_STORAGE, 0);

    if (kind.length == 0) /* metadata of someone else's */
        return;
    const char *owner = find_owner(doc, sums, process, snd_fact_text(fact, SND_FIELD_TENSOR_DEVICE),
                                   address);
    struct snd_cell *cell = snd_table_add(&doc->rows);
    for (size_t i = 0; i < SND_COUNT_OF(fields); i++)
        *cell++ = snd_cell_text(snd_fact_text(fact, fields[i]));
    *cell++ = snd_cell_number(snd_fact_number(fact, SND_FIELD_TENSOR_BYTES, 0));
    *cell++ = snd_cell_number(storage);
    *cell++ = snd_cell_number(owner ? 0 : storage);
    *cell++ = snd_cell_text(snd_fact_text(fact, SND_FIELD_TENSOR_NAME));
    *cell++ = owner ? snd_cell_string(owner) : snd_cell_none();
    sums->count++;
    sums->shared |= owner != NULL;
    add_bytes(sums, kind, owner ? 0 : storage);
}

SND_VIEW_BUILD(snd_view_tensors)
{
    const struct snd_fact *fact;
    struct sums            sums = { .count = 0 };

    (void)options;
    (void)err;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        for (uint32_t at = 0; (fact = snd_fact_next(trace, p, SND_FACT_OF_TENSOR, &at));)
            add_tensor(doc, &sums, p, fact);
    snd_map_release(&sums.storages);
    doc->rows.failed |= sums.failed;
    doc->rows.hidden[SND_COUNT_OF(columns) - 1] = !sums.shared;
    snd_doc_total(doc, "tensors", "Tensors", SND_COUNT, snd_cell_number((int64_t)sums.count));
    for (size_t i = 0; i < SND_COUNT_OF(kinds); i++)
        snd_doc_total(doc, kinds[i].key, sums.by_kind[i] ? kinds[i].title : NULL, SND_BYTES,
                      snd_cell_number(sums.by_kind[i]));
    snd_doc_total(doc, "storage_bytes", "In all", SND_BYTES, snd_cell_number(sums.all));
    return SONDE_OK;
}

/* -------------------------------------------------------------------- lines */

static const struct snd_column line_columns[] = {
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
    snd_table_init(&doc->rows, line_columns, SND_COUNT_OF(line_columns));
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
