/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranges/assembly.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "model/ranges/open_ranges.h"
#include "model/ranges/torch_rules.h"

uint32_t snd_torch_thread(const struct snd_assembly *a, const struct snd_lane *lane)
{
    return lane->torch_thread != 0 ? lane->torch_thread : a->trace->threads[lane->thread].shown.tid;
}

/* ------------------------------------------------------------ open and close */

static void on_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    struct snd_assembly *a = user;

    snd_lane_open(a, snd_lane_see(a, thread, ns), ns, name, shapes, false);
}

/* torch's engine opens a range for the function that it is about to run, and does not say which. */
static void lend_sequence(const struct snd_assembly *a, struct snd_open_range *engine,
                          const struct snd_open_range *function)
{
    static const uint8_t lent[] = { SND_ATTR_SEQUENCE, SND_ATTR_FWD_THREAD };

    if (!(a->name_flags[engine->range.name] & SND_NAME_EVALUATE) ||
        function->range.scope != SONDE_SCOPE_BACKWARD ||
        function->range.serial != engine->range.serial + 1)
        return;
    engine->range.sequence = function->range.sequence;
    engine->range.fwd_thread = function->range.fwd_thread;
    for (size_t i = 0; i < sizeof lent; i++) {
        if (!(function->attr_mask >> lent[i] & 1))
            continue;
        engine->attrs[lent[i]] = function->attrs[lent[i]];
        engine->attr_mask |= 1u << lent[i];
    }
}

static void add_to_parent(struct snd_range *up, const struct snd_range *r)
{
    up->child_ns = snd_add(up->child_ns, r->total_ns);
    up->child_cpu_bytes = snd_add(up->child_cpu_bytes, r->cpu_bytes);
    up->child_device_bytes = snd_add(up->child_device_bytes, r->device_bytes);
    up->child_flops += r->flops + r->child_flops;
    up->device_ns = snd_add(up->device_ns, r->device_ns);
    if (r->api != 0)
        up->own_device_ns = snd_add(up->own_device_ns, r->own_device_ns);
}

/* Children of a range that is not shown become its parent's. */
static void pass_children(struct snd_range *up, const struct snd_range *r)
{
    up->child_ns = snd_add(up->child_ns, r->child_ns);
    up->child_cpu_bytes = snd_add(up->child_cpu_bytes, r->child_cpu_bytes);
    up->child_device_bytes = snd_add(up->child_device_bytes, r->child_device_bytes);
    up->child_flops += r->child_flops;
    up->device_ns = snd_add(up->device_ns, r->device_ns);
    if (r->hidden)
        up->own_device_ns = snd_add(up->own_device_ns, r->own_device_ns);
}

/* Memory of a range. */
struct taken {
    int64_t cpu, told_cpu, device;
};

static inline struct taken taken_in(const struct snd_range *r)
{
    return (struct taken){ r->cpu_bytes, r->told_cpu_bytes, r->device_bytes };
}

static inline void add_taken(struct snd_range *r, struct taken taken)
{
    r->cpu_bytes = snd_add(r->cpu_bytes, taken.cpu);
    r->told_cpu_bytes = snd_add(r->told_cpu_bytes, taken.told_cpu);
    r->device_bytes = snd_add(r->device_bytes, taken.device);
}

/* Hands a range over that is no longer open. `own`: memory that no inner open range has counted. */
static inline void finish(struct snd_assembly *a, struct snd_lane *lane, struct snd_open_range *r,
                          struct snd_open_range *parent, struct taken own)
{
    if (parent) {
        struct snd_range *up = &parent->range;
        add_taken(up, own);
        if (r->range.hidden || r->range.is_async) {
            pass_children(up, &r->range);
            up->children += r->range.is_async ? r->range.children : 0;
            up->children -= r->range.is_async; /* it was counted when it opened */
        } else {
            add_to_parent(up, &r->range);
            lend_sequence(a, parent, r);
            snd_range_learn(a, lane, up, r->range.arguments);
        }
    }
    a->stats.ranges++;
    if (r->range.is_async) {
        r->range.child_ns = r->range.total_ns; /* no self time, no self memory */
        r->range.child_cpu_bytes = r->range.cpu_bytes;
        r->range.child_device_bytes = r->range.device_bytes;
    }
    if (r->range.hidden)
        return;
    snd_range_call(&a->closes, lane, r, r->range.is_async ? NULL : parent);
}

