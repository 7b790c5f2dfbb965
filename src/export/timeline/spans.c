/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline/spans.h"

#include "export/timeline/span_records.h"

struct walk {
    struct snd_spans_calls calls;
    struct snd_assembly    assembly;
    struct snd_live        live;
    uint64_t               attrs[SND_SPAN_ATTRS]; /* of a leaf */
    bool                   stopped;
};

static void go_on(struct walk *w, bool goes_on)
{
    if (goes_on)
        return;
    w->stopped = true;
    w->assembly.visitor.stop = true;
}

static struct snd_span make_span(const struct walk *w, const struct snd_lane *lane,
                                 const struct snd_open_range *open, uint32_t place)
{
    const struct snd_range *r = &open->range;
    const struct snd_text  *name = &w->assembly.trace->names.items[r->name];

    return (struct snd_span){
        .process = lane->process,
        .thread = lane->thread,
        .depth = place,
        .name = { name->bytes, name->length },
        .name_number = r->name,
        .shapes = r->shapes,
        .serial = open->order,
        .start_ns = r->start_ns,
        .end_ns = snd_add(r->start_ns, r->total_ns),
        .self_ns = snd_sub(r->total_ns, r->child_ns),
        .bytes = snd_add(r->cpu_bytes, r->device_bytes),
        .attr_mask = open->attr_mask,
        .attrs = open->attrs,
        .unfinished = r->unfinished,
        .is_op = r->is_op,
        .is_async = r->is_async,
        .starts_with_parent = place > 0 && lane->open[place - 1].range.start_ns == r->start_ns,
        .mark = open->mark,
        .number = open->number,
    };
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *open,
                    struct snd_open_range *parent)
{
    struct walk *w = user;

    (void)parent;
    open->mark = 0;
    open->number = 0;
    open->range.node = (uint32_t)open->order;
    if (!w->calls.begin || w->stopped)
        return;
    struct snd_span span = make_span(w, lane, open, lane->depth - 1);
    go_on(w, w->calls.begin(&span, w->calls.user));
    open->mark = span.mark;
    open->number = span.number;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *open,
                     struct snd_open_range *parent)
{
    struct walk *w = user;

    (void)parent;
    if (w->stopped)
        return;
    for (uint32_t i = open->place; i < lane->depth; i++) /* those inside it that stay open */
        if (lane->open[i].mark > open->mark)
            lane->open[i].mark = open->mark;
    struct snd_span span = make_span(w, lane, open, open->place);
    span.crosses = open->place < lane->depth;
    if (open->range.api != 0) {
        const struct snd_open_range *owner = snd_torchgpu_owner(lane);
        span.owner = owner ? owner->order : 0;
    }
    go_on(w, w->calls.end(&span, w->calls.user));
}

static uint32_t name_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    (void)user, (void)lane;
    return shared->name;
}

/* Both calls at once: what begin and end of a range come to that nothing lies in. */
static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct walk                 *w = user;
    const struct snd_table_call *call = leaf->is_call ? &lane->from->tables.calls[leaf->id] : NULL;
    const struct snd_text       *name = &w->assembly.trace->names.items[kind];
    struct snd_span              span = {
                     .process = lane->process,
                     .thread = lane->thread,
                     .depth = lane->depth,
                     .name = { name->bytes, name->length },
                     .name_number = kind,
                     .shapes = call ? call->record.shapes : 0,
                     .serial = w->assembly.begins,
                     .start_ns = leaf->start_ns,
                     .end_ns = leaf->end_ns,
                     .self_ns = snd_sub(leaf->end_ns, leaf->start_ns),
                     .attrs = w->attrs,
                     .is_op = leaf->is_call,
                     .starts_with_parent = above && above->range.start_ns == leaf->start_ns,
    };

    (void)parent;
    if (w->stopped)
        return;
    if (w->calls.begin && !w->calls.leaf)
        go_on(w, w->calls.begin(&span, w->calls.user));
    if (call)
        snd_call_keep(call, known->has_sequence && leaf->has_sequence ? &leaf->sequence : NULL,
                      &span.attr_mask, w->attrs);
    if (w->calls.leaf)
        go_on(w, w->calls.leaf(&span, w->calls.user));
    else if (!w->stopped)
        go_on(w, w->calls.end(&span, w->calls.user));
}

