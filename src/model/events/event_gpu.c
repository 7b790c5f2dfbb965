/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events/event_gpu.c - events of what GPUs did, of a person's ranges as streams saw them, and of the host's
 * time that went into profiling GPUs. Declared in event_rows.h.
 */
#include "model/events/event_rows.h"

static uint32_t canonical(const struct sonde_events *e, uint32_t name)
{
    return e->assembly.name_flags[name] & SND_NAME_STEP ? e->own[SND_OWN_STEP] : name;
}

/* A row that is complete but for what says more of it; UINT32_MAX: out of memory. */
static uint32_t add_row(struct sonde_events *e, const struct snd_row_kind *kind, uint32_t thread,
                        int64_t start_ns, int64_t end_ns)
{
    uint32_t row = snd_rows_add(&e->rows, thread, start_ns);
    uint32_t number = row != UINT32_MAX ? snd_kind_number(e, kind) : UINT32_MAX;

    if (number == UINT32_MAX)
        return UINT32_MAX;
    e->rows.kind[row] = number;
    e->rows.end_ns[row] = end_ns;
    return row;
}

static bool add_gpu(struct sonde_events *e, uint32_t row, const struct snd_row_gpu *gpu)
{
    if (row == UINT32_MAX || !snd_grow(&e->gpus, &e->gpu_room, e->gpu_count, sizeof *e->gpus))
        return false;
    e->gpus[e->gpu_count++] = *gpu;
    e->rows.extra[row] = e->gpu_count;
    return true;
}

static int32_t row_of(uint32_t node)
{
    return node != SND_NO_LAUNCH ? (int32_t)node : -1;
}

static bool add_annotation(struct sonde_events *e, const struct snd_annotation *a)
{
    const struct snd_row_kind kind = { .process = a->process,
                                       .name = a->name,
                                       .shown_name = canonical(e, a->name),
                                       .flags = SONDE_EVENT_ON_DEVICE | SONDE_EVENT_IS_USER };

    return add_gpu(e, add_row(e, &kind, a->thread, a->start_ns, a->end_ns),
                   &(struct snd_row_gpu){ .queue = a->queue, .owner = row_of(a->node) });
}

/* The thread is that of the call; without one, the first of the process. */
static uint32_t thread_of(const struct sonde_events *e, uint32_t process, uint32_t thread)
{
    for (uint32_t i = 0; thread == SND_NO_LAUNCH && i < e->trace->thread_count; i++)
        if (e->trace->threads[i].shown.process == process)
            thread = i;
    return thread != SND_NO_LAUNCH ? thread : 0;
}

static bool add_work(struct sonde_events *e, uint32_t number)
{
    const struct snd_device_item  *item = &e->gpu.devices->items[number];
    const struct snd_torch_launch *launch = &e->gpu.launches[number];
    uint32_t                       name = snd_device_name(e->gpu.trace, item);

    if (!snd_work_counts(snd_device_work(e->trace, item)) || e->trace->thread_count == 0)
        return true;
    const struct snd_row_kind kind = {
        .process = item->process, .name = name, .shown_name = name, .flags = SONDE_EVENT_ON_DEVICE
    };
    uint32_t row = add_row(e, &kind, thread_of(e, item->process, launch->thread), item->start_ns,
                           snd_add(item->start_ns, item->duration_ns));
    return add_gpu(e, row,
                   &(struct snd_row_gpu){ .item = number + 1,
                                          .queue = item->queue,
                                          .correlation = item->correlation,
                                          .owner = row_of(launch->owner) });
}

static bool add_overhead(struct sonde_events *e, const struct snd_overhead *o)
{
    const struct snd_row_kind kind = { .process = o->process,
                                       .name = o->name,
                                       .shown_name = o->name,
                                       .flags = SONDE_EVENT_IS_OVERHEAD };
    uint32_t                  row = add_row(e, &kind, o->thread, o->start_ns, o->end_ns);

    if (row == UINT32_MAX)
        return false;
    e->rows.parent[row] = row_of(o->owner);
    e->rows.self_ns[row] = snd_sub(snd_sub(o->end_ns, o->start_ns), o->inside_ns);
    return true;
}

/* Annotations first: they are listed before what begins and ends with them. */
bool snd_events_add_gpu(struct sonde_events *e)
{
    const struct snd_devices *d = e->gpu.devices;
    bool                      good = !e->gpu.failed;

    for (uint32_t i = 0; good && i < e->gpu.annotation_count; i++)
        good = add_annotation(e, &e->gpu.annotations[i]);
    for (uint32_t i = 0; good && d && i < d->count; i++)
        good = add_work(e, d->by_time[i]);
    for (uint32_t i = 0; good && i < e->gpu.overhead_count; i++)
        good = add_overhead(e, &e->gpu.overheads[i]);
    return good;
}
