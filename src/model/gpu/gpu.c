/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/gpu.h"

#include <stdlib.h>

#include "base/data/sort.h"
#include "model/gpu/occupancy.h"
#include "model/kept.h"

const char *const snd_gpu_reason_words[SND_IDLE_REASONS] = {
    [SND_IDLE_COPY] = "copy",
    [SND_IDLE_HOST] = "host late",
    [SND_IDLE_SYNC] = "synchronisation",
    [SND_IDLE_LAUNCH] = "launch",
    [SND_IDLE_UNKNOWN] = "unknown",
};

/* Of each device, while its work is gone through in order of start. */
struct course {
    struct snd_gpu_spans kernels, copies, busy;
    uint32_t            *copiers; /* items: by start */
    uint32_t             copier_count, copier_room;
};

struct snd_gpu_builder {
    struct snd_gpu            *g;
    const struct snd_devices  *work;
    struct course             *courses; /* one for each device */
    uint32_t                   course_room;
    struct snd_map             by_device, streams;
    struct snd_gpu_host       *host;
    struct snd_gpu_seen_steps *steps;
    struct snd_consumer        consumer;
    bool                       is_done;
    bool inherits; /* the launches are there, and not on the list of the walk */
};

/* -------------------------------------------------------------------- spans */

/* Starts never fall; what overlaps the last one or touches it makes that longer. */
static bool add_span(struct snd_gpu_spans *spans, int64_t start, int64_t end)
{
    struct snd_gpu_span *last = spans->count ? &spans->items[spans->count - 1] : NULL;

    if (last && start <= last->end_ns) {
        last->end_ns = end > last->end_ns ? end : last->end_ns;
        return true;
    }
    if (!snd_grow(&spans->items, &spans->room, spans->count, sizeof *spans->items))
        return false;
    spans->items[spans->count++] = (struct snd_gpu_span){ start, end };
    return true;
}

static int64_t sum_spans(const struct snd_gpu_spans *spans)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < spans->count; i++)
        sum = snd_add(sum, snd_sub(spans->items[i].end_ns, spans->items[i].start_ns));
    return sum;
}

/* --------------------------------------------------------------------- gaps */

static struct snd_gpu_gap *add_gap(struct snd_gpu_builder *b, uint32_t device, int64_t start,
                                   int64_t end, uint32_t item)
{
    struct snd_gpu *g = b->g;

    if (!snd_grow(&g->gaps, &g->gap_room, g->gap_count, sizeof *g->gaps))
        return NULL;
    struct snd_gpu_gap *gap = &g->gaps[g->gap_count++];
    *gap = (struct snd_gpu_gap){ .start_ns = start,
                                 .duration_ns = snd_sub(end, start),
                                 .device = device,
                                 .item = item,
                                 .next = snd_device_name(g->trace, &b->work->items[item]),
                                 .where = SONDE_NONE,
                                 .call = SONDE_NONE,
                                 .asked = SONDE_NONE,
                                 .wait = SONDE_NONE };
    return gap;
}

/* What the host did while the GPU waited for its next work. */
static void judge_gap(const struct snd_gpu_builder *b, struct snd_gpu_gap *gap)
{
    const struct snd_gpu         *g = b->g;
    const struct snd_device_item *next = &b->work->items[gap->item];
    const struct snd_launch *launch = snd_launch_of(g->launches, next->process, next->correlation);

    if (!launch) {
        gap->reason = SND_IDLE_UNKNOWN;
        return;
    }
    gap->asked = launch->where;
    if (launch->begin_ns <= gap->start_ns) {
        gap->reason = SND_IDLE_LAUNCH;
        gap->where = launch->where;
        gap->call = launch->name;
    } else {
        const struct snd_launch *wait = snd_launch_waiting(g->launches, launch->thread,
                                                           gap->start_ns);
        gap->reason = SND_IDLE_HOST; /* where: snd_gpu_host_choose() */
        gap->thread = launch->thread;
        gap->launched_ns = launch->begin_ns;
        gap->wait = wait ? (uint32_t)(wait - g->launches->items) : SONDE_NONE;
    }
}

/*
 * Divides a gap that began while the host waited where the wait returns: from then on the host was
 * late. All of it is synchronisation if the next work was launched before.
 */
