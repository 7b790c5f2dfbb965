/* SPDX-License-Identifier: Apache-2.0 */
#include "model/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"

int64_t snd_net_bytes(const uint64_t *words)
{
    /* No memory is larger than 2^62; what claims to be is a damaged event, and counts nothing. */
    int64_t bytes = words[3] >> 62 ? 0 : (int64_t)words[3];

    return SND_EVENT_KIND(words[0]) == SND_EV_ALLOC ? bytes : -bytes;
}

static struct snd_open_range *innermost(const struct snd_lane *lane)
{
    return lane->depth > 0 ? &lane->open[lane->depth - 1] : NULL;
}

static inline struct snd_lane *see(struct snd_assembly *a, uint32_t thread, int64_t ns)
{
    struct snd_lane *lane = &a->lanes[thread];

    if (lane->events++ == 0)
        lane->first_ns = ns;
    lane->last_ns = ns;
    return lane;
}

/* ------------------------------------------------------------ open and close */

static bool make_room(struct snd_lane *lane)
{
    return snd_grow(&lane->open, &lane->room, lane->depth, sizeof *lane->open);
}

static void on_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    struct snd_assembly *a = user;
    struct snd_lane     *lane = see(a, thread, ns);
    uint32_t             number = snd_name_of(lane->from, name);

    if (number == UINT32_MAX) {
        a->stats.missing_names++;
        number = a->trace->unknown_name;
    }
    if (lane->depth == SND_DEPTH_MAX) {
        lane->deeper++;
        a->stats.too_deep++;
        return;
    }
    if (lane->depth == lane->room && !make_room(lane)) {
        snd_assembly_stop(a);
        return;
    }
    struct snd_open_range *parent = innermost(lane);
    struct snd_open_range *r = &lane->open[lane->depth++];
    r->range = (struct snd_range){ .start_ns = ns, .name = number, .shapes = shapes };
    r->holds = false;
    if (parent)
        parent->range.children++;
    if (a->consumer.open)
        a->consumer.open(a->consumer.user, lane, r, parent);
}

/*
 * What of the range `inner`, which goes on, lies in `outer`, which ends now: counted in `outer`
 * as a child's, and remembered so that nobody counts it again.
 */
static void count_part(struct snd_range *outer, const struct snd_lane *lane, uint32_t at, int64_t ns)
{
    struct snd_range *inner = &lane->open[at].range;
    int64_t           spent = snd_sub(ns, inner->start_ns), cpu = 0, device = 0;
    double            flops = 0;

    for (uint32_t i = at; i < lane->depth; i++) { /* an open range does not hold its open child's */
        cpu = snd_add(cpu, lane->open[i].range.cpu_bytes);
        device = snd_add(device, lane->open[i].range.device_bytes);
        flops += lane->open[i].range.flops + lane->open[i].range.child_flops;
    }
    int64_t cpu_part = snd_sub(cpu, inner->done_cpu_bytes);
    int64_t device_part = snd_sub(device, inner->done_device_bytes);
    outer->child_ns = snd_add(outer->child_ns, snd_sub(spent, inner->done_ns));
    outer->cpu_bytes = snd_add(outer->cpu_bytes, cpu_part);
    outer->child_cpu_bytes = snd_add(outer->child_cpu_bytes, cpu_part);
    outer->device_bytes = snd_add(outer->device_bytes, device_part);
    outer->child_device_bytes = snd_add(outer->child_device_bytes, device_part);
    outer->child_flops += flops - inner->done_flops;
    inner->done_ns = spent;
    inner->done_cpu_bytes = cpu;
    inner->done_device_bytes = device;
    inner->done_flops = flops;
}

/* Adds a range that has ended to the one around it. */
static void count_child(struct snd_range *up, const struct snd_range *r)
{
    int64_t cpu = snd_sub(r->cpu_bytes, r->done_cpu_bytes);
    int64_t device = snd_sub(r->device_bytes, r->done_device_bytes);

    up->child_ns = snd_add(up->child_ns, snd_sub(r->total_ns, r->done_ns));
    up->cpu_bytes = snd_add(up->cpu_bytes, cpu);
    up->device_bytes = snd_add(up->device_bytes, device);
    up->child_cpu_bytes = snd_add(up->child_cpu_bytes, cpu);
    up->child_device_bytes = snd_add(up->child_device_bytes, device);
    up->child_flops += r->flops + r->child_flops - r->done_flops;
}

