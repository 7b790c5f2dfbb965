/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/launches.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "base/text/compare.h"
#include "model/kept.h"
#include "model/torch_stacks.h"
#include "read/walk/kinds.h"

static void give_up(struct snd_launches *l)
{
    snd_assembly_stop(l->assembly);
}

/* ------------------------------------------------------------------- places */

static uint32_t module_of(const struct snd_open_range *range)
{
    return range->range.module != 0 ? range->range.module : range->around.module;
}

static uint32_t stack_of(const struct snd_open_range *range)
{
    return range->range.stack != 0 ? range->range.stack : range->around.stack;
}

void snd_where_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    (void)user, (void)lane;
    range->around.module = parent ? module_of(parent) : 0;
    range->around.stack = parent ? stack_of(parent) : 0;
}

/* What runs backward belongs where its forward operator was called. */
static const struct snd_forward *
find_forward(const struct snd_launches *l, const struct snd_lane *lane, const struct snd_range *r)
{
    struct snd_key key = { SND_PAIR(r->back_thread, lane->process), (uint64_t)r->back_sequence, 0 };
    uint32_t       at;

    return r->is_back && snd_map_get(&l->by_sequence, key, &at) ? &l->forwards[at] : NULL;
}

static uint32_t add_place(struct snd_launches *l, const struct snd_where *where)
{
    struct snd_key key = { SND_PAIR(where->name, where->process),
                           SND_PAIR(where->module, where->stack), where->shapes };
    uint32_t       at;

    if (snd_map_get(&l->by_place, key, &at))
        return at;
    if (!snd_grow(&l->places, &l->place_room, l->place_count, sizeof *l->places) ||
        !snd_map_put(&l->by_place, key, l->place_count))
        return UINT32_MAX;
    l->places[l->place_count] = *where;
    return l->place_count++;
}

/*
 * The path of what runs backward in compiled code: COMPILED ("REL|PATH"), within its forward operator's
 * module. A text of l->within.
 */
static uint32_t module_within(struct snd_launches *l, uint32_t module, const struct snd_text *text)
{
    const char         *bar = memchr(text->bytes, '|', text->length);
    size_t              length = bar ? (size_t)(bar - text->bytes) : text->length;
    struct sonde_buffer path = { 0 };
    uint32_t            at = SONDE_NONE;

    if (module != SONDE_NONE && length == 0)
        return module;
    if (module != SONDE_NONE) {
        struct sonde_text above = snd_where_module(l, &(struct snd_where){ .module = module });
        snd_buf_put(&path, above.bytes, above.length);
        snd_buf_put(&path, ".", 1);
        snd_buf_put(&path, text->bytes, length);
    } else if (bar) {
        snd_buf_put(&path, bar + 1, text->length - length - 1);
    }
    if (path.length > 0 && !snd_texts_add(&l->within, path.bytes, path.length, &at))
        give_up(l);
    sonde_buffer_release(&path);
    return at == SONDE_NONE ? SONDE_NONE : SND_WHERE_WITHIN | at;
}

uint32_t snd_where_now(struct snd_launches *l, const struct snd_lane *lane,
                       const struct snd_open_range *innermost)
{
    struct snd_where where = { .process = lane->process, .name = SONDE_NONE, .module = SONDE_NONE };

    if (innermost) {
        const struct snd_range   *r = &innermost->range;
        const struct snd_forward *forward = find_forward(l, lane, r);
        uint32_t                  module = r->is_back ? 0 : module_of(innermost);
        bool is_step = snd_name_judge(l->trace->names.items[r->name]) & SND_NAME_STEP;
        where.name = is_step ? SND_WHERE_STEP : r->name;
        where.stack = r->is_back ? 0 : stack_of(innermost);
        where.shapes = r->shapes;
        if (forward) {
            module = forward->module;
            where.stack = forward->stack;
        }
        where.module = module != 0 ? snd_name_of(lane->from, module) : SONDE_NONE;
        uint32_t compiled = r->is_back && r->compiled ? snd_name_of(lane->from, r->compiled)
                                                      : SONDE_NONE;
        if (compiled != SONDE_NONE)
            where.module = module_within(l, where.module, &l->trace->names.items[compiled]);
    }
    return add_place(l, &where);
}

