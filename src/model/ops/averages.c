/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/averages.c - one row for each group of ranges, in one pass, keeping no event.
 *
 * A range that is the only child of one of the same name is folded into it, as torch.profiler
 * does. Whether it stays the only one is known when the next child begins or the parent ends:
 * until then its parent holds it (struct snd_open_range).
 */
#include "model/ops/averages.h"

#include <stdlib.h>

#include "base/data/map.h"
#include "base/struct_size.h"
#include "format/fields.h"
#include "model/kept.h"
#include "read/said/trace_facts.h"
#include "read/said/trace_metadata.h"
#include "read/walk/kinds.h"
#include "sonde/model.h"

/* ------------------------------------------------ memory that no range took */

static bool begin_unclaimed(struct snd_unclaimed *unclaimed, uint32_t threads)
{
    unclaimed->threads = calloc((size_t)threads + 1, sizeof *unclaimed->threads);
    unclaimed->count = unclaimed->threads ? threads : 0;
    return unclaimed->threads != NULL;
}

static bool add_unclaimed(struct snd_unclaimed *unclaimed, uint32_t thread,
                          const struct snd_unclaimed_item *item)
{
    struct snd_unclaimed_list *list = &unclaimed->threads[thread];

    if (!snd_grow(&list->items, &list->room, list->count, sizeof *list->items))
        return false;
    list->items[list->count++] = *item;
    return true;
}

/* A call of a function returns on the thread, that began then: what came since is its own. */
static void claim(struct snd_unclaimed *unclaimed, uint32_t thread, int64_t start_ns)
{
    struct snd_unclaimed_list *list = &unclaimed->threads[thread];

    while (list->count > 0 && list->items[list->count - 1].ns >= start_ns)
        list->count--;
}

static void release_unclaimed(struct snd_unclaimed *unclaimed)
{
    for (uint32_t i = 0; i < unclaimed->count; i++)
        free(unclaimed->threads[i].items);
    free(unclaimed->threads);
    *unclaimed = (struct snd_unclaimed){ 0 };
}

#define STACK_DEPTH_DEFAULT 5u

/* ------------------------------------------------------------------- ranges */

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    (void)range;
    if (parent && parent->holds) { /* not an only child after all */
        snd_average_count(user, lane, &parent->held, false);
        parent->holds = false;
    }
}

/* Takes the place of the only child: its children become the range's own. */
static void fold(struct snd_range *into, const struct snd_range *child, bool is_torch)
{
    into->child_ns = child->child_ns;
    into->child_cpu_bytes = child->child_cpu_bytes;
    into->child_device_bytes = child->child_device_bytes;
    into->launched_ns = snd_add(into->launched_ns, child->launched_ns);
    into->launched_inside_ns = child->launched_inside_ns;
    if (into->flops <= 0 && !is_torch) {
        into->flops = child->flops;
        into->macs = child->macs;
        into->moved_bytes = child->moved_bytes;
    }
    if (into->shapes == 0)
        into->shapes = child->shapes;
    if (into->stack == 0)
        into->stack = child->stack;
    if (into->module == 0)
        into->module = child->module;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_averages *a = user;

    range->range.node = range->place; /* for who is beside: how deep it lies */
    if (a->gpu.devices && snd_torchgpu_close(&a->gpu, lane, range, parent) && range->holds) {
        snd_average_count(a, lane, &range->held, false); /* not an only child after all */
        range->holds = false;
    }
    if (range->holds && range->range.is_async)
        snd_average_count(a, lane, &range->held, true); /* it has no children */
    else if (range->holds)
        fold(&range->range, &range->held, a->options.flops == SONDE_FLOPS_TORCH);
    if (parent && parent->range.children == 1 && snd_range_folds(&parent->range, &range->range) &&
        snd_average_canonical(a, parent->range.name) ==
            snd_average_canonical(a, range->range.name)) {
        parent->held = range->range;
        parent->holds = true;
        return;
    }
    snd_average_count(a, lane, &range->range, parent == NULL);
}

static void on_attribute(void *user, struct snd_lane *lane, struct snd_open_range *range,
                         uint8_t key)
{
    struct sonde_averages *a = user;

    if (key == SND_ATTR_API)
        snd_torchgpu_call(&a->gpu, lane, range);
}

