/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory view: each device's totals and peak, what torch's allocator holds of a GPU beside it, and
 * which ranges hold it then and at the end.
 */
#include "format/layout.h"
#include "view/gpu/gpu_names.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "peak_bytes", "At peak", SND_BYTES, SND_FIT_FIXED },
    { "peak_count", "Blocks", SND_COUNT, SND_FIT_FIXED },
    { "end_bytes", "At end", SND_BYTES, SND_FIT_FIXED },
    { "end_count", "Blocks", SND_COUNT, SND_FIT_FIXED },
    { "name", "Allocated by", SND_TEXT, SND_FIT_CONTENT },
    { "module", "Module", SND_TEXT, SND_FIT_CONTENT },
    { "stack", "Source Location", SND_LINES, SND_FIT_SOURCE },
};
enum { COLUMN_PROCESS = 1, COLUMN_MODULE = 7, COLUMN_STACK };

static const struct snd_column device_columns[] = {
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "peak_bytes", "Peak", SND_BYTES, SND_FIT_FIXED },
    { "peak_time_ns", "Peak at", SND_TIME, SND_FIT_FIXED },
    { "reserved_at_peak_bytes", "Reserved then", SND_BYTES, SND_FIT_FIXED },
    { "fragmentation_bytes", "Fragmented", SND_BYTES, SND_FIT_FIXED },
    { "reserved_peak_bytes", "Reserved peak", SND_BYTES, SND_FIT_FIXED },
    { "before_bytes", "Before", SND_BYTES, SND_FIT_FIXED },
    { "end_bytes", "At end", SND_BYTES, SND_FIT_FIXED },
    { "end_count", NULL, SND_COUNT, SND_FIT_FIXED },
    { "allocated_bytes", "Allocated", SND_BYTES, SND_FIT_FIXED },
    { "allocs", "# of Allocs", SND_COUNT, SND_FIT_FIXED },
    { "freed_bytes", "Freed", SND_BYTES, SND_FIT_FIXED },
    { "frees", "# of Frees", SND_COUNT, SND_FIT_FIXED },
    { "unmatched_frees", "Unmatched", SND_COUNT, SND_FIT_FIXED },
    { "unmatched_free_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
};
enum {
    DEVICE_PROCESS = 1,
    DEVICE_RESERVED = 4,
    DEVICE_UNUSED,
    DEVICE_RESERVED_PEAK,
    DEVICE_BEFORE
};

static const char *device_name(struct snd_doc *doc, const struct sonde_memory_device *device)
{
    uint32_t index = device->index == SONDE_NONE ? 0xffff : device->index;

    return snd_gpu_name(doc, SND_DEVICE(device->type, index));
}

static struct snd_cell process_cell(const struct snd_doc             *doc,
                                    const struct sonde_memory_device *device)
{
    return device->process == SONDE_NONE
               ? snd_cell_none()
               : snd_cell_number(sonde_trace_process(doc->trace, device->process)->pid);
}

/* What the allocator said, if it did. */
static struct snd_cell known_cell(int64_t bytes)
{
    return bytes < 0 ? snd_cell_none() : snd_cell_number(bytes);
}

static void add_device(struct snd_doc *doc, struct snd_table *table,
                       const struct sonde_memory_device *device)
{
    struct snd_cell *cell = snd_table_add(table);
    int64_t          reserved = device->reserved_at_peak_bytes;

    *cell++ = snd_cell_string(device_name(doc, device));
    *cell++ = process_cell(doc, device);
    *cell++ = snd_cell_number(device->peak_bytes);
    *cell++ = snd_cell_number(device->peak_time_ns);
    *cell++ = known_cell(reserved);
    *cell++ = reserved < 0 ? snd_cell_none() : snd_cell_number(reserved - device->peak_bytes);
    *cell++ = known_cell(device->reserved_peak_bytes);
    *cell++ = known_cell(device->before_bytes);
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
    const struct sonde_memory_device *device = sonde_memory_device(memory, holder->device);
    struct snd_cell                  *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_string(device_name(doc, device));
    *cell++ = process_cell(doc, device);
    *cell++ = snd_cell_number(holder->peak_bytes);
    *cell++ = snd_cell_number((int64_t)holder->peak_count);
    *cell++ = snd_cell_number(holder->end_bytes);
    *cell++ = snd_cell_number((int64_t)holder->end_count);
    *cell++ = snd_cell_text(holder->name);
    *cell++ = snd_cell_text(holder->module);
    *cell++ = snd_cell_text(holder->stack);
}

/* Columns that only a GPU's allocator fills, or only more than one process. */
static void leave_out(struct snd_doc *doc, struct snd_table *devices,
                      const struct sonde_memory *memory, unsigned groups)
{
    bool reserved = false, before = false;

    for (size_t i = 0; i < sonde_memory_device_count(memory); i++) {
        reserved |= sonde_memory_device(memory, i)->reserved_peak_bytes >= 0;
        before |= sonde_memory_device(memory, i)->before_bytes >= 0;
    }
    for (size_t i = DEVICE_RESERVED; !reserved && i <= DEVICE_RESERVED_PEAK; i++)
        snd_table_leave_out(devices, i);
    if (!before)
        snd_table_leave_out(devices, DEVICE_BEFORE);
    if (sonde_trace_process_count(doc->trace) < 2) {
        snd_table_leave_out(devices, DEVICE_PROCESS);
        snd_table_leave_out(&doc->rows, COLUMN_PROCESS);
    }
    if (!(groups & SONDE_GROUP_MODULE))
        snd_table_leave_out(&doc->rows, COLUMN_MODULE);
    if (!(groups & SONDE_GROUP_STACK))
        snd_table_leave_out(&doc->rows, COLUMN_STACK);
}

SND_DOC_RELEASE(free_memory, sonde_memory_free)

static const struct snd_column_title page_titles[] = {
    { "peak_count", "Blocks at peak" },
    { "end_count", "Blocks at end" },
    { NULL, NULL },
};

SND_VIEW_BUILD(snd_view_memory)
{
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->page_titles = page_titles;
    struct snd_table    *devices = snd_doc_section(doc, "devices", NULL, device_columns,
                                                   SND_COUNT_OF(device_columns));
    struct sonde_memory *memory = NULL;
    enum sonde_status    st = sonde_memory_new_by(trace, options->groups, options->stack_depth,
                                                  &memory, err);
    snd_doc_keep(doc, memory, free_memory);
    if (st != SONDE_OK)
        return st;

    for (size_t i = 0; i < sonde_memory_device_count(memory); i++)
        add_device(doc, devices, sonde_memory_device(memory, i));
    for (size_t i = 0; i < sonde_memory_holder_count(memory); i++)
        add_holder(doc, memory, sonde_memory_holder(memory, i));
    leave_out(doc, devices, memory, options->groups);
    doc->rows_title = devices->row_count ? "Who holds it" : NULL;
    if (devices->row_count > 0)
        doc->empty = "Nothing was held: all that was allocated was freed again.";
    return snd_table_sort(&doc->rows, "peak_bytes", err);
}