struct sonde_text snd_where_name(const struct snd_launches *l, const struct snd_where *where)
{
    if (where->name == SONDE_NONE)
        return (struct sonde_text){ "(no range)", 10 };
    if (where->name == SND_WHERE_STEP)
        return (struct sonde_text){ "ProfilerStep*", 13 };
    const struct snd_text *text = &l->trace->names.items[where->name];
    return (struct sonde_text){ text->bytes, text->length };
}

struct sonde_text snd_where_module(const struct snd_launches *l, const struct snd_where *where)
{
    if (where->module == SONDE_NONE)
        return (struct sonde_text){ "", 0 };
    bool                   within = where->module & SND_WHERE_WITHIN;
    const struct snd_text *text = within ? &l->within.items[where->module & ~SND_WHERE_WITHIN]
                                         : &l->trace->names.items[where->module];
    const char            *bar = memchr(text->bytes, '|', text->length); /* its class follows */
    return (struct sonde_text){ text->bytes, bar ? (size_t)(bar - text->bytes) : text->length };
}

void snd_where_line(const struct snd_launches *l, const struct snd_where *where,
                    struct sonde_buffer *text)
{
    if (where->stack != 0)
        snd_line_text(l->trace, where->process, where->stack, text);
}

/* ---------------------------------------------------------------- the walk */

/* Calls in which the host waits for the GPU, whatever they are asked to do. */
static bool judge_waits(const struct snd_text *name)
{
    static const char *const all[] = {
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize",
        "cudaEventSynchronize",
        "cudaThreadSynchronize",
        "cudaMemcpy",
        "cudaMemcpy2D",
        "cudaMemcpy3D",
        "cudaMemcpyPeer",
        "cudaMemcpyToSymbol",
        "cudaMemcpyFromSymbol",
        "cudaFree",
        "cudaFreeHost",
        "cuCtxSynchronize",
        "cuStreamSynchronize",
        "cuEventSynchronize",
        "cuMemcpy",
        "cuMemcpyHtoD",
        "cuMemcpyDtoH",
        "cuMemcpyDtoD",
        "cuMemcpy2D",
        "cuMemcpy3D",
        "cuMemFree",
        "cuMemFreeHost",
    };

    for (size_t i = 0; i < SND_COUNT_OF(all); i++)
        if (snd_equals_at(name->bytes, name->length, all[i]))
            return true;
    return false;
}

const struct snd_open_range *snd_where_caller(const struct snd_lane *lane)
{
    for (uint32_t i = lane->depth; i-- > 0;)
        if (lane->open[i].range.api == 0 && !lane->open[i].range.hidden)
            return &lane->open[i];
    return NULL;
}

/* A copy that the host waited for: of memory that is not pinned, whatever its call is named. */
static bool outlasts_copy(const struct snd_launches *l, const struct snd_launch *launch)
{
    uint32_t                      count = 0;
    const struct snd_device_item *item = l->assembly->devices
                                             ? snd_devices_of(l->assembly->devices, launch->process,
                                                              launch->correlation, &count)
                                             : NULL;

    for (; count > 0; count--, item++)
        if (snd_device_work(l->trace, item)->kind == SND_WORK_COPY &&
            item->start_ns >= launch->begin_ns &&
            snd_add(item->start_ns, item->duration_ns) <= launch->end_ns)
            return true;
    return false;
}

static void add_launch(struct snd_launches *l, const struct snd_lane *lane,
                       const struct snd_range *r)
{
    if (!snd_grow(&l->items, &l->room, l->count, sizeof *l->items)) {
        give_up(l);
        return;
    }
    struct snd_launch *launch = &l->items[l->count];
    *launch = (struct snd_launch){ .begin_ns = r->start_ns,
                                   .end_ns = snd_add(r->start_ns, r->total_ns),
                                   .process = lane->process,
                                   .thread = lane->thread,
                                   .correlation = SND_API_CORRELATION(r->api),
                                   .name = r->name };
    launch->where = snd_where_now(l, lane, snd_where_caller(lane));
    launch->waits = judge_waits(&l->trace->names.items[r->name]) || outlasts_copy(l, launch);
    if (launch->where == UINT32_MAX)
        give_up(l);
    else
        l->count++;
}