static bool divide_gap(struct snd_gpu_builder *b, uint32_t number)
{
    struct snd_gpu          *g = b->g;
    struct snd_gpu_gap       late = g->gaps[number];
    const struct snd_launch *wait = &g->launches->items[late.wait];
    int64_t                  end = snd_add(late.start_ns, late.duration_ns);
    bool                     is_all = wait->end_ns >= late.launched_ns || wait->end_ns >= end;

    if (!is_all && !add_gap(b, late.device, wait->end_ns, end, late.item))
        return false;
    struct snd_gpu_gap *sync = &g->gaps[number];
    sync->reason = SND_IDLE_SYNC;
    sync->where = wait->where;
    sync->call = wait->name;
    sync->frame = 0;
    if (is_all)
        return true;
    int64_t late_ns = snd_sub(late.launched_ns, wait->end_ns);
    int64_t ahead_ns = snd_sub(late.start_ns, wait->begin_ns);
    sync->duration_ns = snd_sub(wait->end_ns, late.start_ns);
    sync->drained_ns = late_ns < ahead_ns ? late_ns : ahead_ns;
    struct snd_gpu_gap *rest = &g->gaps[g->gap_count - 1];
    late.start_ns = rest->start_ns;
    late.duration_ns = rest->duration_ns;
    *rest = late;
    return true;
}

static bool divide_gaps(struct snd_gpu_builder *b)
{
    bool divided = true;

    for (uint32_t i = 0, count = b->g->gap_count; divided && i < count; i++)
        if (b->g->gaps[i].wait != SONDE_NONE)
            divided = divide_gap(b, i);
    return divided;
}

/* ------------------------------------------------------------------ devices */

static bool find_device(struct snd_gpu_builder *b, const struct snd_device_item *item,
                        uint32_t *device)
{
    struct snd_gpu                *g = b->g;
    const struct snd_queue_record *queue = snd_device_queue(g->trace, item);
    uint32_t                       which = queue ? queue->device : SND_DEVICE(1, 0);
    struct snd_key                 key = { item->process, which, 0 };
    struct snd_gpu_limits          limits;

    if (snd_map_get(&b->by_device, key, device))
        return true;
    if (!snd_grow(&g->devices, &g->device_room, g->device_count, sizeof *g->devices) ||
        !snd_grow(&b->courses, &b->course_room, g->device_count, sizeof *b->courses) ||
        !snd_map_put(&b->by_device, key, g->device_count))
        return false;
    *device = g->device_count++;
    b->courses[*device] = (struct course){ .copier_count = 0 };
    snd_gpu_limits(g->trace, item->process, which, &limits);
    g->devices[*device] = (struct snd_gpu_device){ .process = item->process,
                                                   .device = which,
                                                   .name = limits.name,
                                                   .first_ns = item->start_ns,
                                                   .last_ns = item->start_ns };
    return true;
}

static int compare_device(const void *x, const void *y)
{
    const struct snd_gpu_device *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->process, b->process), SND_RISING(a->device, b->device));
}

/* By process and number, not in the order of their first work. */
static bool find_devices(struct snd_gpu_builder *b)
{
    struct snd_gpu *g = b->g;
    uint32_t        unused;

    for (uint32_t i = 0; i < b->work->count; i++) {
        const struct snd_device_item *item = &b->work->items[b->work->by_time[i]];
        if (snd_work_counts(snd_device_work(g->trace, item)) && !find_device(b, item, &unused))
            return false;
    }
    snd_sort(g->devices, g->device_count, sizeof *g->devices, compare_device);
    snd_map_release(&b->by_device);
    for (uint32_t i = 0; i < g->device_count; i++)
        if (!snd_map_put(&b->by_device,
                         (struct snd_key){ g->devices[i].process, g->devices[i].device, 0 }, i))
            return false;
    return true;
}

static bool count_item(struct snd_gpu_builder *b, uint32_t device,
                       const struct snd_device_item *item, const struct snd_work_record *work)
{
    struct snd_gpu_device *d = &b->g->devices[device];
    struct snd_key         key = { SND_PAIR(device, item->queue), 0, 0 };
    uint32_t               unused;

    d->kernels += work->kind == SND_WORK_KERNEL;
    d->copies += work->kind == SND_WORK_COPY;
    d->fills += work->kind == SND_WORK_FILL;
    d->copied_bytes += work->kind == SND_WORK_COPY ? work->bytes : 0;
    if (snd_map_get(&b->streams, key, &unused))
        return true;
    d->streams++;
    return snd_map_put(&b->streams, key, 0);
}

