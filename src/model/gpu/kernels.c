/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/kernels.h"

#include <math.h>
#include <stdlib.h>

#include "base/data/map.h"
#include "base/data/sort.h"

const char *const snd_work_words[] = {
    [SND_WORK_KERNEL] = "kernel",
    [SND_WORK_COPY] = "copy",
    [SND_WORK_FILL] = "fill",
};

/* A part of a row: of one configuration, of one place, of one operator. */
struct part {
    uint32_t row, which;
    int64_t  ns;
};
struct parts {
    struct snd_map map;
    struct part   *items;
    uint32_t       count, room;
};

struct delay {
    uint32_t row;
    int64_t  ns;
};

struct builder {
    struct snd_kernels *k;
    unsigned            groups;
    struct snd_map      firsts, rows;
    struct parts        works, places, operators;
    struct delay       *delays;
    uint32_t            delay_count, delay_room;
};

/* -------------------------------------------------------------------- parts */

static bool add_part(struct parts *p, uint32_t row, uint64_t which, uint32_t number, int64_t ns)
{
    struct snd_key key = { row, which, 0 };
    uint32_t       at;

    if (!snd_map_get(&p->map, key, &at)) {
        if (!snd_grow(&p->items, &p->room, p->count, sizeof *p->items) ||
            !snd_map_put(&p->map, key, p->count))
            return false;
        at = p->count++;
        p->items[at] = (struct part){ row, number, 0 };
    }
    p->items[at].ns = snd_add(p->items[at].ns, ns);
    return true;
}

static void release_parts(struct parts *p)
{
    snd_map_release(&p->map);
    free(p->items);
}

/* --------------------------------------------------------------------- rows */

static struct snd_where where_of(const struct snd_kernels *k, const struct snd_launch *launch,
                                 uint32_t process)
{
    if (launch)
        return k->launches->places[launch->where];
    return (struct snd_where){ .process = process, .name = SONDE_NONE, .module = SONDE_NONE };
}

/* The key of a row; columns that are not grouped by are SONDE_NONE, or 0. */
struct group {
    uint32_t name, kind, process, device, operator, module, stack, shapes, work;
};

static bool make_group(struct builder *b, const struct snd_device_item *item,
                       const struct snd_work_record *work, const struct snd_where *where,
                       struct group *g)
{
    const struct snd_queue_record *queue = snd_device_queue(b->k->trace, item);
    const unsigned                 groups = b->groups;
    const unsigned in_process = SONDE_GROUP_PROCESS | SONDE_GROUP_DEVICE | SONDE_GROUP_GRID;

    *g = (struct group){
        .name = snd_device_name(b->k->trace, item),
        .kind = work->kind,
        .process = groups & in_process ? item->process : SONDE_NONE,
        .device = groups & SONDE_GROUP_DEVICE && queue ? queue->device : SONDE_NONE,
        .operator= groups & SONDE_GROUP_OPERATOR ? where->name : SONDE_NONE,
        .module = groups & SONDE_GROUP_MODULE ? where->module : SONDE_NONE,
        .work = groups & SONDE_GROUP_GRID ? item->work : 0,
    };
    return (!(groups & SONDE_GROUP_STACK) ||
            snd_place_stack(&b->k->texts, b->k->trace, where->process, where->stack, &g->stack)) &&
           (!(groups & SONDE_GROUP_SHAPE) ||
            snd_place_shapes(&b->k->texts, b->k->trace, where->process, where->shapes, &g->shapes));
}

/* A key has room for six numbers: the first six have a number of their own. */
static bool find_group(struct builder *b, const struct group *g, uint32_t *row, bool *is_new)
{
    struct snd_key first = { SND_PAIR(g->name, g->kind), SND_PAIR(g->process, g->device),
                             SND_PAIR(g->operator, g->module) };
    struct snd_key whole = { 0, SND_PAIR(g->stack, g->shapes), g->work };
    uint32_t       number;

    if (!snd_map_get(&b->firsts, first, &number)) {
        number = (uint32_t)b->firsts.count;
        if (!snd_map_put(&b->firsts, first, number))
            return false;
    }
    whole.a = number;
    *is_new = !snd_map_get(&b->rows, whole, row);
    if (*is_new)
        *row = b->k->count;
    return !*is_new || snd_map_put(&b->rows, whole, *row);
}

