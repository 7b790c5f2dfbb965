/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events/event_walk.c - the walk that collects events: a row when a range opens, completed when it
 * closes; for memory allocated or freed outside any range; and for each call of a Python function.
 */
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "model/events/event_rows.h"
#include "model/torch_stacks.h"

static void give_up(struct sonde_events *e)
{
    snd_assembly_stop(&e->assembly);
}

static uint32_t add_row(struct sonde_events *e, uint32_t thread, int64_t start_ns)
{
    uint32_t row = snd_rows_add(&e->rows, thread, start_ns);

    if (row == UINT32_MAX)
        give_up(e);
    return row;
}

/* --------------------------------------------------------------------- ranges */

static uint32_t canonical(const struct sonde_events *e, uint32_t name)
{
    if (name < e->trace->names.count && (e->assembly.name_flags[name] & SND_NAME_STEP))
        return e->own[SND_OWN_STEP];
    return name;
}

static uint32_t number_kind(struct sonde_events *e, uint32_t process, const struct snd_range *r,
                            unsigned flags)
{
    const struct snd_row_kind kind = { .flops = r->flops,
                                       .macs = r->macs,
                                       .moved_bytes = r->moved_bytes,
                                       .process = process,
                                       .name = r->name,
                                       .shown_name = canonical(e, r->name),
                                       .shapes = r->shapes,
                                       .stack = r->stack,
                                       .module = r->module,
                                       .strides = r->strides,
                                       .arguments = r->arguments,
                                       .overload = r->overload,
                                       .fwd_thread = r->fwd_thread,
                                       .keywords = r->keywords,
                                       .flags = (uint8_t)flags,
                                       .scope = r->scope,
                                       .is_op = r->is_op };

    return snd_kind_number(e, &kind);
}

static void set_kind(struct sonde_events *e, uint32_t row, uint32_t kind)
{
    if (kind == UINT32_MAX)
        give_up(e);
    else
        e->rows.kind[row] = kind;
}

static void add_extra(struct sonde_events *e, uint32_t row, const struct snd_range *r)
{
    if (r->cpu_bytes == 0 && r->device_bytes == 0 && r->child_cpu_bytes == 0 &&
        r->child_device_bytes == 0 && r->launched_ns == 0 && r->launched_inside_ns == 0 &&
        !r->is_back)
        return;
    if (!snd_grow(&e->extras, &e->extra_room, e->extra_count, sizeof *e->extras)) {
        give_up(e);
        return;
    }
    e->extras[e->extra_count++] =
        (struct snd_row_extra){ .cpu_bytes = r->cpu_bytes,
                                .device_bytes = r->device_bytes,
                                .child_cpu_bytes = r->child_cpu_bytes,
                                .child_device_bytes = r->child_device_bytes,
                                .device_ns = snd_add(r->launched_ns, r->launched_inside_ns),
                                .self_device_ns = r->launched_ns,
                                .back_sequence = r->back_sequence,
                                .back_thread = r->back_thread,
                                .is_back = r->is_back };
    e->rows.extra[row] = e->extra_count;
    e->has_back = e->has_back || r->is_back;
}

/* A call of a GPU's API has neither memory nor work of its own. */
static void add_api(struct sonde_events *e, const struct snd_lane *lane, uint32_t row,
                    const struct snd_range *r)
{
    const struct snd_open_range *owner = snd_torchgpu_owner(lane);

    if (!snd_grow(&e->gpus, &e->gpu_room, e->gpu_count, sizeof *e->gpus)) {
        give_up(e);
        return;
    }
    e->gpus[e->gpu_count++] = (struct snd_row_gpu){ .correlation = SND_API_CORRELATION(r->api),
                                                    .function = snd_api_function(r->api),
                                                    .owner = owner ? (int32_t)owner->range.node
                                                                   : -1 };
    e->rows.extra[row] = e->gpu_count;
}

static void set_sequence(struct sonde_events *e, uint32_t row, int64_t sequence)
{
    if (sequence != SND_NO_SEQUENCE)
        e->rows.sequence[row] = (uint64_t)sequence + 1;
}

