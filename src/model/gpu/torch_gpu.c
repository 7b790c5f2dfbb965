/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/torch_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "format/cudacalls.h"
#include "model/ranges/torch_rules.h"

/* By API and CUPTI's number. */
static const bool has_arrow[2][SND_CUDA_CALLS] = {
#define SND_CUDA_CALL(api, number, name, recorded, arrow) \
    [SND_CUDA_##api][number] = SND_CUDA_##arrow,
#include "format/cudacalls.def"
#undef SND_CUDA_CALL
};

bool sonde_call_asks(uint32_t function)
{
    uint32_t number = function & ~SND_OF_DRIVER;

    return number < SND_CUDA_CALLS && has_arrow[(function & SND_OF_DRIVER) != 0][number];
}

/* ------------------------------------------------------------------- overhead */

/* The thread of each process that torch counts as its first. */
static uint32_t *find_first_threads(const struct sonde_trace *trace)
{
    uint32_t *numbers = snd_torch_threads(trace);
    uint32_t *first = malloc(((size_t)trace->process_count + 1) * sizeof *first);

    for (uint32_t i = 0; first && i < trace->process_count; i++)
        first[i] = SND_NO_LAUNCH;
    for (uint32_t i = 0; first && numbers && i < trace->thread_count; i++) {
        uint32_t *of = &first[trace->threads[i].shown.process];
        if (*of == SND_NO_LAUNCH || (numbers[i] == 1 && numbers[*of] != 1))
            *of = i;
    }
    if (!numbers) {
        free(first);
        first = NULL;
    }
    free(numbers);
    return first;
}

static bool collect_overhead(struct snd_torch_gpu *gpu)
{
    const struct snd_devices *d = gpu->devices;
    uint32_t                 *first = find_first_threads(gpu->trace), *numbers = NULL;
    uint32_t                  count = 0, room = 0;
    bool                      good = first != NULL;

    for (uint32_t i = 0; good && i < d->count; i++) {
        const struct snd_device_item *item = &d->items[i];
        snd_devices_pass(d, i, NULL);
        if (snd_device_work(gpu->trace, item)->kind != SND_WORK_OVERHEAD ||
            first[item->process] == SND_NO_LAUNCH)
            continue;
        good = snd_grow(&numbers, &room, count, sizeof *numbers);
        if (good)
            numbers[count++] = i;
    }
    snd_devices_order(d, numbers, count);
    for (uint32_t i = 0; good && i < count; i++) {
        const struct snd_device_item *item = &d->items[numbers[i]];
        good = snd_grow(&gpu->overheads, &gpu->overhead_room, gpu->overhead_count,
                        sizeof *gpu->overheads);
        if (good)
            gpu->overheads[gpu->overhead_count++] =
                (struct snd_overhead){ .start_ns = item->start_ns,
                                       .end_ns = snd_add(item->start_ns, item->duration_ns),
                                       .process = item->process,
                                       .thread = first[item->process],
                                       .name = snd_device_name(gpu->trace, item),
                                       .owner = SND_NO_LAUNCH };
    }
    free(numbers);
    free(first);
    return good;
}

/* The first of the process's that begins at `ns` or later. */
static uint32_t find_overhead(const struct snd_torch_gpu *gpu, uint32_t process, int64_t ns)
{
    uint32_t low = 0, high = gpu->overhead_count;

    while (low < high) {
        uint32_t                   middle = low + (high - low) / 2;
        const struct snd_overhead *o = &gpu->overheads[middle];
        if (o->process < process || (o->process == process && o->start_ns < ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool lies_in(const struct snd_overhead *o, int64_t start_ns, int64_t end_ns)
{
    return o->start_ns >= start_ns && o->end_ns <= end_ns;
}

/*
 * A range inside overhead is the overhead's child, unless the range's parent is inside it as well.
 */
static void note_inside(struct snd_torch_gpu *gpu, const struct snd_lane *lane,
                        const struct snd_range *r, const struct snd_open_range *parent)
{
    uint32_t i = find_overhead(gpu, lane->process, r->start_ns + 1);
    int64_t  end_ns = snd_add(r->start_ns, r->total_ns);

    if (i == 0)
        return;
    struct snd_overhead *o = &gpu->overheads[i - 1];
    if (o->thread == lane->thread && !o->claimed && o->start_ns <= r->start_ns &&
        end_ns <= o->end_ns && !lies_in(o, r->start_ns, end_ns) &&
        !(parent && parent->range.start_ns >= o->start_ns))
        o->inside_ns = snd_add(o->inside_ns, r->total_ns);
}

/* Ranges close from the inside out, so the first that it fits in is its parent. */
static bool claim_overhead(struct snd_torch_gpu *gpu, const struct snd_lane *lane,
                           struct snd_range *r)
{
    int64_t end_ns = snd_add(r->start_ns, r->total_ns);
    bool    any = false;

    for (uint32_t i = find_overhead(gpu, lane->process, r->start_ns);
         i < gpu->overhead_count && gpu->overheads[i].process == lane->process &&
         gpu->overheads[i].start_ns <= end_ns;
         i++) {
        struct snd_overhead *o = &gpu->overheads[i];
        if (o->claimed || o->thread != lane->thread || !lies_in(o, r->start_ns, end_ns))
            continue;
        o->claimed = any = true;
        o->owner = r->node;
        r->child_ns = snd_add(r->child_ns, snd_sub(snd_sub(o->end_ns, o->start_ns), o->inside_ns));
    }
    return any;
}

/* ------------------------------------------------------------------- launches */

/* Outward from the call: what torch gives its work to; and the person's range that it lies in. */
static void find_owners(const struct snd_lane *lane, struct snd_open_range **owner,
                        const struct snd_open_range **annotated)
{
    *owner = NULL;
    *annotated = NULL;
    for (uint32_t i = lane->depth; i-- > 0 && !(*owner && *annotated);) {
        struct snd_open_range  *open = &lane->open[i];
        const struct snd_range *r = &open->range;
        if (r->hidden || r->api != 0 || r->scope == SONDE_SCOPE_PYTHON)
            continue;
        if (r->scope == SONDE_SCOPE_USER) {
            if (!*annotated)
                *annotated = open;
        } else if (!*owner && !r->is_async) {
            *owner = open;
        }
    }
}

const struct snd_open_range *snd_torchgpu_owner(const struct snd_lane *lane)
{
    struct snd_open_range       *owner;
    const struct snd_open_range *annotated;

    find_owners(lane, &owner, &annotated);
    return owner;
}

static void annotate(struct snd_torch_gpu *gpu, const struct snd_lane *lane,
                     const struct snd_range *r, const struct snd_device_item *item)
{
    struct snd_key key = { lane->thread, r->serial, item->queue };
    int64_t        end_ns = snd_add(item->start_ns, item->duration_ns);
    uint32_t       at;

    if (!snd_map_get(&gpu->by_range, key, &at)) {
        at = gpu->annotation_count;
        if (!snd_grow(&gpu->annotations, &gpu->annotation_room, at, sizeof *gpu->annotations) ||
            !snd_map_put(&gpu->by_range, key, at)) {
            gpu->failed = true;
            return;
        }
        gpu->annotations[gpu->annotation_count++] =
            (struct snd_annotation){ .start_ns = item->start_ns,
                                     .end_ns = end_ns,
                                     .process = lane->process,
                                     .thread = lane->thread,
                                     .queue = item->queue,
                                     .name = r->name,
                                     .node = r->node };
    }
    struct snd_annotation *a = &gpu->annotations[at];
    a->start_ns = item->start_ns < a->start_ns ? item->start_ns : a->start_ns;
    a->end_ns = end_ns > a->end_ns ? end_ns : a->end_ns;
}

void snd_torchgpu_call(struct snd_torch_gpu *gpu, struct snd_lane *lane,
                       const struct snd_open_range *call)
{
    struct snd_open_range       *owner;
    const struct snd_open_range *annotated;
    uint32_t                     count;

    if (!gpu->devices)
        return;
    const struct snd_device_item *items =
        snd_devices_of(gpu->devices, lane->process, SND_API_CORRELATION(call->range.api), &count);
    if (count == 0)
        return;
    find_owners(lane, &owner, &annotated);
    if (__atomic_load_n(&gpu->devices->look->passed, __ATOMIC_RELAXED) ==
        0) /* theirs have just been let go */
        snd_paged_let_go(&gpu->pages);
    for (uint32_t i = 0; i < count; i++) {
        if (!snd_work_counts(snd_device_work(gpu->trace, &items[i])))
            continue;
        gpu->launches[items + i - gpu->devices->items] =
            (struct snd_torch_launch){ lane->thread, owner ? owner->range.node : SND_NO_LAUNCH };
        if (owner)
            owner->range.launched_ns = snd_add(owner->range.launched_ns, items[i].duration_ns);
        if (annotated)
            annotate(gpu, lane, &annotated->range, &items[i]);
    }
}

bool snd_torchgpu_close(struct snd_torch_gpu *gpu, const struct snd_lane *lane,
                        struct snd_open_range *range, struct snd_open_range *parent)
{
    struct snd_range *r = &range->range;

    if (!gpu->devices || r->is_async)
        return false;
    if (parent)
        parent->range.launched_inside_ns = snd_add(parent->range.launched_inside_ns,
                                                   snd_add(r->launched_ns, r->launched_inside_ns));
    if (gpu->overhead_count == 0)
        return false;
    bool any = claim_overhead(gpu, lane, r);
    note_inside(gpu, lane, r, parent);
    return any;
}

/* ----------------------------------------------------------------------- life */

static bool make_launches(struct snd_torch_gpu *gpu)
{
    if (!snd_paged_grow(&gpu->pages, ((size_t)gpu->devices->count + 1) * sizeof *gpu->launches))
        return false;
    gpu->launches = gpu->pages.bytes;
    for (uint32_t i = 0; i < gpu->devices->count; i++) {
        snd_devices_pass(gpu->devices, i, &gpu->pages);
        gpu->launches[i] = (struct snd_torch_launch){ SND_NO_LAUNCH, SND_NO_LAUNCH };
    }
    return true;
}

enum sonde_status snd_torchgpu_begin(struct snd_torch_gpu *gpu, struct sonde_trace *trace,
                                     struct sonde_error *err)
{
    *gpu = (struct snd_torch_gpu){ .trace = trace };
    enum sonde_status status = snd_trace_devices(trace, &gpu->devices, err);
    if (status != SONDE_OK || !gpu->devices)
        return status;
    if (!make_launches(gpu) || !collect_overhead(gpu))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    return SONDE_OK;
}

void snd_torchgpu_release(struct snd_torch_gpu *gpu)
{
    snd_paged_release(&gpu->pages);
    free(gpu->annotations);
    free(gpu->overheads);
    snd_map_release(&gpu->by_range);
    *gpu = (struct snd_torch_gpu){ 0 };
}
