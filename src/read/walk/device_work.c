/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/device_work.h"

#include <stdlib.h>

#include "base/data/sort.h"
#include "read/walk/trace_walk.h"

struct gathering {
    struct sonde_trace *trace;
    struct snd_devices *devices;
    struct snd_visitor  visitor;
    uint32_t            room;
    bool                out_of_memory;
};

static void ignore_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    (void)user, (void)thread, (void)ns, (void)name, (void)shapes;
}

static void ignore_end(void *user, uint32_t thread, int64_t ns)
{
    (void)user, (void)thread, (void)ns;
}

static void ignore_other(void *user, uint32_t thread, int64_t ns, const uint64_t *words)
{
    (void)user, (void)thread, (void)ns, (void)words;
}

/* Work without a record in the tables is damage, and left out. */
static void gather(void *user, uint32_t process, const struct snd_device_work *work)
{
    struct gathering        *g = user;
    struct snd_devices      *d = g->devices;
    const struct snd_tables *t = &g->trace->processes[process].tables;

    if (work->work >= t->work_count || t->works[work->work].kind == 0)
        return;
    if (!snd_grow(&d->items, &g->room, d->count, sizeof *d->items)) {
        g->out_of_memory = true;
        g->visitor.stop = true;
        return;
    }
    d->items[d->count++] = (struct snd_device_item){
        .start_ns = work->start_ns,
        .duration_ns = work->duration_ns,
        .node = work->node,
        .process = process,
        .work = work->work,
        .queue = work->queue < t->queue_count ? work->queue : 0,
        .correlation = work->correlation,
    };
}

static int compare_call(const struct snd_device_item *item, uint32_t process, uint32_t correlation)
{
    int order = SND_RISING(item->process, process);

    return order != 0 ? order : SND_RISING(item->correlation, correlation);
}

static int compare_time(const struct snd_device_item *x, const struct snd_device_item *y)
{
    int order = SND_RISING(x->start_ns, y->start_ns);

    if (order == 0)
        order = SND_RISING(x->queue, y->queue);
    if (order == 0)
        order = SND_RISING(x->node, y->node);
    return order != 0 ? order : SND_RISING(x->duration_ns, y->duration_ns);
}

static int compare_items(const void *a, const void *b)
{
    const struct snd_device_item *x = a, *y = b;
    int                           order = compare_call(x, y->process, y->correlation);

    return order != 0 ? order : compare_time(x, y);
}

static int compare_numbers(const void *a, const void *b, void *user)
{
    const struct snd_device_item *items = user;
    const struct snd_device_item *x = &items[*(const uint32_t *)a],
                                 *y = &items[*(const uint32_t *)b];
    int order = SND_RISING(x->process, y->process);

    return order != 0 ? order : compare_time(x, y);
}

static bool put_in_order(struct snd_devices *d)
{
    d->by_time = malloc(((size_t)d->count + 1) * sizeof *d->by_time);
    if (!d->by_time)
        return false;
    snd_sort(d->items, d->count, sizeof *d->items, compare_items);
    for (uint32_t i = 0; i < d->count; i++)
        d->by_time[i] = i;
    if (d->count > 0)
        qsort_r(d->by_time, d->count, sizeof *d->by_time, compare_numbers, d->items);
    return true;
}

static enum sonde_status read_all(struct sonde_trace *trace, struct snd_devices *devices,
                                  struct sonde_error *err)
{
    struct gathering g = { .trace = trace, .devices = devices };

    g.visitor = (struct snd_visitor){ .begin = ignore_begin,
                                      .end = ignore_end,
                                      .other = ignore_other,
                                      .device = gather,
                                      .user = &g };
    enum sonde_status status = snd_walk(trace, SONDE_BY_THREAD, &g.visitor, NULL, err);
    if (status == SONDE_OK && (g.out_of_memory || !put_in_order(devices)))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    return status;
}

enum sonde_status snd_trace_devices(struct sonde_trace *trace, const struct snd_devices **devices,
                                    struct sonde_error *err)
{
    *devices = trace->devices;
    if (trace->devices || !snd_trace_has_works(trace))
        return SONDE_OK;
    struct snd_devices *made = calloc(1, sizeof *made);
    if (!made)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    enum sonde_status status = read_all(trace, made, err);
    if (status != SONDE_OK) {
        snd_devices_free(made);
        return status;
    }
    *devices = trace->devices = made;
    return SONDE_OK;
}

void snd_devices_free(struct snd_devices *devices)
{
    if (!devices)
        return;
    free(devices->items);
    free(devices->by_time);
    free(devices);
}

const struct snd_device_item *snd_devices_of(const struct snd_devices *d, uint32_t process,
                                             uint32_t correlation, uint32_t *count)
{
    uint32_t low = 0, high = d ? d->count : 0;

    *count = 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_call(&d->items[middle], process, correlation) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (d && low + *count < d->count &&
           compare_call(&d->items[low + *count], process, correlation) == 0)
        ++*count;
    return *count > 0 ? &d->items[low] : NULL;
}

int64_t snd_devices_sum(const struct sonde_trace *trace, uint32_t process, uint32_t correlation)
{
    uint32_t                      count;
    int64_t                       sum = 0;
    const struct snd_device_item *items = snd_devices_of(trace->devices, process, correlation,
                                                         &count);

    for (uint32_t i = 0; i < count; i++)
        if (snd_work_counts(snd_device_work(trace, &items[i])))
            sum = snd_add(sum, items[i].duration_ns);
    return sum;
}

const struct snd_work_record *snd_device_work(const struct sonde_trace     *trace,
                                              const struct snd_device_item *item)
{
    return &trace->processes[item->process].tables.works[item->work];
}

const struct snd_queue_record *snd_device_queue(const struct sonde_trace     *trace,
                                                const struct snd_device_item *item)
{
    return item->queue != 0 ? &trace->processes[item->process].tables.queues[item->queue] : NULL;
}

uint32_t snd_device_name(const struct sonde_trace *trace, const struct snd_device_item *item)
{
    uint32_t name = snd_name_of(&trace->processes[item->process],
                                snd_device_work(trace, item)->name);

    return name != UINT32_MAX ? name : trace->unknown_name;
}