static void set_parent(struct sonde_events *e, uint32_t row, const struct snd_open_range *parent)
{
    e->rows.parent[row] = parent ? (int32_t)parent->range.node : -1;
}

/* As snd_range_folds() has it; a parent that is asynchronous is not the parent in the end. */
static void see_family(struct sonde_events *e, const struct snd_row_kind *kind,
                       const struct snd_open_range *parent)
{
    e->may_fold |= parent && kind->is_op && parent->range.is_op &&
                   kind->shown_name == canonical(e, parent->range.name);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_events *e = user;
    uint32_t             row = add_row(e, lane->thread, range->range.start_ns);

    range->range.node = row != UINT32_MAX ? row : 0;
    if (row != UINT32_MAX)
        set_parent(e, row, parent);
}

static void on_move(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    (void)lane;
    set_parent(user, range->range.node, parent);
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_events    *e = user;
    const struct snd_range *r = &range->range;
    uint32_t                row = r->node;
    unsigned                flags = (r->is_async ? SONDE_EVENT_IS_ASYNC : 0) |
                     (r->scope == SONDE_SCOPE_USER ? SONDE_EVENT_IS_USER : 0) |
                     (r->unfinished ? SONDE_EVENT_IS_UNFINISHED : 0) |
                     (r->api != 0 ? SONDE_EVENT_IS_API : 0);

    snd_torchgpu_close(&e->gpu, lane, range, parent);
    e->rows.end_ns[row] = snd_add(r->start_ns, r->total_ns);
    e->rows.self_ns[row] = snd_sub(r->total_ns, r->child_ns);
    set_sequence(e, row, r->sequence);
    set_kind(e, row, number_kind(e, lane->process, r, flags));
    if (r->api != 0)
        add_api(e, lane, row, r);
    else
        add_extra(e, row, r);
    e->has_async = e->has_async || r->is_async;
    if (!e->may_fold && e->kind_count > 0)
        see_family(e, snd_kind_of(e, row), parent);
}

/* --------------------------------------------------------------------- leaves */

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    return number_kind(user, lane->process, shared,
                       shared->scope == SONDE_SCOPE_USER ? SONDE_EVENT_IS_USER : 0);
}

/* It is inside a backward function. */
static __attribute__((noinline)) void lend_back(struct sonde_events *e, uint32_t row,
                                                const struct snd_open_range *above)
{
    add_extra(e, row,
              &(struct snd_range){ .is_back = true,
                                   .back_sequence = above->range.back_sequence,
                                   .back_thread = above->range.back_thread });
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct sonde_events *e = user;
    uint32_t             row = add_row(e, lane->thread, leaf->start_ns);

    if (row == UINT32_MAX)
        return;
    e->rows.end_ns[row] = leaf->end_ns;
    e->rows.self_ns[row] = snd_sub(leaf->end_ns, leaf->start_ns);
    e->rows.kind[row] = kind;
    if (known->has_sequence && leaf->has_sequence)
        e->rows.sequence[row] = (leaf->sequence & INT64_MAX) + 1;
    if (parent)
        set_parent(e, row, parent);
    if (above && above->range.is_back)
        lend_back(e, row, above);
    if (parent && !e->may_fold)
        see_family(e, &e->kinds[kind], parent);
}

/* --------------------------------------------------------------------- memory */

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_events   *e = user;
    bool                   is_cpu = SND_DEVICE_TYPE(SND_LOW(words[1])) == 0;
    struct snd_live_change change = snd_live_event(&e->live, lane->process, words);

    if (!change.known)
        return;
    if (e->live.failed)
        give_up(e);
    bool shared = snd_share_memory(&e->assembly, lane, words, change.counted);
    if (innermost)
        snd_range_memory(&innermost->range, words, change.counted);
    if (innermost || shared)
        return;
    uint32_t row = add_row(e, lane->thread, ns);
    if (row == UINT32_MAX)
        return;
    const struct snd_range r = { .name = e->own[SND_OWN_MEMORY],
                                 .cpu_bytes = is_cpu ? change.counted : 0,
                                 .device_bytes = is_cpu ? 0 : change.counted };
    e->rows.end_ns[row] = ns;
    set_kind(e, row, number_kind(e, lane->process, &r, SONDE_EVENT_IS_MEMORY));
    add_extra(e, row, &r);
}

