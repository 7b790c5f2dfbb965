/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/average_gpu.c - rows of what GPUs did: kernels, copies, fills; of a person's ranges as streams
 * saw them; and of the host's time that went into profiling them. Declared in averages.h.
 */
#include "model/ops/averages.h"

/* `serial`: which of two that begin and end together comes first. */
static void note_first(struct snd_average_row *row, int64_t start_ns, int64_t end_ns,
                       uint64_t serial)
{
    if (start_ns > row->first_ns || (start_ns == row->first_ns && end_ns <= row->first_end_ns))
        return;
    row->first_ns = start_ns;
    row->first_end_ns = end_ns;
    row->first_thread = UINT32_MAX; /* after the host's */
    row->first_serial = serial;
}

static bool count_work(struct sonde_averages *a, struct snd_average_row *row, int64_t start_ns,
                       int64_t end_ns, uint64_t serial)
{
    int64_t ns = snd_sub(end_ns, start_ns);

    if (!row)
        return false;
    row->count++;
    note_first(row, start_ns, end_ns, serial);
    return snd_average_add_more(a, row,
                                &(struct snd_average_more){ .device_ns = ns,
                                                            .self_device_ns = ns });
}

static bool add_works(struct sonde_averages *a)
{
    const struct snd_devices *d = a->gpu.devices;
    bool                      good = true;

    for (uint32_t i = 0; i < d->count && good; i++) {
        const struct snd_device_item *item = &d->items[i];
        snd_devices_pass(d, i, &a->gpu.pages);
        if (!snd_work_counts(snd_device_work(a->trace, item)))
            continue;
        good = count_work(a,
                          snd_average_find_gpu_row(a, item->process, a->gpu.launches[i].thread,
                                                   snd_device_name(a->trace, item), false),
                          item->start_ns, snd_add(item->start_ns, item->duration_ns), 1);
        a->totals.device_ns = snd_add(a->totals.device_ns, item->duration_ns);
    }
    return good;
}

static bool add_annotations(struct sonde_averages *a)
{
    bool good = true;

    for (uint32_t i = 0; i < a->gpu.annotation_count && good; i++) {
        const struct snd_annotation *n = &a->gpu.annotations[i];
        uint32_t                     name = snd_average_canonical(a, n->name);
        good = count_work(a, snd_average_find_gpu_row(a, n->process, n->thread, name, true),
                          n->start_ns, n->end_ns, 0);
    }
    return good;
}

static bool add_overhead(struct sonde_averages *a)
{
    for (uint32_t i = 0; i < a->gpu.overhead_count; i++) {
        const struct snd_overhead *o = &a->gpu.overheads[i];
        const struct snd_lane     *lane = &a->assembly->lanes[o->thread];
        const struct snd_range     r = { .start_ns = o->start_ns,
                                         .total_ns = snd_sub(o->end_ns, o->start_ns),
                                         .child_ns = o->inside_ns,
                                         .name = o->name,
                                         .serial = UINT64_MAX };
        snd_average_count(a, lane, &r, !o->claimed);
    }
    return true;
}

bool snd_average_add_gpu(struct sonde_averages *a)
{
    return !a->gpu.failed && add_works(a) && add_annotations(a) && add_overhead(a) &&
           !a->assembly->out_of_memory;
}