static void forget_key(struct snd_assembly *a, const struct snd_lane *lane,
                       const struct snd_range *r)
{
    if (r->key != 0)
        snd_map_remove(&a->keys, (struct snd_key){ lane->process, r->key, 0 });
}

/* It is not among the thread's open ranges any more. */
static void leave_named(struct snd_assembly *a, struct snd_lane *lane, const struct snd_range *r)
{
    if (r->scope == SONDE_SCOPE_USER) {
        lane->named--;
        snd_lane_named(a, lane);
    }
}

static void close_innermost(struct snd_assembly *a, struct snd_lane *lane, int64_t ns,
                            bool unfinished)
{
    struct snd_open_range *r = snd_innermost(lane);

    snd_lane_settle(a, lane);
    forget_key(a, lane, &r->range);
    snd_range_judge(a, lane, &r->range);
    r->place = --lane->depth;
    leave_named(a, lane, &r->range);
    r->range.total_ns = snd_sub(ns, r->range.start_ns);
    r->range.unfinished = unfinished;
    finish(a, lane, r, snd_parent_at(lane, lane->depth), taken_in(&r->range));
}

/* Closes the range at `place` while those inside it stay open. */
static void close_around(struct snd_assembly *a, struct snd_lane *lane, uint32_t place, int64_t ns,
                         bool is_async)
{
    snd_lane_settle(a, lane);
    struct snd_open_range closing = lane->open[place];
    struct taken          own = taken_in(&closing.range);

    forget_key(a, lane, &closing.range);
    snd_range_judge(a, lane, &closing.range);
    closing.place = place;
    closing.range.total_ns = snd_sub(ns, closing.range.start_ns);
    closing.range.is_async |= is_async;
    /* Memory is by time: what the inner ones took until now was taken in this one as well. */
    for (uint32_t i = place + 1; i < lane->depth; i++)
        add_taken(&closing.range, taken_in(&lane->open[i].range));
    memmove(&lane->open[place], &lane->open[place + 1],
            (lane->depth - place - 1) * sizeof *lane->open);
    lane->depth--;
    leave_named(a, lane, &closing.range);
    struct snd_open_range *parent = snd_parent_at(lane, place);
    uint32_t               inner = place;
    while (inner < lane->depth && lane->open[inner].range.hidden)
        inner++;
    if (inner < lane->depth && !closing.range.hidden) {
        closing.range.children--; /* not its child after all */
        if (parent)
            parent->range.children++;
        SND_EACH_CONSUMER(a, c)
        if (c->move)
            c->move(c->user, lane, &lane->open[inner], parent);
    }
    finish(a, lane, &closing, parent, own);
}

static void on_end(void *user, uint32_t thread, int64_t ns)
{
    struct snd_assembly *a = user;
    struct snd_lane     *lane = snd_lane_see(a, thread, ns);

    if (lane->deeper > 0)
        lane->deeper--;
    else if (lane->depth > 0)
        close_innermost(a, lane, ns, false);
    else
        a->stats.ends_without_begin++;
}

static void end_at(struct snd_assembly *a, struct snd_lane *lane, int64_t ns, uint64_t inner)
{
    if (inner < lane->deeper) {
        lane->deeper--;
        return;
    }
    inner -= lane->deeper;
    if (inner >= lane->depth || inner > SND_INNER_MAX)
        a->stats.ends_without_begin++;
    else if (inner == 0 && lane->deeper == 0)
        close_innermost(a, lane, ns, false);
    else
        close_around(a, lane, lane->depth - 1 - (uint32_t)inner, ns, false);
}

/* The place of the range with this key; UINT32_MAX for none. */
static uint32_t find_key(const struct snd_lane *lane, uint64_t key)
{
    uint32_t least = lane->depth > SND_INNER_MAX ? lane->depth - SND_INNER_MAX : 0;

    for (uint32_t i = lane->depth; i-- > least;)
        if (lane->open[i].range.key == key)
            return i;
    return UINT32_MAX;
}