/* ----------------------------------------------------------- Python's functions */

/* The number that its text has among the names, or UINT32_MAX when memory is out. */
static uint32_t name_function(struct sonde_events *e, uint32_t process, uint32_t frame)
{
    struct snd_key      key = { process, frame, 0 };
    struct sonde_buffer text = { 0 };
    uint32_t            number;

    if (!snd_map_get(&e->function_names, key, &number)) {
        snd_function_text(e->trace, process, frame, &text);
        bool added = !text.failed &&
                     snd_texts_add(&e->functions, snd_buf_string(&text), text.length, &number) &&
                     snd_map_put(&e->function_names, key, number);
        sonde_buffer_release(&text);
        if (!added)
            return UINT32_MAX;
    }
    return e->trace->names.count + SND_OWN_COUNT + number;
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_events *e = user;

    if (SND_EVENT_KIND(words[0]) != SND_EV_FUNCTION)
        return;
    int64_t  took = snd_scale_ticks(&lane->from->scale, SND_FUNCTION_TICKS(words[2]));
    uint32_t name = name_function(e, lane->process, SND_LOW(words[1]));
    uint32_t row = UINT32_MAX;
    if (name != UINT32_MAX && snd_grow(&e->calls, &e->call_room, e->call_count, sizeof *e->calls))
        row = add_row(e, snd_subject_thread(e->trace, lane->thread, words), snd_sub(ns, took));
    if (row == UINT32_MAX) {
        give_up(e);
        return;
    }
    e->calls[e->call_count++] = (struct snd_row_call){ .id = SND_LOW(words[3]),
                                                       .parent = SND_HIGH(words[3]) };
    e->rows.extra[row] = e->call_count;
    e->rows.end_ns[row] = snd_add(e->rows.start_ns[row], took);
    e->rows.self_ns[row] = took;
    set_kind(e, row,
             number_kind(e, lane->process, &(struct snd_range){ .name = name },
                         SONDE_EVENT_IS_FUNCTION));
}

/* ------------------------------------------------------------------- the walk */

static void on_attribute(void *user, struct snd_lane *lane, struct snd_open_range *range,
                         uint8_t key)
{
    struct sonde_events *e = user;

    if (key == SND_ATTR_API)
        snd_torchgpu_call(&e->gpu, lane, range);
}

static bool keep_threads(struct sonde_events *e)
{
    uint32_t count = e->trace->thread_count;

    e->torch_threads = calloc((size_t)count + 1, sizeof *e->torch_threads);
    for (uint32_t i = 0; e->torch_threads && i < count; i++)
        e->torch_threads[i] = snd_torch_thread(&e->assembly, &e->assembly.lanes[i]);
    return e->torch_threads != NULL;
}

enum sonde_status snd_events_walk(struct sonde_events *e, struct sonde_error *err)
{
    const struct snd_consumer consumer = { .user = e,
                                           .flops = e->options.flops,
                                           .open = on_open,
                                           .close = on_close,
                                           .memory = on_memory,
                                           .other = on_other,
                                           .attribute = on_attribute,
                                           .move = on_move,
                                           .kind = on_kind,
                                           .leaf = on_leaf };
    enum sonde_status         status;

    if (!snd_rows_reserve(&e->rows, e->trace))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the events");
    status = snd_torchgpu_begin(&e->gpu, e->trace, err);
    if (status == SONDE_OK)
        status = snd_trace_devices_by_time(e->trace, &e->gpu.devices, err);
    if (status == SONDE_OK)
        status = snd_assemble(&e->assembly, e->trace, SONDE_BY_TIME, &consumer, 1, err);
    if (status == SONDE_OK && !snd_events_add_gpu(e))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    if (status == SONDE_OK && !keep_threads(e))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    snd_assembly_release(&e->assembly);
    snd_live_release(&e->live);
    snd_torchgpu_release(&e->gpu);
    snd_map_release(&e->function_names);
    return status;
}