static bool add_item(struct snd_gpu_builder *b, uint32_t number)
{
    const struct snd_device_item *item = &b->work->items[number];
    const struct snd_work_record *work = snd_device_work(b->g->trace, item);
    uint32_t                      device;

    if (!snd_work_counts(work))
        return true;
    if (!find_device(b, item, &device) || !count_item(b, device, item, work))
        return false;
    struct snd_gpu_device *d = &b->g->devices[device];
    struct course         *c = &b->courses[device];
    int64_t                end = snd_add(item->start_ns, item->duration_ns);
    if (item->start_ns > d->last_ns && !add_gap(b, device, d->last_ns, item->start_ns, number))
        return false;
    d->last_ns = end > d->last_ns ? end : d->last_ns;
    if (!add_span(&c->busy, item->start_ns, end))
        return false;
    if (work->kind == SND_WORK_KERNEL)
        return add_span(&c->kernels, item->start_ns, end);
    if (!snd_grow(&c->copiers, &c->copier_room, c->copier_count, sizeof *c->copiers))
        return false;
    c->copiers[c->copier_count++] = number;
    return add_span(&c->copies, item->start_ns, end);
}

/* The part of a span of copies, from `*start` on, in which no kernel runs; false: no more of it. */
static bool next_exposed(const struct snd_gpu_spans *kernels, uint32_t *at, int64_t *start,
                         int64_t end, int64_t *until)
{
    while (*at < kernels->count && kernels->items[*at].end_ns <= *start)
        ++*at;
    if (*at < kernels->count && kernels->items[*at].start_ns <= *start)
        *start = kernels->items[*at].end_ns;
    while (*at < kernels->count && kernels->items[*at].end_ns <= *start)
        ++*at;
    *until = *at < kernels->count && kernels->items[*at].start_ns < end
                 ? kernels->items[*at].start_ns
                 : end;
    return *start < end;
}

/* Copies without a kernel beside them are gaps of the kernels, each that of the latest copy. */
static bool expose_copies(struct snd_gpu_builder *b, uint32_t device)
{
    const struct course *c = &b->courses[device];
    uint32_t             at = 0, copier = 0;

    for (uint32_t i = 0; i < c->copies.count; i++) {
        int64_t start = c->copies.items[i].start_ns, end = c->copies.items[i].end_ns, until;
        for (; next_exposed(&c->kernels, &at, &start, end, &until); start = until) {
            while (copier + 1 < c->copier_count &&
                   b->work->items[c->copiers[copier + 1]].start_ns <= start)
                copier++;
            const struct snd_device_item *item = &b->work->items[c->copiers[copier]];
            const struct snd_launch      *launch = snd_launch_of(b->g->launches, item->process,
                                                                 item->correlation);
            struct snd_gpu_gap *gap = add_gap(b, device, start, until, c->copiers[copier]);
            if (!gap)
                return false;
            gap->reason = SND_IDLE_COPY;
            gap->where = gap->asked = launch ? launch->where : SONDE_NONE;
            gap->call = launch ? launch->name : SONDE_NONE;
        }
    }
    return true;
}

static int compare_gap(const void *x, const void *y)
{
    const struct snd_gpu_gap *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->device, b->device), SND_RISING(a->start_ns, b->start_ns));
}

static void sort_gaps(struct snd_gpu *g)
{
    snd_sort(g->gaps, g->gap_count, sizeof *g->gaps, compare_gap);
}

static bool finish_devices(struct snd_gpu_builder *b)
{
    struct snd_gpu *g = b->g;

    for (uint32_t i = 0; i < g->device_count; i++) {
        struct snd_gpu_device *d = &g->devices[i];
        d->busy_ns = sum_spans(&b->courses[i].busy);
        d->kernel_ns = sum_spans(&b->courses[i].kernels);
        d->copy_ns = sum_spans(&b->courses[i].copies);
        d->overlap_ns = snd_sub(snd_add(d->kernel_ns, d->copy_ns), d->busy_ns);
        if (!expose_copies(b, i))
            return false;
    }
    sort_gaps(g);
    for (uint32_t i = 0; i < g->gap_count; i++) {
        struct snd_gpu_device *d = &g->devices[g->gaps[i].device];
        int64_t               *sum = &d->idle_ns[g->gaps[i].reason];
        *sum = snd_add(*sum, g->gaps[i].duration_ns);
        d->drained_ns = snd_add(d->drained_ns, g->gaps[i].drained_ns);
    }
    return true;
}

