/* SPDX-License-Identifier: Apache-2.0 */
/* What memory tells of a program: who holds the peak, what is left, what is allocated for nothing. */
#include <inttypes.h>
#include <string.h>

#include "base/text/plural.h"
#include "model/highlights/advisor.h"
#include "model/memory/heap_stacks.h"
#include "read/file/scale.h"

#define PEAK_BYTES (INT64_C(64) << 20)
#define HOLDER_PERCENT 50.0
#define FRAGMENTED_PERCENT 25.0
#define TEMPORARY_PERCENT 20.0
#define TEMPORARY_COUNT 10000u
#define LEAK_BYTES (INT64_C(1) << 20)
#define LEAK_BLOCKS 16u
#define LEAK_PERCENT 10.0

/* -------------------------------------------------------------------- tensors */

static void tell_holder(struct snd_advisor *advisor, const struct sonde_memory *memory,
                        uint32_t index)
{
    const struct sonde_memory_device *device = sonde_memory_device(memory, index);
    const struct sonde_memory_holder *most = NULL;

    for (size_t i = 0; i < sonde_memory_holder_count(memory); i++) {
        const struct sonde_memory_holder *holder = sonde_memory_holder(memory, i);
        if (holder->device == index && holder->peak_count > 0 &&
            (!most || holder->peak_bytes > most->peak_bytes))
            most = holder;
    }
    if (!most || device->peak_bytes < PEAK_BYTES ||
        snd_percent(most->peak_bytes, device->peak_bytes) < HOLDER_PERCENT)
        return;
    struct snd_spot spot = { .function = most->module.length ? most->module : most->name };
    char            place[SND_SPOT_TEXT];
    snd_advise(advisor, SND_ADVICE_MEMORY_PEAK, 0, "memory", &spot,
               "%s holds %.0f %% of the peak of %s's memory: %s of %s, in %" PRIu64 " block%s",
               snd_spot_short(&spot, place), snd_percent(most->peak_bytes, device->peak_bytes),
               device->type ? "the GPU" : "the CPU", snd_amount_bytes(most->peak_bytes).text,
               snd_amount_bytes(device->peak_bytes).text, most->peak_count,
               snd_plural(most->peak_count));
}

static void tell_fragments(struct snd_advisor *advisor, const struct sonde_memory_device *device)
{
    int64_t unused = snd_sub(device->reserved_at_peak_bytes, device->peak_bytes);

    if (device->reserved_at_peak_bytes < 0 || unused < PEAK_BYTES ||
        snd_percent(unused, device->peak_bytes) < FRAGMENTED_PERCENT)
        return;
    snd_advise(advisor, SND_ADVICE_FRAGMENTATION, 0, "memory", NULL,
               "At the peak torch's allocator holds %s of the GPU's memory, of which %s are in "
               "use: %s, %.0f %% more",
               snd_amount_bytes(device->reserved_at_peak_bytes).text,
               snd_amount_bytes(device->peak_bytes).text, snd_amount_bytes(unused).text,
               snd_percent(unused, device->peak_bytes));
}

enum sonde_status snd_advise_memory(struct snd_advisor *advisor, struct sonde_error *err)
{
    (void)err;
    for (size_t i = 0; i < sonde_memory_device_count(advisor->memory); i++) {
        tell_holder(advisor, advisor->memory, (uint32_t)i);
        tell_fragments(advisor, sonde_memory_device(advisor->memory, i));
    }
    return SONDE_OK;
}

/* ----------------------------------------------------------------------- heap */

struct sums {
    struct snd_spots peak, left, temporary;
};

/* What a module's import allocates is no fault of the line that imports it. */
static bool is_of_import(const struct snd_spot *spot)
{
    static const char module[] = "<module>";

    return spot->function.length == sizeof module - 1 &&
           memcmp(spot->function.bytes, module, sizeof module - 1) == 0;
}