/* ------------------------------------------------------------------- memory */

/* Memory that belongs to no range has a row of its own, as torch's unclaimed records. */
static void count_unclaimed(struct sonde_averages *a, struct snd_lane *lane, int64_t ns,
                            int64_t bytes, bool is_cpu)
{
    const struct snd_range  none = { 0 };
    struct snd_average_row *row = snd_average_find_row(a, lane, &none,
                                                       a->trace->names.count + SND_AVERAGE_MEMORY);

    if (!row)
        return;
    row->count++;
    if (ns < row->first_ns) {
        row->first_ns = row->first_end_ns = ns;
        row->first_thread = lane->thread;
    }
    int64_t                       cpu = is_cpu ? bytes : 0, device = is_cpu ? 0 : bytes;
    const struct snd_average_more more = {
        .cpu_bytes = cpu, .self_cpu_bytes = cpu, .device_bytes = device, .self_device_bytes = device
    };
    if (!snd_average_add_more(a, row, &more))
        snd_average_give_up(a);
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_averages *a = user;
    bool                   is_cpu = SND_DEVICE_TYPE(SND_LOW(words[1])) == 0;
    int64_t                bytes = snd_net_bytes(words);
    bool                   is_known = true;

    a->totals.has_memory = true;
    a->totals.has_device_memory |= !is_cpu;
    if (a->tracks_live) {
        struct snd_live_change change = snd_live_event(&a->live, lane->process, words);
        bytes = change.counted;
        is_known = change.known;
        if (a->live.failed)
            snd_average_give_up(a);
    }
    if (a->beside && a->beside->sized)
        a->beside->sized(a->beside->user, lane, ns, words, bytes);
    if (!is_known)
        return;
    bool shared = snd_share_memory(a->assembly, lane, words, bytes);
    if (innermost)
        snd_range_memory(&innermost->range, words, bytes);
    else if (a->only_beside)
        ; /* nobody looks at the row of what no range took */
    else if (!shared && !a->unclaimed.threads)
        count_unclaimed(a, lane, ns, bytes, is_cpu);
    else if (!shared && !add_unclaimed(&a->unclaimed, lane->thread,
                                       &(struct snd_unclaimed_item){ ns, bytes, is_cpu }))
        snd_average_give_up(a);
}

/* What no Python function has claimed either. */
static void count_rest(struct sonde_averages *a)
{
    for (uint32_t i = 0; i < a->unclaimed.count; i++)
        for (uint32_t k = 0; k < a->unclaimed.threads[i].count; k++) {
            const struct snd_unclaimed_item *item = &a->unclaimed.threads[i].items[k];
            count_unclaimed(a, &a->assembly->lanes[i], item->ns, item->bytes, item->is_cpu);
        }
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_averages *a = user;

    if (SND_EVENT_KIND(words[0]) == SND_EV_FUNCTION)
        claim(&a->unclaimed, snd_subject_thread(a->trace, lane->thread, words),
              snd_sub(ns, snd_scale_ticks(&lane->from->scale, SND_FUNCTION_TICKS(words[2]))));
}

/* ---------------------------------------------------------------- the whole */

static void release(struct sonde_averages *a)
{
    snd_average_release_rows(a);
    release_unclaimed(&a->unclaimed);
    if (a->gpu.trace)
        snd_torchgpu_release(&a->gpu);
}

/* Where calls of Python functions are in the trace, they claim memory. False: out of memory. */
static bool prepare_claims(struct sonde_averages *a)
{
    struct sonde_text value;
    bool              has_calls = false;

    for (uint32_t i = 0; i < a->trace->process_count; i++)
        has_calls |= snd_meta_find(a->trace, i, SND_META_PYTHON_FUNCTIONS, &value);
    return !has_calls || begin_unclaimed(&a->unclaimed, a->trace->thread_count);
}

static enum sonde_status no_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the averages");
}

/* Ready for a walk; `by_time`: it must be one. */
static enum sonde_status prepare(struct sonde_averages *a, bool *by_time, struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       status = snd_trace_kinds(a->trace, &kinds, err);

    if (status != SONDE_OK)
        return status;
    a->tracks_live = kinds->unsized_free;
    /* A backward range may be of another thread's forward; memory may be charged to ranges of other threads. */
    *by_time = a->beside || (a->options.groups & SONDE_GROUP_STACK) ||
               (a->trace->thread_count > 1 && kinds->events[SND_EV_ALLOC]);
    if (!snd_average_begin_groups(a) || !prepare_claims(a))
        return no_memory(err);
    return snd_trace_has_works(a->trace) ? snd_torchgpu_begin(&a->gpu, a->trace, err) : SONDE_OK;
}