static void end_key(struct snd_assembly *a, struct snd_lane *lane, int64_t ns, uint64_t key)
{
    struct snd_key which = { lane->process, key, 0 };
    uint32_t       thread;
    bool           found = snd_map_get(&a->keys, which, &thread);

    struct snd_lane *from = found ? &a->lanes[thread] : lane;
    uint32_t         place = found ? find_key(from, key) : UINT32_MAX;
    if (place == UINT32_MAX)
        a->stats.ends_without_begin++;
    else if (from == lane)
        end_at(a, lane, ns, lane->deeper + (lane->depth - 1 - place));
    else
        close_around(a, from, place,
                     ns > from->open[place].range.start_ns ? ns : from->open[place].range.start_ns,
                     true);
}

/* Closes up to `count` ranges whose ends are not in the trace. */
static void close_unfinished(struct snd_assembly *a, struct snd_lane *lane, int64_t ns,
                             uint64_t count)
{
    uint64_t deeper = count < lane->deeper ? count : lane->deeper;

    lane->deeper -= deeper;
    for (count -= deeper; count > 0 && lane->depth > 0; count--) {
        a->stats.unfinished++;
        close_innermost(a, lane, ns, true);
    }
}

/* -------------------------------------------------------------- other events */

static void apply_memory(struct snd_assembly *a, struct snd_lane *lane, int64_t ns,
                         const uint64_t *words)
{
    /* A hidden range has nothing of its own. */
    struct snd_open_range *r = snd_parent_at(lane, lane->depth);

    if (r) {
        bool    is_cpu = SND_DEVICE_TYPE(SND_LOW(words[1])) == 0;
        int64_t bytes = snd_net_bytes(words);
        add_taken(&r->range,
                  (struct taken){ is_cpu ? bytes : 0, is_cpu ? bytes : 0, is_cpu ? 0 : bytes });
    }
    SND_EACH_CONSUMER(a, c)
    if (c->memory)
        c->memory(c->user, lane, ns, words, r);
}

