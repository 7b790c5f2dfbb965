/* SPDX-License-Identifier: Apache-2.0 */
/* The memory view: each device's totals and peak, and which ranges hold it then and at the end. */
#include "view/view.h"

static const struct snd_column columns[] = {
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "peak_bytes", "At peak", SND_BYTES, SND_FIT_FIXED },
    { "peak_count", "Blocks", SND_COUNT, SND_FIT_FIXED },
    { "end_bytes", "At end", SND_BYTES, SND_FIT_FIXED },
    { "end_count", "Blocks", SND_COUNT, SND_FIT_FIXED },
    { "name", "Taken by", SND_TEXT, SND_FIT_CONTENT },
};

static const struct snd_column device_columns[] = {
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "peak_bytes", "Peak", SND_BYTES, SND_FIT_FIXED },
    { "peak_time_ns", "Peak at", SND_TIME, SND_FIT_FIXED },
    { "end_bytes", "At end", SND_BYTES, SND_FIT_FIXED },
    { "end_count", NULL, SND_COUNT, SND_FIT_FIXED },
    { "allocated_bytes", "Taken", SND_BYTES, SND_FIT_FIXED },
    { "allocs", "# of Allocs", SND_COUNT, SND_FIT_FIXED },
    { "freed_bytes", "Given back", SND_BYTES, SND_FIT_FIXED },
    { "frees", "# of Frees", SND_COUNT, SND_FIT_FIXED },
    { "unmatched_frees", "Unmatched", SND_COUNT, SND_FIT_FIXED },
    { "unmatched_free_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
};

static const char *device_name(struct snd_doc *doc, const struct sonde_memory_device *device)
{
    static const char *const types[] = { "cpu", "cuda" };
    const char              *type = device->type < SND_COUNT_OF(types) ? types[device->type] : NULL;

    if (!type)
        type = snd_doc_format(doc, "device%u", device->type);
    return device->index == SONDE_NONE ? type : snd_doc_format(doc, "%s:%u", type, device->index);
}

static void add_device(struct snd_doc *doc, struct snd_table *table,
                       const struct sonde_memory_device *device)
{
    struct snd_cell *cell = snd_table_add(table);

    *cell++ = snd_cell_string(device_name(doc, device));
    *cell++ = snd_cell_number(device->peak_bytes);
    *cell++ = snd_cell_number(device->peak_time_ns);
    *cell++ = snd_cell_number(device->end_bytes);
    *cell++ = snd_cell_number((int64_t)device->end_count);
    *cell++ = snd_cell_number((int64_t)device->allocated_bytes);
    *cell++ = snd_cell_number((int64_t)device->allocs);
    *cell++ = snd_cell_number((int64_t)device->freed_bytes);
    *cell++ = snd_cell_number((int64_t)device->frees);
    *cell++ = snd_cell_number((int64_t)device->unmatched_frees);
    *cell++ = snd_cell_number((int64_t)device->unmatched_free_bytes);
}

static void add_holder(struct snd_doc *doc, const struct sonde_memory *memory,
                       const struct sonde_memory_holder *holder)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_string(device_name(doc, sonde_memory_device(memory, holder->device)));
    *cell++ = snd_cell_number(holder->peak_bytes);
    *cell++ = snd_cell_number((int64_t)holder->peak_count);
    *cell++ = snd_cell_number(holder->end_bytes);
    *cell++ = snd_cell_number((int64_t)holder->end_count);
    *cell++ = snd_cell_text(holder->name);
}

SND_DOC_RELEASE(free_memory, sonde_memory_free)

SND_VIEW_BUILD(snd_view_memory)
{
    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct snd_table    *devices = snd_doc_section(doc, "devices", NULL, device_columns,
                                                   SND_COUNT_OF(device_columns));
    struct sonde_memory *memory = NULL;
    enum sonde_status    st = sonde_memory_new(trace, &memory, err);
    snd_doc_keep(doc, memory, free_memory);
    if (st != SONDE_OK)
        return st;

    for (size_t i = 0; i < sonde_memory_device_count(memory); i++)
        add_device(doc, devices, sonde_memory_device(memory, i));
    for (size_t i = 0; i < sonde_memory_holder_count(memory); i++)
        add_holder(doc, memory, sonde_memory_holder(memory, i));
    doc->rows_title = devices->row_count ? "Who holds it" : NULL;
    if (devices->row_count > 0)
        doc->empty = "Nothing was held: all that was allocated was freed again.";
    return snd_table_sort(&doc->rows, "peak_bytes", err);
}