static uint32_t find_row(struct builder *b, const struct snd_device_item *item,
                         const struct snd_work_record *work, const struct snd_where *where)
{
    struct snd_kernels *k = b->k;
    struct group        g;
    uint32_t            row;
    bool                is_new;

    if (!make_group(b, item, work, where, &g) || !find_group(b, &g, &row, &is_new) ||
        !snd_grow(&k->rows, &k->room, k->count, sizeof *k->rows))
        return UINT32_MAX;
    if (!is_new)
        return row;
    const struct snd_text *text = &k->trace->names.items[g.name];
    k->rows[k->count++] =
        (struct snd_kernel_row){ .name = { text->bytes, text->length },
                                 .kind = g.kind,
                                 .process = g.process,
                                 .device = g.device,
                                 .min_ns = item->duration_ns,
                                 .stack = snd_place_text(&k->texts, g.stack),
                                 .shapes = snd_place_text(&k->texts, g.shapes),
                                 .where = { .name = SONDE_NONE, .module = SONDE_NONE } };
    return row;
}

/* From the begin of the call to the begin of the work. Of a graph: that of its first node. */
static bool add_delay(struct builder *b, uint32_t row, const struct snd_devices *devices,
                      uint32_t number, const struct snd_launch *launch)
{
    const struct snd_device_item *item = &devices->items[number];

    if (!launch || (item->node != 0 && number > 0 && item[-1].process == item->process &&
                    item[-1].correlation == item->correlation))
        return true;
    if (!snd_grow(&b->delays, &b->delay_room, b->delay_count, sizeof *b->delays))
        return false;
    b->delays[b->delay_count++] = (struct delay){ row, snd_sub(item->start_ns, launch->begin_ns) };
    return true;
}

static bool add_item(struct builder *b, const struct snd_devices *devices, uint32_t number)
{
    const struct snd_device_item *item = &devices->items[number];
    const struct snd_work_record *work = snd_device_work(b->k->trace, item);
    const struct snd_launch      *launch = snd_launch_of(b->k->launches, item->process,
                                                         item->correlation);
    struct snd_where              where = where_of(b->k, launch, item->process);

    if (!snd_work_counts(work))
        return true;
    uint32_t at = find_row(b, item, work, &where);
    if (at == UINT32_MAX)
        return false;
    struct snd_kernel_row *row = &b->k->rows[at];
    int64_t                ns = item->duration_ns;
    row->count++;
    row->graph_count += item->node != 0;
    row->total_ns = snd_add(row->total_ns, ns);
    row->min_ns = ns < row->min_ns ? ns : row->min_ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    row->bytes += work->bytes;
    b->k->total_ns = snd_add(b->k->total_ns, ns);
    return add_part(&b->works, at, SND_PAIR(item->work, item->process), number, ns) &&
           (!launch || (add_part(&b->places, at, launch->where, launch->where, ns) &&
                        add_part(&b->operators, at, where.name, 0, ns))) &&
           add_delay(b, at, devices, number, launch);
}

/* ------------------------------------------------------------------- results */

/* Equal work of two processes, or of two streams, is one configuration. */
static bool judge_works(struct builder *b, const struct snd_devices *devices)
{
    struct snd_kernels *k = b->k;

    for (uint32_t i = 0; i < k->count; i++)
        k->rows[i].occupancy = 0;
    int64_t *most = calloc((size_t)k->count + 1, sizeof *most);
    int64_t *known = calloc((size_t)k->count + 1, sizeof *known);
    for (uint32_t i = 0; most && known && i < b->works.count; i++) {
        const struct part             *part = &b->works.items[i];
        struct snd_kernel_row         *row = &k->rows[part->row];
        const struct snd_device_item  *item = &devices->items[part->which];
        const struct snd_work_record  *work = snd_device_work(k->trace, item);
        const struct snd_queue_record *queue = snd_device_queue(k->trace, item);
        struct snd_gpu_limits          limits;
        struct snd_occupancy           occupancy = { 0 };
        bool has = snd_gpu_limits(k->trace, item->process, queue ? queue->device : 0, &limits) &&
                   snd_occupancy(&limits, work, &occupancy);
        if (has) {
            row->occupancy += occupancy.percent * (double)part->ns;
            known[part->row] = snd_add(known[part->row], part->ns);
        }
        if (row->configurations++ == 0 || part->ns > most[part->row]) {
            most[part->row] = part->ns;
            row->work = *work;
            row->limit = occupancy.limit;
        }
    }
    for (uint32_t i = 0; i < k->count; i++)
        k->rows[i].occupancy = known && known[i] > 0 ? k->rows[i].occupancy / (double)known[i]
                                                     : NAN;
    bool done = most && known;
    free(most);
    free(known);
    return done;
}