/* ------------------------------------------------------------------- causes */

static bool add_causes(struct snd_gpu *g)
{
    struct snd_map map = { 0 };
    bool           added = true;

    for (uint32_t i = 0; added && i < g->gap_count; i++) {
        const struct snd_gpu_gap *gap = &g->gaps[i];
        struct snd_key key = { SND_PAIR(gap->device, gap->reason), SND_PAIR(gap->where, gap->call),
                               gap->frame };
        uint32_t       at;
        if (!snd_map_get(&map, key, &at)) {
            at = g->cause_count;
            added = snd_grow(&g->causes, &g->cause_room, g->cause_count, sizeof *g->causes) &&
                    snd_map_put(&map, key, at);
            if (!added)
                break;
            g->causes[g->cause_count++] = (struct snd_gpu_cause){ .device = gap->device,
                                                                  .reason = gap->reason,
                                                                  .where = gap->where,
                                                                  .call = gap->call,
                                                                  .frame = gap->frame };
        }
        struct snd_gpu_cause *cause = &g->causes[at];
        cause->gaps++;
        cause->total_ns = snd_add(cause->total_ns, gap->duration_ns);
        cause->drained_ns = snd_add(cause->drained_ns, gap->drained_ns);
        if (gap->duration_ns > cause->longest_ns)
            cause->longest_ns = gap->duration_ns;
    }
    snd_map_release(&map);
    return added;
}

/* ---------------------------------------------------------------- the whole */

static enum sonde_status fail_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the GPUs of the trace");
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct snd_gpu_builder *b = user;

    if (b->inherits)
        snd_where_open(NULL, lane, range, parent);
    snd_gpu_host_opened(b->host, lane, range, parent);
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct snd_gpu_builder *b = user;

    (void)parent;
    snd_gpu_host_closed(b->host, lane, range);
    snd_gpu_steps_closed(b->steps, lane, &range->range);
}

static void on_attribute(void *user, struct snd_lane *lane, struct snd_open_range *range,
                         uint8_t key)
{
    struct snd_gpu_builder *b = user;

    if (key == SND_ATTR_API)
        snd_gpu_host_called(b->host, lane, &range->range);
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct snd_gpu_builder *b = user;

    snd_gpu_host_event(b->host, lane, ns, words);
    snd_gpu_steps_event(b->steps, lane, ns, words);
}

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct snd_gpu_builder *b = user;

    b->g->assembly = b->g->launches->assembly = assembly;
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct snd_gpu_builder *b = user;

    (void)assembly;
    b->is_done = true;
}

/* For the one walk: calls, where the host was in the gaps, the program's steps. */
static enum sonde_status wait_for_walk(struct snd_gpu_builder *b, struct sonde_error *err)
{
    b->consumer = (struct snd_consumer){
        .user = b,
        .any_flops = true,
        .by_time = true,
        .begin = on_begin,
        .open = on_open,
        .close = on_close,
        .attribute = on_attribute,
        .other = on_other,
        .end = on_end,
    };
    b->host = snd_gpu_host_new(b->g, b->work);
    b->steps = snd_gpu_steps_new(b->g);
    if (!b->host || !b->steps)
        return fail_memory(err);
    enum sonde_status status = snd_launches_wait(b->g->trace, &b->g->launches, err);
    if (status != SONDE_OK)
        return status;
    b->inherits = b->g->launches->is_done;
    snd_wait(b->g->trace, &b->consumer); /* after the launches */
    return SONDE_OK;
}

