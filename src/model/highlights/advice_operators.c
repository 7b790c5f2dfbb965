/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stacks of operators tell of a program that was not sampled: its hot line. Each operator's own time counts for
 * the line of the program that called it; loading of data and compilation have sentences of their own. Not where a GPU works: there an operator's time is that of its launch.
 */
#include <stdlib.h>

#include "format/layout.h"
#include "model/highlights/advisor.h"
#include "model/ranges/assembly.h"
#include "read/file/scale.h"
#include "read/reader.h"
#include "read/walk/kinds.h"

#define WHOLE_NS INT64_C(50000000) /* of all operators: of less, nothing is said */
#define NO_LINE 0u /* in place of a stack: what counts for the whole, and for no line */

/* Operators that were called by one stack. */
struct called {
    uint32_t process, stack;
    int64_t  self_ns, longest_ns;
    uint64_t count;
};

struct snd_operator_advice {
    struct snd_advisor *advisor;
    struct called      *stacks;
    uint32_t            count, room;
    struct snd_map      numbers; /* (process, stack) to one of them */
    uint8_t            *torchs;  /* enum snd_torch_range of each name */
    uint32_t            name_count;
    struct snd_consumer consumer;
    bool                is_done, failed;
};

/* UINT32_MAX: no memory. */
static uint32_t find_stack(struct snd_operator_advice *w, uint32_t process, uint32_t stack)
{
    struct snd_key key = { process, stack, 0 };
    uint32_t       number;

    if (snd_map_get(&w->numbers, key, &number))
        return number;
    number = w->count;
    if (!snd_grow(&w->stacks, &w->room, number, sizeof *w->stacks) ||
        !snd_map_put(&w->numbers, key, number)) {
        w->failed = true;
        return UINT32_MAX;
    }
    w->stacks[w->count++] = (struct called){ .process = process, .stack = stack };
    return number;
}

static void add_operator(struct snd_operator_advice *w, uint32_t number, int64_t self_ns)
{
    if (number == UINT32_MAX)
        return;
    struct called *called = &w->stacks[number];
    called->self_ns = snd_add(called->self_ns, self_ns);
    called->longest_ns = self_ns > called->longest_ns ? self_ns : called->longest_ns;
    called->count++;
}

static bool is_torchs(const struct snd_operator_advice *w, uint32_t name)
{
    return name < w->name_count && w->torchs[name] != SND_TORCH_NONE;
}

/* Operators of a compilation are those that it tries out. */
static bool is_compiling(const struct snd_operator_advice *w, const struct snd_lane *lane)
{
    for (uint32_t i = 0; i < lane->depth; i++)
        if (lane->open[i].range.name < w->name_count &&
            w->torchs[lane->open[i].range.name] >= SND_TORCH_COMPILES)
            return true;
    return false;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    const struct snd_range *r = &range->range;

    (void)parent;
    if (r->stack == 0 || !r->is_op || r->is_async)
        return;
    bool torchs = is_torchs(user, r->name) || is_compiling(user, lane);
    add_operator(user, find_stack(user, lane->process, torchs ? NO_LINE : r->stack),
                 snd_sub(r->total_ns, r->child_ns));
}

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    if (shared->stack == 0 || shared->is_async)
        return 0;
    uint32_t number = find_stack(user, lane->process,
                                 is_torchs(user, shared->name) ? NO_LINE : shared->stack);
    return number == UINT32_MAX ? UINT32_MAX : number + 1;
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    (void)known, (void)above, (void)parent;
    if (kind > 0)
        add_operator(user,
                     is_compiling(user, lane) ? find_stack(user, lane->process, NO_LINE) : kind - 1,
                     snd_sub(leaf->end_ns, leaf->start_ns));
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct snd_operator_advice *w = user;

    (void)assembly;
    w->is_done = true;
}

static const struct snd_consumer consumer = {
    .any_flops = true, .close = on_close, .kind = on_kind, .leaf = on_leaf, .end = on_end
};

