/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/plan/plan_search.c - the search for the least period, exact.
 *
 * Whether a period p can be reached is a question of sets. A state says how many devices of
 * each kind are in use; for each state there is the set of layers after which a pipeline of just
 * those devices can end, with every stage and transfer within p. A set is a few machine words,
 * so a state costs some hundred instructions. The period sought is the time of some stage or
 * transfer, so halving among those times, sorted, ends at the least.
 *
 * Types that are alike in everything count as one kind. Of the last device only the bandwidth
 * matters to what follows, so sets are kept by bandwidth, not by kind. Where a later start can
 * always replace an earlier one, only the last of a set is gone on from (see is_monotone).
 */
#include "pipe/plan/plan_search.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- the question */

static uint64_t *reach_of(const struct snd_search *s, uint64_t state, uint32_t level)
{
    return s->reach + (state * s->level_count + level) * s->words;
}

/* Where a stage of `kind` may start after the stages of `state`; false if nowhere. */
static bool fill_start(struct snd_search *s, uint64_t state, const struct snd_kind *kind)
{
    uint64_t any = 0;

    memset(s->start, 0, s->words * sizeof *s->start);
    if (state == 0) {
        snd_set_put(s->start, 0);
        return true;
    }
    for (uint32_t level = 0; level < s->level_count; level++) {
        const uint64_t *reached = reach_of(s, state, level);
        const uint64_t *sendable = s->sendable +
                                   (size_t)(level < kind->level ? level : kind->level) * s->words;
        for (uint32_t w = 0; w < s->words; w++) {
            s->start[w] |= reached[w] & sendable[w];
            any |= s->start[w];
        }
    }
    return any != 0;
}

static void extend(struct snd_search *s, uint64_t state, uint32_t k)
{
    struct snd_kind *kind = &s->kinds[k];

    if (!fill_start(s, state, kind))
        return;
    uint64_t *next = reach_of(s, state + kind->stride, kind->level);
    for (uint32_t w = s->words; w-- > 0;) {
        for (uint64_t left = s->start[w]; left;) {
            uint32_t        bit = 63 - (uint32_t)__builtin_clzll(left);
            const uint64_t *ends = snd_search_row(s, s->allowed, k, w * 64 + bit);
            for (uint32_t v = w; v < s->words; v++)
                next[v] |= ends[v];
            if (s->monotone)
                return;
            left &= ~((uint64_t)1 << bit);
        }
    }
}

/* The next state: the lowest kind counts fastest. */
static void step(struct snd_search *s)
{
    for (uint32_t k = 0; k < s->kind_count; k++) {
        if (s->kinds[k].used < s->kinds[k].count) {
            s->kinds[k].used++;
            return;
        }
        s->kinds[k].used = 0;
    }
}

/* The last layer that a state reaches, whatever the bandwidth. */
static uint32_t last_reached(const struct snd_search *s, uint64_t state)
{
    for (uint32_t w = s->words; w-- > 0;) {
        uint64_t any = 0;
        for (uint32_t level = 0; level < s->level_count; level++)
            any |= reach_of(s, state, level)[w];
        if (any)
            return w * 64 + 63 - (uint32_t)__builtin_clzll(any);
    }
    return 0;
}

/* Whether the devices that are left can take the layers that are, even at their best. */
static bool can_end(const struct snd_search *s, uint64_t state)
{
    uint64_t most = last_reached(s, state);

    if (most == 0 && state > 0)
        return false;
    for (uint32_t k = 0; k < s->kind_count && most < s->layers; k++)
        most += (uint64_t)(s->kinds[k].count - s->kinds[k].used) * s->kinds[k].span;
    return most >= s->layers;
}

struct end {
    uint64_t state;
    uint32_t level, used;
};

/*
 * Whether all layers can be placed within `period`. Without `fewest` it stops at the first end;
 * with it, *end is one of the fewest devices.
 */