static struct snd_key make_key(const struct snd_lane *lane, uint64_t key)
{
    return (struct snd_key){ lane->process, key, 0 };
}

/* Closes the range at depth `at`, innermost or not. Ranges inside it stay open. */
static void close_range(struct snd_assembly *a, struct snd_lane *lane, uint32_t at, int64_t ns)
{
    struct snd_open_range *r = &lane->open[at], closed;
    struct snd_open_range *parent = at > 0 ? r - 1 : NULL;

    r->range.total_ns = snd_sub(ns, r->range.start_ns);
    if (at + 1 < lane->depth) {
        count_part(&r->range, lane, at + 1, ns);
        if (parent)
            parent->range.children++; /* the range inside is its child now */
        closed = *r;
        memmove(r, r + 1, (lane->depth - at - 1) * sizeof *r);
        r = &closed;
    }
    lane->depth--;
    a->stats.ranges++;
    if (r->range.key != 0)
        snd_map_remove(&a->keys, make_key(lane, r->range.key));
    if (parent)
        count_child(&parent->range, &r->range);
    if (a->consumer.close)
        a->consumer.close(a->consumer.user, lane, r, parent);
}

static void end_at(struct snd_assembly *a, struct snd_lane *lane, int64_t ns, uint64_t inside)
{
    if (inside < lane->deeper)
        lane->deeper--;
    else if (inside - lane->deeper < lane->depth)
        close_range(a, lane, lane->depth - 1 - (uint32_t)(inside - lane->deeper), ns);
    else
        a->stats.ends_without_begin++;
}

static void end_key(struct snd_assembly *a, const struct snd_lane *lane, int64_t ns, uint64_t key)
{
    uint32_t thread;

    if (!a->by_time) { /* its begin may lie in a chunk not read yet, or read too far already */
        a->trace->is_keyed = true;
        a->visitor.stop = true;
        return;
    }
    if (!snd_map_get(&a->keys, make_key(lane, key), &thread)) {
        a->stats.ends_without_begin++;
        return;
    }
    struct snd_lane *where = &a->lanes[thread];
    uint32_t         at = where->depth;
    while (at > 0 && where->open[at - 1].range.key != key)
        at--;
    if (at > 0)
        close_range(a, where, at - 1, ns > where->open[at - 1].range.start_ns
                                          ? ns : where->open[at - 1].range.start_ns);
}

static void on_end(void *user, uint32_t thread, int64_t ns)
{
    struct snd_assembly *a = user;

    end_at(a, see(a, thread, ns), ns, 0);
}

/* Closes up to `count` ranges whose ends are not in the trace. */
static void close_unfinished(struct snd_assembly *a, struct snd_lane *lane, int64_t ns,
                             uint64_t count)
{
    uint64_t deeper = count < lane->deeper ? count : lane->deeper;

    lane->deeper -= deeper;
    for (count -= deeper; count > 0 && lane->depth > 0; count--) {
        a->stats.unfinished++;
        close_range(a, lane, lane->depth - 1, ns);
    }
}

/* -------------------------------------------------------------- other events */

static void set_key(struct snd_assembly *a, struct snd_lane *lane, struct snd_range *r, uint64_t key)
{
    if (r->key != 0 || key == 0)
        return;
    r->key = key;
    if (!snd_map_put(&a->keys, make_key(lane, key), lane->thread))
        snd_assembly_stop(a);
}

static void apply_attribute(struct snd_assembly *a, struct snd_lane *lane, uint8_t key,
                            uint64_t value)
{
    struct snd_open_range *r = innermost(lane);

    if (!r || lane->deeper > 0)
        return;
    switch (key) {
    case SND_ATTR_FLOPS: r->range.flops += (double)value; break;
    case SND_ATTR_SHAPES: r->range.shapes = (uint32_t)value; break;
    case SND_ATTR_STACK: r->range.stack = (uint32_t)value; break;
    case SND_ATTR_MODULE: r->range.module = (uint32_t)value; break;
    case SND_ATTR_KEY: set_key(a, lane, &r->range, value); break;
    default: break; /* nothing that a model counts */
    }
}

