/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors view: what a model and its optimizer hold, tensor by tensor; pytorch_memlab's MemReporter.
 *
 * Each tensor is metadata, "tensor N": {"name": "net.fc.weight", "kind": "parameter",
 * "dtype": "float32", "shape": "[10, 4]", "device": "cpu", "bytes": N, "storage": ADDRESS,
 * "storage_bytes": N}. Tensors of one storage share it: it counts once, for the first of them.
 */
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/member.h"
#include "read/metadata.h"
#include "read/scale.h"
#include "view/view.h"

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

static const char *read_text(struct snd_doc *doc, struct sonde_text json, const char *key)
{
    struct sonde_buffer text = { 0 };
    const char         *kept = "";

    if (snd_member_text(json.bytes, json.length, key, &text))
        kept = snd_doc_format(doc, "%s", snd_buf_string(&text));
    doc->rows.failed |= text.failed;
    sonde_buffer_release(&text);
    return kept;
}

static void add_bytes(struct sums *sums, const char *kind, int64_t bytes)
{
    sums->all = snd_add(sums->all, bytes);
    for (size_t i = 0; i < SND_COUNT_OF(kinds); i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            sums->by_kind[i] = snd_add(sums->by_kind[i], bytes);
}

/* The name of the row that has this storage already; NULL: it is new. */
static const char *find_owner(struct snd_doc *doc, struct sums *sums, uint32_t process,
                              const char *device, uint64_t address)
{
    struct snd_key key = { address, snd_hash_bytes(device, strlen(device), 0).low, process };
    uint32_t       row;

    if (address == 0)
        return NULL;
    if (snd_map_get(&sums->storages, key, &row)) /* its row may be lost for want of memory */
        return row < doc->rows.row_count ? snd_table_row(&doc->rows, row)[7].text.bytes : NULL;
    sums->failed |= !snd_map_put(&sums->storages, key, (uint32_t)doc->rows.row_count);
    return NULL;
}

static void add_tensor(struct snd_doc *doc, struct sums *sums, uint32_t process,
                       struct sonde_text json)
{
    const char *kind = read_text(doc, json, "kind"), *device = read_text(doc, json, "device");

    if (!kind[0]) /* metadata of someone else's */
        return;
    int64_t          storage = snd_member_number(json.bytes, json.length, "storage_bytes", 0);
    uint64_t         address = (uint64_t)snd_member_number(json.bytes, json.length, "storage", 0);
    const char      *owner = find_owner(doc, sums, process, device, address);
    const char      *texts[] = { kind, read_text(doc, json, "dtype"), device,
                                 read_text(doc, json, "shape") };
    struct snd_cell *cell = snd_table_add(&doc->rows);
    for (size_t i = 0; i < SND_COUNT_OF(texts); i++)
        *cell++ = snd_cell_string(texts[i]);
    *cell++ = snd_cell_number(snd_member_number(json.bytes, json.length, "bytes", 0));
    *cell++ = snd_cell_number(storage);
    *cell++ = snd_cell_number(owner ? 0 : storage);
    *cell++ = snd_cell_string(read_text(doc, json, "name"));
    *cell++ = owner ? snd_cell_string(owner) : snd_cell_none();
    sums->count++;
    sums->shared |= owner != NULL;
    add_bytes(sums, kind, owner ? 0 : storage);
}

SND_VIEW_BUILD(snd_view_tensors)
{
    struct sonde_text value;
    struct sums       sums = { .count = 0 };

    (void)options;
    (void)err;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        for (uint32_t n = 0; snd_meta_next(trace, p, SND_META_TENSOR, &n, NULL, &value);)
            add_tensor(doc, &sums, p, value);
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