/* Whether operators' stacks are all that tells of lines. */
static enum sonde_status judge_trace(struct snd_advisor *advisor, bool *wanted,
                                     struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       st = snd_trace_kinds(advisor->trace, &kinds, err);

    *wanted = false;
    if (st != SONDE_OK || advisor->gpu || kinds->events[SND_EV_SAMPLE] ||
        kinds->events[SND_EV_SAMPLE_RUN])
        return st;
    for (uint32_t p = 0; p < advisor->trace->process_count; p++)
        *wanted |= advisor->trace->processes[p].tables.stack_count > 0 &&
                   advisor->trace->processes[p].tables.call_count > 0;
    return st;
}

enum sonde_status snd_advise_operators_wait(struct snd_advisor *advisor, struct sonde_error *err)
{
    bool              wanted;
    enum sonde_status st = judge_trace(advisor, &wanted, err);

    if (st != SONDE_OK || !wanted)
        return st;
    const struct snd_texts     *names = &advisor->trace->names;
    struct snd_operator_advice *w = calloc(1, sizeof *w);
    advisor->operators = w;
    if (w)
        w->torchs = calloc((size_t)names->count + 1, sizeof *w->torchs);
    if (!w || !w->torchs)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    w->name_count = names->count;
    for (uint32_t i = 0; i < names->count; i++)
        w->torchs[i] = (uint8_t)snd_torch_range(names->items[i].bytes, names->items[i].length);
    w->advisor = advisor;
    w->consumer = consumer;
    w->consumer.user = w;
    snd_wait(advisor->trace, &w->consumer);
    return SONDE_OK;
}

enum sonde_status snd_advise_operators_finish(struct snd_advisor *advisor, struct sonde_error *err)
{
    return advisor->operators ? snd_wait_walk(advisor->trace, advisor->operators->is_done, err)
                              : SONDE_OK;
}

void snd_operator_advice_free(struct snd_operator_advice *w)
{
    if (!w)
        return;
    if (w->advisor)
        snd_wait_end(w->advisor->trace, &w->consumer);
    snd_map_release(&w->numbers);
    free(w->torchs);
    free(w->stacks);
    free(w);
}

/* Whether one call has most of the line's time: on a busy machine another program may have run meanwhile. */
static bool is_of_one_call(const struct snd_operator_advice *w, const struct snd_spot_sum *line)
{
    struct snd_spot spot;

    for (uint32_t i = 0; i < w->count; i++)
        if (w->stacks[i].longest_ns > line->ns / 2 &&
            snd_spot_of_stack(w->advisor, w->stacks[i].process, w->stacks[i].stack, &spot) &&
            spot.file.bytes == line->at.file.bytes && spot.line == line->at.line)
            return true;
    return false;
}

static void tell_hot(const struct snd_operator_advice *w, const struct snd_spots *lines,
                     int64_t whole_ns)
{
    const struct snd_spot_sum *most = snd_spots_most(lines);
    char                       place[SND_SPOT_TEXT];

    if (!most || whole_ns < WHOLE_NS || snd_percent(most->ns, whole_ns) < SND_HOT_PERCENT ||
        is_of_one_call(w, most))
        return;
    snd_advise(w->advisor, SND_ADVICE_HOT_LINE, snd_percent(most->ns, whole_ns), "table/ops/stack",
               &most->at, "%s, in %.*s, takes %.0f %% of the operators' time: %s of %s by stacks",
               snd_spot_short(&most->at, place),
               (int)(most->at.function.length < 80 ? most->at.function.length : 80),
               most->at.function.bytes, snd_percent(most->ns, whole_ns),
               snd_amount_time(most->ns).text, snd_amount_time(whole_ns).text);
}

enum sonde_status snd_advise_operators(struct snd_advisor *advisor, struct sonde_error *err)
{
    struct snd_operator_advice *w = advisor->operators;
    struct snd_spots            lines = { 0 };
    struct snd_spot             spot;
    int64_t                     whole_ns = 0;

    for (uint32_t i = 0; i < w->count && !w->failed; i++) {
        const struct called *called = &w->stacks[i];
        whole_ns = snd_add(whole_ns, called->self_ns);
        if (snd_spot_of_stack(advisor, called->process, called->stack, &spot))
            w->failed = !snd_spots_add(&lines, &spot, called->self_ns, called->count);
    }
    if (!w->failed)
        tell_hot(w, &lines, whole_ns);
    snd_spots_release(&lines);
    return w->failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice") : SONDE_OK;
}