static void on_other(void *user, uint32_t thread, int64_t ns, const uint64_t *words)
{
    struct snd_assembly *a = user;
    struct snd_lane     *lane = snd_lane_see(a, thread, ns);
    uint8_t              kind = SND_EVENT_KIND(words[0]);

    if (kind == SND_EV_ATTR) {
        snd_apply_attribute(a, lane, SND_ATTR_KEY(words[0]), SND_ATTR_VALUE(words[0]));
        return;
    }
    if (kind == SND_EV_ATTR64) {
        snd_apply_attribute(a, lane, SND_ATTR_KEY(words[0]), words[1]);
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
    SND_EACH_CONSUMER(a, c)
    if (c->other)
        c->other(c->user, lane, ns, words);
    if (kind == SND_EV_GAP) {
        uint32_t ends = SND_HIGH(words[1]);
        lane->events--; /* it tells of the recorder, not of the program */
        a->stats.gaps += SND_EVENT_TIME56(words[0]) != 0; /* else it stands for damage */
        if (SND_LOW(words[1]) > 0 || ends == SND_GAP_ALL) {
            lane->lost_ns = ns;
            lane->loses = true;
        }
        close_unfinished(a, lane, ns, ends == SND_GAP_ALL ? UINT64_MAX : ends);
    }
}

/* ---------------------------------------------------------------- the whole */

/*
 * The last moment that the lane tells of: when its thread stopped, as far as is known, or at least its
 * last event. If that is a gap, nothing more could be recorded.
 */
static int64_t last_moment(const struct snd_assembly *a, const struct snd_lane *lane)
{
    int64_t stop = a->trace->threads[lane->thread].shown.stop_ns;
    bool    ends_in_gap = lane->loses && lane->lost_ns == lane->last_ns;

    return lane->from->shown.closed && !ends_in_gap && stop > lane->last_ns ? stop : lane->last_ns;
}

void snd_assembly_close_all(struct snd_assembly *a)
{
    for (uint32_t i = 0; i < a->trace->thread_count && !a->out_of_memory; i++) {
        struct snd_lane *lane = &a->lanes[i];
        int64_t          stop = last_moment(a, lane);
        if (lane->depth > 0)
            lane->last_ns = stop;
        close_unfinished(a, lane, stop, UINT64_MAX);
    }
}

static bool number_threads(struct snd_assembly *a)
{
    uint32_t *numbers = snd_torch_threads(a->trace);

    for (uint32_t i = 0; numbers && i < a->trace->thread_count; i++)
        a->lanes[i].torch_thread = numbers[i];
    free(numbers);
    return numbers != NULL;
}

static void on_settled(void *user, int64_t ns)
{
    const struct snd_assembly *a = user;

    SND_EACH_CONSUMER(a, c)
    if (c->settled)
        c->settled(c->user, ns);
}

/* What FLOPs have to do with a name. */
static uint8_t flags_of(const struct snd_flops *flops, uint32_t name)
{
    enum snd_flops_answer what = snd_flops_of_name(flops, name);

    return (uint8_t)((what != SND_FLOPS_NO_FORMULA ? SND_NAME_FORMULA : 0) |
                     (what == SND_FLOPS_NO_WORK ? SND_NAME_NO_WORK : 0) |
                     (snd_flops_asks_children(flops, name) ? SND_NAME_LEARNS : 0));
}

void snd_assembly_number_lanes(struct snd_assembly *a)
{
    for (uint32_t i = 0; i < a->trace->thread_count; i++) {
        a->lanes[i].thread = i;
        a->lanes[i].process = a->trace->threads[i].shown.process;
        a->lanes[i].from = &a->trace->processes[a->lanes[i].process];
    }
}

enum sonde_status snd_assembly_prepare(struct snd_assembly *a, struct sonde_error *err)
{
    struct sonde_trace *trace = a->trace;

    a->visitor = (struct snd_visitor){ .begin = on_begin,
                                       .call = snd_assembly_on_call,
                                       .end = on_end,
                                       .other = on_other,
                                       .user = a,
                                       .settled = a->by_process ? on_settled : NULL,
                                       .leaf_in_order = a->as_recorded };
    a->lanes = calloc((size_t)trace->thread_count + 1, sizeof *a->lanes);
    a->shared = calloc((size_t)trace->process_count + 1, sizeof *a->shared);
    if (!a->lanes || !a->shared || !snd_assembly_names(a))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    snd_assembly_number_lanes(a);
    bool no_ranges = true, leaves = true;
    SND_EACH_CONSUMER(a, c)
    {
        no_ranges &= c->no_ranges;
        leaves &= c->leaf || c->no_leaves || c->no_ranges ||
                  !(c->open || c->close || (c->row && !c->early_rows));
    }
    if (no_ranges)
        snd_assembly_pass_ranges(&a->visitor);
    if (!number_threads(a) || (leaves && !no_ranges && !snd_leaves_prepare(a)))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    enum sonde_status status = snd_trace_devices(trace, &a->devices, err);
    if (status != SONDE_OK)
        return status;
    if (a->flops_mode == SONDE_FLOPS_NONE)
        return SONDE_OK;
    status = snd_flops_new(trace, a->flops_mode, &a->flops, err);
    for (uint32_t i = 0; status == SONDE_OK && i < trace->names.count; i++)
        a->name_flags[i] |= flags_of(a->flops, i);
    return status;
}

static void add_call(struct snd_range_calls *calls, snd_range_fn *call, void *user)
{
    if (!call)
        return;
    calls->items[calls->count].call = call;
    calls->items[calls->count++].user = user;
}

void snd_assembly_add(struct snd_assembly *a, const struct snd_consumer *consumer)
{
    assert(a->consumer_count < SND_CONSUMERS_MAX);
    a->consumers[a->consumer_count++] = *consumer;
    add_call(&a->opens, consumer->open, consumer->user);
    add_call(&a->closes, consumer->close, consumer->user);
    if (consumer->leaf) {
        assert(a->leaf_calls.count < SND_LEAF_CALLS_MAX);
        a->leaf_calls.items[a->leaf_calls.count].kind = consumer->kind;
        a->leaf_calls.items[a->leaf_calls.count].call = consumer->leaf;
        a->leaf_calls.items[a->leaf_calls.count++].user = consumer->user;
    }
}

void snd_assembly_release(struct snd_assembly *a)
{
    for (uint32_t i = 0; a->lanes && i < a->trace->thread_count; i++)
        free(a->lanes[i].open);
    free(a->lanes);
    free(a->shared);
    free(a->name_flags);
    snd_flops_free(a->flops);
    snd_map_release(&a->keys);
    snd_leaves_release(a);
    a->lanes = NULL;
    a->shared = NULL;
    a->name_flags = NULL;
    a->flops = NULL;
}