static struct snd_consumer make_consumer(struct sonde_averages *a)
{
    struct snd_consumer consumer = { .user = a,
                                     .flops = a->options.flops,
                                     .open = on_open,
                                     .close = on_close,
                                     .memory = on_memory,
                                     .other = a->unclaimed.threads ? on_other : NULL,
                                     .attribute = on_attribute };

    if (a->only_beside)
        consumer.by_process = a->beside->by_process;
    if (snd_average_takes_leaves(a)) {
        consumer.kind = snd_average_kind;
        consumer.leaf = snd_average_leaf;
    }
    if (!a->beside)
        consumer.division = &snd_average_division;
    return consumer;
}

/* What is counted once the walk is over. False: out of memory. */
static bool count_last(struct sonde_averages *a)
{
    if (!a->only_beside)
        count_rest(a);
    a->totals.events = a->assembly->stats.walk.events;
    a->totals.ranges = a->assembly->stats.ranges;
    a->totals.unmatched_frees = a->live.unmatched;
    a->totals.uses_gpu = snd_gpus_are_recorded(a->trace);
    return !a->gpu.devices || snd_average_add_gpu(a);
}

static enum sonde_status walk(struct sonde_averages *a, struct sonde_error *err)
{
    struct snd_assembly assembly;
    bool                by_time;
    enum sonde_status   status = prepare(a, &by_time, err);

    if (status != SONDE_OK)
        return status;
    struct snd_consumer consumers[2] = { make_consumer(a) };
    if (a->beside)
        consumers[1] = *a->beside;
    a->assembly = &assembly;
    status = snd_assemble(&assembly, a->trace, by_time ? SONDE_BY_TIME : SONDE_BY_THREAD, consumers,
                          a->beside ? 2 : 1, err);
    if (status == SONDE_OK && !count_last(a))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    snd_assembly_release(&assembly);
    a->assembly = NULL;
    return status;
}

static void free_averages(void *averages)
{
    sonde_averages_free(averages);
}

/* What averages are told apart by. */
static uint64_t options_key(const struct sonde_averages_options *options)
{
    uint32_t depth = 0;

    if (options->groups & SONDE_GROUP_STACK)
        depth = options->stack_depth < SND_STACK_MAX ? options->stack_depth : SND_STACK_MAX;
    return (uint64_t)options->groups << 32 | depth << 8 | (unsigned)options->top_level << 4 |
           (unsigned)options->flops;
}

static enum sonde_status make(struct sonde_trace                  *trace,
                              const struct sonde_averages_options *options,
                              struct sonde_averages **out, struct sonde_error *err)
{
    struct sonde_averages *a = *out = calloc(1, sizeof *a);

    if (!a)
        return no_memory(err);
    a->trace = trace;
    a->options = *options;
    if (a->options.stack_depth == 0)
        a->options.stack_depth = STACK_DEPTH_DEFAULT;
    if (a->options.stack_depth > SND_STACK_MAX)
        a->options.stack_depth = SND_STACK_MAX;
    return SONDE_OK;
}

/* All ranges are counted. */
static void complete(struct sonde_averages *a)
{
    snd_average_end_groups(a);
    snd_average_sort(a);
    a->beside = NULL;
}

/* Those by name, of rows by name and shape that are kept; NULL: there are none, or their sums would not be exact. */
static const struct sonde_averages *find_finer(const struct sonde_trace            *trace,
                                               const struct sonde_averages_options *options)
{
    struct sonde_averages_options by_shape = *options;

    if (options->groups != 0)
        return NULL;
    by_shape.groups = SONDE_GROUP_SHAPE;
    const struct sonde_averages *finer = snd_kept_lend(trace, free_averages,
                                                       options_key(&by_shape));
    return finer && !finer->is_inexact ? finer : NULL;
}