/* Of operators with one sequence number the outermost has the line, the innermost the module. */
static void note_forward(struct snd_launches *l, const struct snd_lane *lane,
                         const struct snd_open_range *range)
{
    const struct snd_range *r = &range->range;
    uint32_t                thread = snd_torch_thread(l->assembly, lane), at;
    struct snd_key          key = { SND_PAIR(thread, lane->process), (uint64_t)r->sequence, 0 };
    struct snd_forward     *f;

    if (snd_map_get(&l->by_sequence, key, &at)) {
        f = &l->forwards[at];
        if (r->start_ns <= f->outer_ns) {
            f->outer_ns = r->start_ns;
            f->stack = stack_of(range);
        }
        if (r->start_ns > f->inner_ns) {
            f->inner_ns = r->start_ns;
            f->module = module_of(range);
        }
        return;
    }
    if (!snd_grow(&l->forwards, &l->forward_room, l->forward_count, sizeof *l->forwards) ||
        !snd_map_put(&l->by_sequence, key, l->forward_count)) {
        give_up(l);
        return;
    }
    l->forwards[l->forward_count++] = (struct snd_forward){ r->start_ns, r->start_ns,
                                                            stack_of(range), module_of(range) };
}

void snd_where_closed(struct snd_launches *l, const struct snd_lane *lane,
                      const struct snd_open_range *range)
{
    if (range->range.sequence >= 0 && !range->range.is_back)
        note_forward(l, lane, range);
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    (void)parent;
    if (range->range.api != 0)
        add_launch(user, lane, &range->range);
    else
        snd_where_closed(user, lane, range);
}

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct snd_launches *l = user;

    l->assembly = assembly;
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct snd_launches *l = user;

    (void)assembly;
    l->is_done = true;
}

/* ------------------------------------------------------------------ finding */

static int compare_launch(const void *x, const void *y)
{
    const struct snd_launch *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->thread, b->thread), SND_RISING(a->begin_ns, b->begin_ns),
                     SND_FALLING(a->end_ns, b->end_ns)); /* the outer one first */
}

static bool index_launches(struct snd_launches *l)
{
    uint32_t thread = 0;

    snd_sort(l->items, l->count, sizeof *l->items, compare_launch);
    l->first = calloc((size_t)l->trace->thread_count + 2, sizeof *l->first);
    if (!l->first)
        return false;
    for (uint32_t i = 0; i < l->count; i++) {
        const struct snd_launch *launch = &l->items[i];
        struct snd_key           key = { launch->process, launch->correlation, 0 };
        uint32_t                 other;
        while (thread <= launch->thread)
            l->first[thread++] = i;
        if (launch->correlation != 0 && !snd_map_get(&l->by_correlation, key, &other) &&
            !snd_map_put(&l->by_correlation, key, i))
            return false;
    }
    while (thread <= l->trace->thread_count)
        l->first[thread++] = l->count;
    return true;
}

const struct snd_launch *snd_launch_of(const struct snd_launches *l, uint32_t process,
                                       uint32_t correlation)
{
    uint32_t at;

    if (correlation == 0 ||
        !snd_map_get(&l->by_correlation, (struct snd_key){ process, correlation, 0 }, &at))
        return NULL;
    return &l->items[at];
}

/* Calls of the API nest at most once or twice, so that the latest few that began are all. */
#define NESTED_MAX 4u

