/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/device_work.h"

#include <stdlib.h>

#include "base/data/sort.h"
#include "read/walk/trace_walk.h"

#define RUN (1u << 15) /* items that are sorted at once, 1.5 MiB */

struct gathering {
    struct sonde_trace *trace;
    struct snd_devices *devices;
    struct snd_visitor  visitor;
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

static bool make_room(struct snd_devices *d)
{
    struct snd_paged *pages = &d->pages;
    size_t            room = pages->size / sizeof *d->items;

    if (room <= d->count && !snd_paged_grow(pages, (room > 0 ? 2 * room : 64) * sizeof *d->items))
        return false;
    d->items = pages->bytes;
    return true;
}

static int compare_items(const void *a, const void *b);

/* The last `count` items, which are in order from then on. */
static void sort_run(struct snd_devices *d, uint32_t count)
{
    if (count == 0)
        return;
    snd_sort(d->items + d->count - count, count, sizeof *d->items, compare_items);
    snd_paged_let_go(&d->pages);
}

/* Work without a record in the tables is damage, and left out. */
static void gather(void *user, uint32_t process, const struct snd_device_work *work)
{
    struct gathering        *g = user;
    struct snd_devices      *d = g->devices;
    const struct snd_tables *t = &g->trace->processes[process].tables;

    if (work->work >= t->work_count || t->works[work->work].kind == 0)
        return;
    if (d->count == INT32_MAX || !make_room(d)) {
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
    if (d->count % RUN == 0)
        sort_run(d, RUN);
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

void snd_devices_order(const struct snd_devices *d, uint32_t *numbers, uint32_t count)
{
    if (count > 1)
        qsort_r(numbers, count, sizeof *numbers, compare_numbers, d->items);
}

/* Runs that are merged: a heap by the items that they have come to. */
struct merging {
    const struct snd_device_item *items;
    struct run {
        uint32_t at, end;
    } * heap;
    uint32_t count;
};

static void sink(struct merging *m, uint32_t at)
{
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->count; child++)
            if (compare_items(&m->items[m->heap[child].at], &m->items[m->heap[least].at]) < 0)
                least = child;
        if (least == at)
            return;
        struct run moved = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = moved;
        at = least;
    }
}

static void merge(const struct snd_devices *d, struct merging *m, const struct snd_paged *merged)
{
    struct snd_device_item *out = merged->bytes;

    for (uint32_t at = 0; at < d->count; at += RUN)
        m->heap[m->count++] = (struct run){ at, d->count - at < RUN ? d->count : at + RUN };
    for (uint32_t i = m->count / 2; i-- > 0;)
        sink(m, i);
    for (uint32_t i = 0; i < d->count; i++) {
        out[i] = m->items[m->heap[0].at++];
        if (m->heap[0].at == m->heap[0].end)
            m->heap[0] = m->heap[--m->count];
        sink(m, 0);
        snd_devices_pass(d, i, merged);
    }
}

/* Each run is in order; false: memory is out. */
static bool merge_runs(struct snd_devices *d)
{
    struct snd_paged merged = { 0 };
    struct merging   m = { .items = d->items };
    bool             is_sorted = true;

    for (uint32_t at = RUN; at < d->count && is_sorted; at += RUN) {
        is_sorted = compare_items(&d->items[at - 1], &d->items[at]) <= 0;
        snd_devices_pass(d, at, NULL);
    }
    if (is_sorted)
        return true;
    m.heap = calloc(d->count / RUN + 1, sizeof *m.heap);
    bool good = m.heap && snd_paged_grow(&merged, d->count * sizeof *d->items);
    if (good) {
        merge(d, &m, &merged);
        snd_paged_release(&d->pages);
        d->pages = merged;
        d->items = merged.bytes;
        snd_paged_let_go(&d->pages);
    }
    free(m.heap);
    return good;
}

static bool put_in_order(struct snd_devices *d)
{
    d->look = calloc(1, sizeof *d->look);
    sort_run(d, d->count % RUN);
    return d->look && merge_runs(d);
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

enum sonde_status snd_trace_devices_by_time(struct sonde_trace        *trace,
                                            const struct snd_devices **devices,
                                            struct sonde_error        *err)
{
    enum sonde_status   status = snd_trace_devices(trace, devices, err);
    struct snd_devices *d = trace->devices;

    if (status != SONDE_OK || !d || d->by_time)
        return status;
    d->by_time = malloc(((size_t)d->count + 1) * sizeof *d->by_time);
    if (!d->by_time)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    for (uint32_t i = 0; i < d->count; i++)
        d->by_time[i] = i;
    snd_devices_order(d, d->by_time, d->count);
    return SONDE_OK;
}

void snd_devices_free(struct snd_devices *devices)
{
    if (!devices)
        return;
    snd_paged_release(&devices->pages);
    free(devices->by_time);
    free(devices->look);
    free(devices);
}

/* Between them lies the first item of the call, or where it would be; near what was found last, as most are. */
static void find_bounds(const struct snd_devices *d, uint32_t process, uint32_t correlation,
                        uint32_t *low, uint32_t *high)
{
    uint32_t at = __atomic_load_n(&d->look->at, __ATOMIC_RELAXED), step = 1;

    *low = 0;
    *high = d->count;
    if (d->count > 0 && compare_call(&d->items[at], process, correlation) < 0) {
        *low = at + 1;
        while (step < *high - at && compare_call(&d->items[at + step], process, correlation) < 0) {
            *low = at + step + 1;
            step *= 2;
        }
        *high = step < *high - at ? at + step : *high;
        return;
    }
    *high = at;
    while (step <= at && compare_call(&d->items[at - step], process, correlation) >= 0) {
        *high = at - step;
        step *= 2;
    }
    *low = step <= at ? at - step + 1 : 0;
}

/* Pages that were looked at leave memory: some 64 KiB around each place, of far ones several. */
static void let_go(const struct snd_devices *d, uint32_t found)
{
    enum { FAR = 1024 };
    struct snd_devices_look *look = d->look;
    uint32_t                 last = __atomic_exchange_n(&look->at, found, __ATOMIC_RELAXED);
    uint32_t                 moved = found > last ? found - last : last - found;
    uint32_t                 passed = __atomic_load_n(&look->passed, __ATOMIC_RELAXED) +
                      (moved < FAR ? moved : FAR);

    if (passed >= RUN) {
        passed = 0;
        snd_paged_let_go(&d->pages);
    }
    __atomic_store_n(&look->passed, passed, __ATOMIC_RELAXED);
}

const struct snd_device_item *snd_devices_of(const struct snd_devices *d, uint32_t process,
                                             uint32_t correlation, uint32_t *count)
{
    uint32_t low, high;

    *count = 0;
    if (!d || d->count == 0)
        return NULL;
    find_bounds(d, process, correlation, &low, &high);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_call(&d->items[middle], process, correlation) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    let_go(d, low < d->count ? low : d->count - 1);
    while (low + *count < d->count &&
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
