/* SPDX-License-Identifier: Apache-2.0 */
/* The heap-moments view: the heap over time. `sonde report --view heap --at` has who held it at one of them. */
#include "model/memory/heap_stacks.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "memory", "Memory", SND_TEXT, SND_FIT_CONTENT },
    { "time_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "since_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "held_bytes", "Held", SND_BYTES, SND_FIT_FIXED },
    { "held_error", NULL, SND_BYTES, SND_FIT_FIXED },
    { "highest_bytes", "Most Since", SND_BYTES, SND_FIT_FIXED },
};

static void add_row(struct snd_doc *doc, const struct snd_heap *heap,
                    const struct snd_heap_moment *moment)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_number(sonde_trace_process(doc->trace, heap->process)->pid);
    *cell++ = snd_cell_string(heap->is_mapped ? "mapped" : "malloc");
    *cell++ = snd_cell_number(moment->at_ns);
    *cell++ = snd_cell_number(moment->since_ns);
    *cell++ = snd_cell_number((int64_t)moment->bytes);
    *cell++ = heap->period ? snd_cell_number((int64_t)(moment->error + 0.5)) : snd_cell_none();
    *cell++ = snd_cell_number((int64_t)moment->highest);
}

SND_VIEW_BUILD(snd_view_heap_moments)
{
    struct snd_heaps      *heaps = NULL;
    const struct snd_heap *heap;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = snd_heaps_new(trace, false, &heaps, err);
    for (uint32_t i = 0; st == SONDE_OK && (heap = snd_heaps_heap(heaps, i)); i++)
        for (uint32_t n = 0; n < heap->history.moment_count; n++)
            add_row(doc, heap, &heap->history.moments[n]);
    snd_heaps_free(heaps);
    return st;
}