static bool judge_places(struct builder *b)
{
    struct snd_kernels *k = b->k;
    int64_t            *most = calloc((size_t)k->count + 1, sizeof *most);

    for (uint32_t i = 0; most && i < b->places.count; i++) {
        const struct part     *part = &b->places.items[i];
        struct snd_kernel_row *row = &k->rows[part->row];
        if (row->places++ == 0 || part->ns > most[part->row]) {
            most[part->row] = part->ns;
            row->where = k->launches->places[part->which];
            row->launched = true;
        }
    }
    for (uint32_t i = 0; i < b->operators.count; i++)
        k->rows[b->operators.items[i].row].operators++;
    bool done = most != NULL;
    free(most);
    return done;
}

static int compare_delay(const void *x, const void *y)
{
    const struct delay *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->row, b->row), SND_RISING(a->ns, b->ns));
}

/* The median, and the least that 95 % of them do not exceed. */
static void judge_delays(struct builder *b)
{
    snd_sort(b->delays, b->delay_count, sizeof *b->delays, compare_delay);
    for (uint32_t i = 0, end; i < b->delay_count; i = end) {
        struct snd_kernel_row *row = &b->k->rows[b->delays[i].row];
        for (end = i + 1; end < b->delay_count && b->delays[end].row == b->delays[i].row;)
            end++;
        uint32_t count = end - i;
        int64_t  low = b->delays[i + (count - 1) / 2].ns, high = b->delays[i + count / 2].ns;
        row->delays = count;
        row->delay_median_ns = snd_add(low, snd_sub(high, low) / 2);
        row->delay_p95_ns = b->delays[i + ((uint64_t)count * 95 + 99) / 100 - 1].ns;
    }
}

static enum sonde_status build(struct builder *b, struct sonde_error *err)
{
    const struct snd_devices *devices;
    enum sonde_status         status = snd_trace_devices_by_time(b->k->trace, &devices, err);

    if (status == SONDE_OK && devices && !b->k->launches) { /* a walk that nothing else needs */
        b->k->owns_launches = true;
        status = snd_launches_new(b->k->trace, &b->k->launches, err);
    }
    if (status != SONDE_OK || !devices)
        return status;
    for (uint32_t i = 0; i < devices->count; i++)
        if (!add_item(b, devices, devices->by_time[i]))
            return snd_fail(err, SONDE_E_NOMEM, "out of memory for the kernels of the trace");
    if (!judge_works(b, devices) || !judge_places(b))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the kernels of the trace");
    judge_delays(b);
    return SONDE_OK;
}

static enum sonde_status make(const struct snd_kernels *from, unsigned groups,
                              struct snd_kernels **out, struct sonde_error *err)
{
    *out = NULL;
    struct snd_kernels *k = calloc(1, sizeof *k);
    if (!k)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the kernels of the trace");
    *k = *from;
    struct builder    b = { .k = k, .groups = groups };
    enum sonde_status status = build(&b, err);
    snd_map_release(&b.firsts);
    snd_map_release(&b.rows);
    release_parts(&b.works);
    release_parts(&b.places);
    release_parts(&b.operators);
    free(b.delays);
    if (status == SONDE_OK)
        *out = k;
    else
        snd_kernels_free(k);
    return status;
}

enum sonde_status snd_kernels_new(struct sonde_trace *trace, unsigned groups, uint32_t stack_depth,
                                  struct snd_kernels **out, struct sonde_error *err)
{
    return make(&(struct snd_kernels){ .trace = trace, .texts.stack_depth = stack_depth }, groups,
                out, err);
}

enum sonde_status snd_kernels_launched(struct snd_launches *launches, struct snd_kernels **out,
                                       struct sonde_error *err)
{
    return make(&(struct snd_kernels){ .trace = launches->trace, .launches = launches }, 0, out,
                err);
}

void snd_kernels_free(struct snd_kernels *k)
{
    if (!k)
        return;
    if (k->owns_launches)
        snd_launches_free(k->launches);
    snd_place_texts_release(&k->texts);
    free(k->rows);
    free(k);
}