static void hand_over(struct walk *w, const struct snd_lane *lane, int64_t ns,
                      const uint64_t *words, const struct snd_live_change *change)
{
    struct sonde_event event;

    if (w->calls.event && !w->stopped &&
        snd_event_show(w->assembly.trace, lane->thread, ns, words, &event))
        go_on(w, w->calls.event(&event, change, w->calls.user));
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    hand_over(user, lane, ns, words, NULL);
}

static void on_attribute(void *user, struct snd_lane *lane, struct snd_open_range *range,
                         uint8_t key)
{
    struct walk *w = user;

    if (key == SND_ATTR_API && w->calls.gpu)
        snd_torchgpu_call(w->calls.gpu, lane, range);
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct walk           *w = user;
    struct snd_live_change change = snd_live_event(&w->live, lane->process, words);

    if (w->live.failed)
        snd_assembly_stop(&w->assembly);
    if (innermost)
        snd_range_memory(&innermost->range, words, change.counted);
    hand_over(w, lane, ns, words, &change);
}

static struct snd_spans_totals add_up(const struct walk *w)
{
    struct snd_spans_totals totals = { .too_deep = w->assembly.stats.too_deep };

    for (uint32_t i = 0; w->assembly.lanes && i < w->assembly.trace->thread_count; i++)
        if (w->assembly.lanes[i].last_ns > totals.last_ns)
            totals.last_ns = w->assembly.lanes[i].last_ns;
    return totals;
}

static enum sonde_status walk_here(struct sonde_trace *trace, const struct snd_spans_calls *calls,
                                   struct snd_spans_totals *totals, struct sonde_error *err)
{
    struct walk               w = { .calls = *calls };
    const struct snd_consumer consumer = { .user = &w,
                                           .flops = SONDE_FLOPS_NONE,
                                           .as_recorded = true,
                                           .open = on_open,
                                           .close = on_close,
                                           .memory = on_memory,
                                           .other = on_other,
                                           .attribute = on_attribute,
                                           .kind = name_kind,
                                           .leaf = on_leaf };
    enum sonde_status st = snd_assemble(&w.assembly, trace, SONDE_BY_TIME, &consumer, 1, err);

    *totals = add_up(&w);
    snd_assembly_release(&w.assembly);
    snd_live_release(&w.live);
    return st;
}

/* -------------------------------------------------------- in a thread of its own */

struct walk_ahead {
    struct sonde_trace           *trace;
    const struct snd_spans_calls *calls;
    struct snd_spans_totals      *totals;
};

static enum sonde_status pack_all(void *user, struct snd_ahead_writer *writer,
                                  struct sonde_error *err)
{
    const struct walk_ahead *w = user;
    struct snd_spans_calls   packing = snd_spanrecords_pack(w->calls, writer);

    return walk_here(w->trace, &packing, w->totals, err);
}

static enum sonde_status take_all(struct snd_ahead *ahead, struct snd_span_replay *replay,
                                  struct sonde_error *err)
{
    const struct snd_block *block;

    while ((block = snd_ahead_next(ahead)) != NULL)
        if (!snd_spanrecords_replay(replay, block))
            break;
    if (block)
        snd_ahead_stop(ahead);
    enum sonde_status st = snd_ahead_end(ahead, err);
    return st == SONDE_OK && replay->failed
               ? snd_fail(err, SONDE_E_NOMEM, "out of memory for the ranges that are open")
               : st;
}

enum sonde_status snd_spans_walk(struct sonde_trace *trace, const struct snd_spans_calls *calls,
                                 struct snd_spans_totals *totals, struct sonde_error *err)
{
    struct walk_ahead         w = { trace, calls, totals };
    struct snd_span_replay    replay;
    struct snd_ahead          ahead;
    const struct snd_devices *devices;
    enum sonde_status         st;

    if (!calls->ahead || !snd_ahead_pays(trace))
        return walk_here(trace, calls, totals, err);
    st = snd_trace_devices_by_time(trace, &devices, err); /* both sides ask for them */
    if (st != SONDE_OK)
        return st;
    if (!snd_spanrecords_begin(&replay, trace, calls))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    st = snd_ahead_begin(&ahead, pack_all, &w) ? take_all(&ahead, &replay, err)
                                               : walk_here(trace, calls, totals, err);
    snd_spanrecords_release(&replay);
    return st;
}