static bool divide_steps(struct snd_gpu_builder *b)
{
    uint32_t              count = b->g->device_count;
    struct snd_gpu_spans *spans = calloc(2 * (size_t)count + 1, sizeof *spans);
    bool                  divided = spans != NULL;

    for (uint32_t i = 0; spans && i < count; i++) {
        spans[i] = b->courses[i].kernels;
        spans[count + i] = b->courses[i].busy;
    }
    divided = divided && snd_gpu_steps_divide(b->steps, spans, spans + count);
    free(spans);
    return divided;
}

/* The gaps are found first, so that the walk can charge them to what the host did. */
static enum sonde_status begin(struct snd_gpu_builder *b, struct sonde_error *err)
{
    struct snd_gpu   *g = b->g;
    enum sonde_status status = snd_trace_devices_by_time(g->trace, &b->work, err);

    b->is_done = !b->work;
    if (status != SONDE_OK || !b->work)
        return status;
    bool good = find_devices(b);
    for (uint32_t i = 0; good && i < b->work->count; i++)
        good = add_item(b, b->work->by_time[i]);
    if (!good)
        return fail_memory(err);
    sort_gaps(g);
    return wait_for_walk(b, err);
}

static enum sonde_status end(struct snd_gpu_builder *b, struct sonde_error *err)
{
    struct snd_gpu *g = b->g;

    if (!b->work)
        return SONDE_OK;
    enum sonde_status status = snd_wait_walk(g->trace, b->is_done, err);
    if (status == SONDE_OK)
        status = snd_launches_finish(&g->launches, err);
    if (status != SONDE_OK)
        return status;
    for (uint32_t i = 0; i < g->gap_count; i++)
        judge_gap(b, &g->gaps[i]);
    if (!snd_gpu_host_choose(b->host) || !divide_gaps(b) || !finish_devices(b) || !add_causes(g) ||
        !divide_steps(b))
        return fail_memory(err);
    return SONDE_OK;
}

static void free_builder(struct snd_gpu_builder *b)
{
    if (!b)
        return;
    snd_wait_end(b->g->trace, &b->consumer);
    for (uint32_t i = 0; b->courses && i < b->g->device_count; i++) {
        free(b->courses[i].kernels.items);
        free(b->courses[i].copies.items);
        free(b->courses[i].busy.items);
        free(b->courses[i].copiers);
    }
    free(b->courses);
    snd_gpu_host_free(b->host);
    snd_gpu_steps_free(b->steps);
    snd_map_release(&b->by_device);
    snd_map_release(&b->streams);
    free(b);
}

static void free_gpu(void *gpu)
{
    snd_gpu_free(gpu);
}

enum sonde_status snd_gpu_wait(struct sonde_trace *trace, struct snd_gpu **out,
                               struct sonde_error *err)
{
    *out = snd_kept_lend(trace, free_gpu, 0);
    if (*out)
        return SONDE_OK;
    struct snd_gpu *g = calloc(1, sizeof *g);
    if (!g)
        return fail_memory(err);
    g->trace = trace;
    g->building = calloc(1, sizeof *g->building);
    enum sonde_status status = g->building ? SONDE_OK : fail_memory(err);
    if (status == SONDE_OK) {
        g->building->g = g;
        status = begin(g->building, err);
    }
    if (status == SONDE_OK)
        *out = g;
    else
        snd_gpu_free(g);
    return status;
}

enum sonde_status snd_gpu_finish(struct snd_gpu **gpu, struct sonde_error *err)
{
    struct snd_gpu *g = *gpu;

    if (!g->building) /* lent */
        return SONDE_OK;
    enum sonde_status status = end(g->building, err);
    free_builder(g->building);
    g->building = NULL;
    if (status == SONDE_OK) {
        snd_kept_add(g->trace, free_gpu, 0, g);
        return SONDE_OK;
    }
    snd_gpu_free(g);
    *gpu = NULL;
    return status;
}

enum sonde_status snd_gpu_new(struct sonde_trace *trace, struct snd_gpu **out,
                              struct sonde_error *err)
{
    enum sonde_status status = snd_gpu_wait(trace, out, err);

    return status == SONDE_OK ? snd_gpu_finish(out, err) : status;
}

void snd_gpu_free(struct snd_gpu *g)
{
    if (!g || snd_kept_return(g->trace, g))
        return;
    free_builder(g->building);
    snd_launches_free(g->launches);
    free(g->devices);
    free(g->gaps);
    free(g->causes);
    free(g->steps);
    free(g);
}
