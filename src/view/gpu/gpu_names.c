/* SPDX-License-Identifier: Apache-2.0 */
#include "view/gpu/gpu_names.h"

#include "format/fields.h"
#include "read/said/trace_facts.h"
#include "view/render/view.h"

const char *snd_gpu_name(struct snd_doc *doc, uint32_t device)
{
    static const char *const types[] = { "cpu", "cuda" };
    uint32_t                 kind = SND_DEVICE_TYPE(device), index = SND_DEVICE_INDEX(device);
    const char              *type = kind < SND_COUNT_OF(types) ? types[kind] : NULL;

    if (!type)
        type = snd_doc_format(doc, "device%u", kind);
    return index == 0xffff ? type : snd_doc_format(doc, "%s:%u", type, index);
}

struct snd_cell snd_gpu_line_cell(struct snd_doc *doc, const struct snd_launches *launches,
                                  const struct snd_where *where)
{
    struct sonde_buffer line = { 0 };

    snd_where_line(launches, where, &line);
    bool        has_none = line.length == 0;
    const char *text = snd_doc_take(doc, &line);
    return has_none ? snd_cell_none() : snd_cell_string(text);
}

void snd_hide_empty(struct snd_table *table, size_t first, size_t last)
{
    for (size_t i = first; i <= last; i++) {
        bool any = false;
        for (size_t row = 0; row < table->row_count && !any; row++)
            any = !snd_table_row(table, row)[i].none;
        table->hidden[i] = !any;
    }
}

const char *snd_gpu_empty(struct snd_doc *doc)
{
    const struct snd_fact *fact;

    for (uint32_t p = 0; p < sonde_trace_process_count(doc->trace); p++)
        for (uint32_t at = 0; (fact = snd_fact_next(doc->trace, p, SND_FACT_OF_CUDA, &at));) {
            struct sonde_text why = snd_fact_text(fact, SND_FIELD_CUDA_ABSENT);
            if (why.length > 0)
                return snd_doc_format(doc, "No work of GPUs was recorded: %s", why.bytes);
            return "The GPU was recorded, and did no work meanwhile.";
        }
    return "The trace has no work of GPUs: record it with --gpu, or ProfilerActivity.CUDA.";
}