const struct snd_launch *snd_launch_waiting(const struct snd_launches *l, uint32_t thread,
                                            int64_t ns)
{
    uint32_t low = l->first[thread], high = l->first[thread + 1], least = low;

    while (low < high) { /* the first that begins after it */
        uint32_t middle = low + (high - low) / 2;
        if (l->items[middle].begin_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = low, tried = 0; i-- > least && tried < NESTED_MAX; tried++)
        if (l->items[i].waits && l->items[i].end_ns > ns)
            return &l->items[i];
    return NULL;
}

static bool has_sequences(const struct sonde_trace *trace)
{
    for (uint32_t i = 0; i < trace->process_count; i++)
        for (uint32_t k = 0; k < trace->processes[i].tables.call_count; k++)
            if (trace->processes[i].tables.calls[k].record.flags & SND_CALL_SEQUENCE)
                return true;
    return false;
}

enum sonde_status snd_where_needs_close(struct sonde_trace *trace, bool *needs,
                                        struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       status = snd_trace_kinds(trace, &kinds, err);

    *needs = status == SONDE_OK && (kinds->attrs[SND_ATTR_SEQUENCE] || has_sequences(trace));
    return status;
}

/* Whether there may be a launch, or a forward operator with a sequence number. */
static enum sonde_status find_any(struct sonde_trace *trace, bool *found, struct sonde_error *err)
{
    const struct snd_kinds *kinds;

    *found = false;
    for (uint32_t i = 0; i < trace->process_count; i++)
        *found |= trace->processes[i].tables.work_count > 0;
    if (*found)
        return SONDE_OK;
    enum sonde_status status = snd_where_needs_close(trace, found, err);
    if (status == SONDE_OK)
        status = snd_trace_kinds(trace, &kinds, err);
    *found |= status == SONDE_OK && (kinds->events[SND_EV_API] || kinds->attrs[SND_ATTR_API]);
    return status;
}

static void free_launches(void *launches)
{
    snd_launches_free(launches);
}

enum sonde_status snd_launches_wait(struct sonde_trace *trace, struct snd_launches **out,
                                    struct sonde_error *err)
{
    bool found = true;

    *out = snd_kept_lend(trace, free_launches, 0);
    if (*out)
        return SONDE_OK;
    enum sonde_status    status = find_any(trace, &found, err);
    struct snd_launches *l = status == SONDE_OK ? calloc(1, sizeof *l) : NULL;
    if (!l)
        return status != SONDE_OK
                   ? status
                   : snd_fail(err, SONDE_E_NOMEM, "out of memory for the GPU's launches");
    *l = (struct snd_launches){ .trace = trace, .is_done = !found };
    l->consumer = (struct snd_consumer){ .user = l,
                                         .any_flops = true,
                                         .by_time = true,
                                         .begin = on_begin,
                                         .open = snd_where_open,
                                         .close = on_close,
                                         .end = on_end };
    if (found)
        snd_wait(trace, &l->consumer);
    *out = l;
    return SONDE_OK;
}

enum sonde_status snd_launches_finish(struct snd_launches **launches, struct sonde_error *err)
{
    struct snd_launches *l = *launches;

    if (l->first) /* lent */
        return SONDE_OK;
    enum sonde_status status = snd_wait_walk(l->trace, l->is_done, err);
    if (status == SONDE_OK && !index_launches(l))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the GPU's launches");
    if (status == SONDE_OK) {
        snd_kept_add(l->trace, free_launches, 0, l);
        return SONDE_OK;
    }
    snd_launches_free(l);
    *launches = NULL;
    return status;
}

enum sonde_status snd_launches_new(struct sonde_trace *trace, struct snd_launches **out,
                                   struct sonde_error *err)
{
    enum sonde_status status = snd_launches_wait(trace, out, err);

    return status == SONDE_OK ? snd_launches_finish(out, err) : status;
}

void snd_launches_free(struct snd_launches *l)
{
    if (!l || snd_kept_return(l->trace, l))
        return;
    snd_wait_end(l->trace, &l->consumer);
    snd_launches_release(l);
    free(l);
}

void snd_launches_release(struct snd_launches *l)
{
    free(l->items);
    free(l->places);
    free(l->first);
    free(l->forwards);
    snd_map_release(&l->by_correlation);
    snd_map_release(&l->by_place);
    snd_map_release(&l->by_sequence);
    snd_texts_release(&l->within);
    *l = (struct snd_launches){ 0 };
}