static void apply_memory(struct snd_assembly *a, struct snd_lane *lane, int64_t ns,
                         const uint64_t *words)
{
    struct snd_open_range *r = innermost(lane);

    if (r) {
        int64_t *sum = SND_DEVICE_TYPE(SND_LOW(words[1])) == 0 ? &r->range.cpu_bytes
                                                               : &r->range.device_bytes;
        *sum = snd_add(*sum, snd_net_bytes(words));
    }
    if (a->consumer.memory)
        a->consumer.memory(a->consumer.user, lane, ns, words, r);
}

static void on_other(void *user, uint32_t thread, int64_t ns, const uint64_t *words)
{
    struct snd_assembly *a = user;
    struct snd_lane     *lane = see(a, thread, ns);
    uint8_t              kind = SND_EVENT_KIND(words[0]);

    if (kind == SND_EV_ATTR) {
        apply_attribute(a, lane, SND_ATTR_KEY(words[0]), SND_ATTR_VALUE(words[0]));
        return;
    }
    if (kind == SND_EV_ATTR64) {
        apply_attribute(a, lane, SND_ATTR_KEY(words[0]), words[1]);
        return;
    }
    if (kind == SND_EV_ALLOC || kind == SND_EV_FREE) {
        apply_memory(a, lane, ns, words);
        return;
    }
    if (kind == SND_EV_END_AT) {
        end_at(a, lane, ns, SND_LOW(words[1]));
        return;
    }
    if (kind == SND_EV_END_KEY) {
        end_key(a, lane, ns, words[1]);
        return;
    }
    if (kind == SND_EV_GAP) {
        uint32_t ends = SND_HIGH(words[1]);
        close_unfinished(a, lane, ns, ends == SND_GAP_ALL ? UINT64_MAX : ends);
    }
    if (a->consumer.other)
        a->consumer.other(a->consumer.user, lane, ns, words);
}

/* ---------------------------------------------------------------- the whole */

/* Open at the end: until the thread stopped, as far as is known, or at least its last event. */
static void close_all(struct snd_assembly *a)
{
    for (uint32_t i = 0; i < a->trace->thread_count && !a->out_of_memory; i++) {
        struct snd_lane           *lane = &a->lanes[i];
        const struct sonde_thread *shown = &a->trace->threads[i].shown;
        int64_t stop = lane->from->shown.closed && shown->stop_ns > lane->last_ns ? shown->stop_ns
                                                                                : lane->last_ns;
        close_unfinished(a, lane, stop, UINT64_MAX);
    }
}

enum sonde_status snd_assemble(struct snd_assembly *a, struct sonde_trace *trace,
                               enum sonde_order order, const struct snd_consumer *consumer,
                               struct sonde_error *err)
{
    *a = (struct snd_assembly){ .trace = trace, .consumer = *consumer };
    a->visitor = (struct snd_visitor){ on_begin, on_end, on_other, a, false };
    a->by_time = order == SONDE_BY_TIME || trace->is_keyed;
    a->lanes = calloc((size_t)trace->thread_count + 1, sizeof *a->lanes);
    if (!a->lanes)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        a->lanes[i].thread = i;
        a->lanes[i].process = trace->threads[i].shown.process;
        a->lanes[i].from = &trace->processes[a->lanes[i].process];
    }
    enum sonde_status status = snd_walk(trace, a->by_time ? SONDE_BY_TIME : order, &a->visitor, &a->stats.walk, err);
    if (status == SONDE_OK && !a->visitor.stop)
        close_all(a);
    if (status == SONDE_OK && a->out_of_memory)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for what the trace holds");
    return status;
}

void snd_assembly_release(struct snd_assembly *a)
{
    for (uint32_t i = 0; a->lanes && i < a->trace->thread_count; i++)
        free(a->lanes[i].open);
    free(a->lanes);
    a->lanes = NULL;
    snd_map_release(&a->keys);
}