static bool add_row(const struct snd_advisor *advisor, struct sums *sums, uint32_t process,
                    const struct snd_heap_row *row)
{
    struct snd_spot             spot;
    const struct snd_heap_sums *own = &row->sums;

    if (!snd_spot_of_stack(advisor, process, row->stack, &spot))
        return true;
    return snd_spots_add(&sums->peak, &spot, (int64_t)own->peak_bytes, own->peak_blocks) &&
           snd_spots_add(&sums->temporary, &spot, (int64_t)own->temporary, own->allocations) &&
           (is_of_import(&spot) ||
            snd_spots_add(&sums->left, &spot, (int64_t)own->live_bytes, own->live_blocks));
}

static void tell_heap(struct snd_advisor *advisor, const struct snd_heap *heap,
                      const struct sums *sums)
{
    const struct snd_spot_sum *peak = snd_spots_most(&sums->peak);
    const struct snd_spot_sum *left = snd_spots_most(&sums->left);
    const struct snd_spot_sum *temporary = snd_spots_most(&sums->temporary);
    int64_t                    peak_bytes = (int64_t)heap->sums.peak_bytes;
    char                       place[SND_SPOT_TEXT];

    if (peak && peak_bytes >= PEAK_BYTES && snd_percent(peak->ns, peak_bytes) >= HOLDER_PERCENT)
        snd_advise(advisor, SND_ADVICE_MEMORY_PEAK, 0, "flame/heap-peak", &peak->at,
                   "%s allocated %.0f %% of the heap's peak: %s of %s, in %" PRIu64 " block%s",
                   snd_spot_short(&peak->at, place), snd_percent(peak->ns, peak_bytes),
                   snd_amount_bytes(peak->ns).text, snd_amount_bytes(peak_bytes).text, peak->count,
                   snd_plural(peak->count));
    if (left && left->ns >= LEAK_BYTES && left->count >= LEAK_BLOCKS &&
        snd_percent(left->ns, peak_bytes) >= LEAK_PERCENT)
        snd_advise(advisor, SND_ADVICE_LEAK, 0, "flame/heap-left", &left->at,
                   "%s in %" PRIu64 " blocks that were allocated at %s are not freed at the end: "
                   "%.0f %% of the heap's peak",
                   snd_amount_bytes(left->ns).text, left->count, snd_spot_short(&left->at, place),
                   snd_percent(left->ns, peak_bytes));
    if (temporary && heap->sums.temporary >= TEMPORARY_COUNT &&
        snd_percent((int64_t)heap->sums.temporary, (int64_t)heap->sums.allocations) >=
            TEMPORARY_PERCENT)
        snd_advise(advisor, SND_ADVICE_TEMPORARY, 0, "table/heap", &temporary->at,
                   "%.0f %% of %" PRIu64 " allocations are freed by the next call; most of them, "
                   "%" PRId64 ", at %s",
                   snd_percent((int64_t)heap->sums.temporary, (int64_t)heap->sums.allocations),
                   heap->sums.allocations, temporary->ns, snd_spot_short(&temporary->at, place));
}

enum sonde_status snd_advise_heap(struct snd_advisor *advisor, struct sonde_error *err)
{
    struct snd_heaps      *heaps;
    const struct snd_heap *heap;
    bool                   added = true;
    enum sonde_status      st = snd_heaps_new(advisor->trace, false, &heaps, err);

    if (st != SONDE_OK)
        return st;
    for (uint32_t i = 0; added && (heap = snd_heaps_heap(heaps, i)) != NULL; i++) {
        struct sums sums = { 0 };
        for (uint32_t k = 0; added && !heap->is_mapped && k < heap->count; k++)
            added = add_row(advisor, &sums, heap->process, snd_heaps_row(heaps, heap->first + k));
        if (added && !heap->is_mapped)
            tell_heap(advisor, heap, &sums);
        snd_spots_release(&sums.peak);
        snd_spots_release(&sums.left);
        snd_spots_release(&sums.temporary);
    }
    snd_heaps_free(heaps);
    return added ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
}