static bool ask(struct snd_search *s, double period, bool fewest, struct end *end)
{
    bool found = false;

    snd_search_allow(s, period);
    memset(s->reach, 0, s->states * s->level_count * s->words * sizeof *s->reach);
    for (uint32_t k = 0; k < s->kind_count; k++)
        s->kinds[k].used = 0;
    for (uint64_t state = 0; state < s->states; state++, step(s)) {
        uint32_t used = 0;
        for (uint32_t k = 0; k < s->kind_count; k++)
            used += s->kinds[k].used;
        for (uint32_t level = 0; level < s->level_count; level++) {
            if (!snd_set_has(reach_of(s, state, level), s->layers) || (found && used >= end->used))
                continue;
            *end = (struct end){ state, level, used };
            found = true;
        }
        if (found && !fewest)
            return true;
        if (found && used + 1 >= end->used)
            continue; /* one more device is not fewer */
        if (!can_end(s, state))
            continue;
        for (uint32_t k = 0; k < s->kind_count; k++)
            if (s->kinds[k].used < s->kinds[k].count)
                extend(s, state, k);
    }
    return found;
}

/* ---------------------------------------------------------------- the plan */

/* The stage that ends the pipeline of a state after `last`, and what was before it. */
static struct snd_stage step_back(struct snd_search *s, struct end *end, uint32_t last)
{
    for (uint32_t k = 0; k < s->kind_count; k++) {
        struct snd_kind *kind = &s->kinds[k];
        if (kind->level != end->level || end->state / kind->stride % (kind->count + 1) == 0 ||
            !fill_start(s, end->state - kind->stride, kind))
            continue;
        for (uint32_t i = last; i-- > 0;) {
            if (!snd_set_has(s->start, i) ||
                !snd_set_has(snd_search_row(s, s->allowed, k, i), last))
                continue;
            end->state -= kind->stride;
            for (uint32_t level = s->level_count; i > 0 && level-- > 0;) {
                uint32_t slower = level < kind->level ? level : kind->level;
                if (snd_set_has(reach_of(s, end->state, level), i) &&
                    snd_set_has(s->sendable + (size_t)slower * s->words, i)) {
                    end->level = level;
                    break;
                }
            }
            return (struct snd_stage){ .type = k, .first = i + 1, .last = last };
        }
    }
    return (struct snd_stage){ 0 }; /* never: the set held what this undoes */
}

/* The n-th device of a kind: its type and the number of its host. */
static void name_device(const struct snd_search *s, uint32_t k, uint32_t n, struct snd_stage *stage)
{
    for (uint32_t t = s->kinds[k].type; t < s->p->type_count; t++) {
        const struct snd_device_type *type = &s->p->types[t];
        if (type->count == 0 || !snd_device_types_alike(s->p, type, &s->p->types[s->kinds[k].type]))
            continue;
        if (n < type->count) {
            stage->type = t;
            stage->host = n;
            return;
        }
        n -= type->count;
    }
}

static enum sonde_status build_plan(struct snd_search *s, struct end end, struct snd_plan *plan,
                                    struct sonde_error *err)
{
    uint32_t last = s->layers, place = end.used;

    plan->stages = calloc(end.used + 1, sizeof *plan->stages);
    if (!plan->stages)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the plan");
    plan->count = end.used;
    while (place > 0) {
        struct snd_stage stage = step_back(s, &end, last);
        plan->stages[--place] = stage;
        last = stage.first - 1;
    }
    for (uint32_t k = 0; k < s->kind_count; k++)
        s->kinds[k].used = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t k = plan->stages[i].type;
        name_device(s, k, s->kinds[k].used++, &plan->stages[i]);
    }
    snd_plan_fill_costs(s->p, plan);
    return SONDE_OK;
}

static enum sonde_status search_least(struct snd_search *s, struct snd_plan *plan,
                                      struct sonde_error *err)
{
    struct end end = { 0, 0, 0 };
    size_t     low = 0, high = s->period_count; /* the least that is possible is in [low, high) */

    if (high == 0 || !ask(s, s->periods[high - 1], false, &end))
        return snd_plan_say_none(s->p, err);
    high--;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ask(s, s->periods[middle], false, &end))
            high = middle;
        else
            low = middle + 1;
    }
    if (!ask(s, s->periods[low], true, &end))
        return snd_plan_say_none(s->p, err);
    return build_plan(s, end, plan, err);
}

enum sonde_status snd_plan_find(const struct snd_pipeline *pipeline, struct snd_plan *plan,
                                struct sonde_error *err)
{
    struct snd_search s;
    enum sonde_status status = snd_search_init(&s, pipeline, err);

    *plan = (struct snd_plan){ 0 };
    if (status == SONDE_OK)
        status = search_least(&s, plan, err);
    snd_search_release(&s);
    return status;
}