enum sonde_status sonde_averages_new(struct sonde_trace                  *trace,
                                     const struct sonde_averages_options *options,
                                     struct sonde_averages **out, struct sonde_error *err)
{
    struct sonde_averages_options used = SONDE_AVERAGES_OPTIONS_INIT;

    *out = NULL;
    enum sonde_status status = snd_struct_take(options, &used, sizeof used,
                                               "SONDE_AVERAGES_OPTIONS_INIT", err);
    if (status != SONDE_OK)
        return status;
    uint64_t key = options_key(&used);
    *out = snd_kept_lend(trace, free_averages, key);
    if (*out)
        return SONDE_OK;
    const struct sonde_averages *finer = find_finer(trace, &used);
    if (finer) {
        bool exact = true;
        status = make(trace, &used, out, err);
        if (status == SONDE_OK && !snd_average_sum_names(*out, finer, &exact))
            status = no_memory(err);
        if (status == SONDE_OK && exact)
            complete(*out);
        if (status != SONDE_OK || !exact) {
            sonde_averages_free(*out);
            *out = NULL;
        }
    }
    if (status == SONDE_OK && !*out)
        status = snd_averages_beside(trace, &used, NULL, out, err);
    if (status == SONDE_OK)
        snd_kept_add(trace, free_averages, key, *out);
    return status;
}

enum sonde_status snd_averages_beside(struct sonde_trace                  *trace,
                                      const struct sonde_averages_options *options,
                                      const struct snd_consumer           *beside,
                                      struct sonde_averages **out, struct sonde_error *err)
{
    static const struct sonde_averages_options by_name = SONDE_AVERAGES_OPTIONS_INIT;
    const struct sonde_averages_options       *used = options ? options : &by_name;
    struct sonde_averages                     *a;

    if (out)
        *out = NULL;
    if (used->groups & (SONDE_GROUP_OPERATOR | SONDE_GROUP_GRID | SONDE_GROUP_DEVICE))
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "averages cannot be grouped by operator, grid or device: those are groups "
                        "of the view 'kernels'");
    enum sonde_status status = make(trace, used, &a, err);
    if (status != SONDE_OK)
        return status;
    a->beside = beside;
    a->only_beside = !out;
    status = walk(a, err);
    if (status != SONDE_OK || !out) {
        sonde_averages_free(a);
        return status;
    }
    complete(a);
    *out = a;
    return SONDE_OK;
}

/* ------------------------------------------------- of a walk that somebody makes */

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct sonde_averages *a = user;

    a->assembly = assembly;
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct sonde_averages *a = user;

    (void)assembly;
    a->is_done = count_last(a);
    a->assembly = NULL;
}

enum sonde_status snd_averages_wait(struct sonde_trace                  *trace,
                                    const struct sonde_averages_options *options,
                                    struct sonde_averages **out, struct sonde_error *err)
{
    bool              by_time;
    enum sonde_status status = make(trace, options, out, err);

    if (status == SONDE_OK)
        status = prepare(*out, &by_time, err);
    if (status != SONDE_OK) {
        sonde_averages_free(*out);
        *out = NULL;
        return status;
    }
    struct sonde_averages *a = *out;
    a->consumer = make_consumer(a);
    a->consumer.by_time = by_time;
    a->consumer.begin = on_begin;
    a->consumer.end = on_end;
    snd_wait(trace, &a->consumer);
    return SONDE_OK;
}

enum sonde_status snd_averages_finish(struct sonde_averages **averages, struct sonde_error *err)
{
    struct sonde_averages *a = *averages;
    enum sonde_status      status = snd_wait_walk(a->trace, a->is_done, err);

    if (status == SONDE_OK && !a->is_done)
        status = no_memory(err);
    if (status != SONDE_OK) {
        sonde_averages_free(a);
        *averages = NULL;
        return status;
    }
    complete(a);
    snd_kept_add(a->trace, free_averages, options_key(&a->options), a);
    return SONDE_OK;
}

void sonde_averages_free(struct sonde_averages *averages)
{
    if (!averages || snd_kept_return(averages->trace, averages))
        return;
    snd_wait_end(averages->trace, &averages->consumer);
    release(averages);
    free(averages);
}

size_t sonde_averages_count(const struct sonde_averages *averages)
{
    return averages->row_count;
}

const struct sonde_averages_totals *sonde_averages_totals(const struct sonde_averages *averages)
{
    return &averages->totals;
}
