/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/plan_search.c - the search for the least period, exact.
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
#include "pipe/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB (1024.0 * 1024.0)
#define WORDS_MAX ((uint64_t)1 << 26)          /* of all sets: 512 MB */
#define WORK_MAX ((double)((uint64_t)1 << 36)) /* steps of one question: about a minute */

struct kind {
    uint32_t type;   /* the first of its types */
    uint32_t count;  /* of devices; more than there are layers are of no use */
    uint32_t level;  /* number of its bandwidth, the least first */
    uint64_t stride; /* what one device of it adds to a state */
    uint32_t used;   /* in the state at hand */
    uint32_t span;   /* layers that one device of it can take within the period, at most */
};

struct search {
    const struct snd_pipeline *p;
    uint32_t                   layers, words; /* words: of a set of 0..layers */
    struct kind               *kinds;
    uint32_t                   kind_count;
    double                    *bandwidths; /* in Mbit/s, sorted */
    uint32_t                   level_count;
    uint64_t                   states;
    uint64_t                  *fits;     /* [kind][start]: ends that memory allows */
    uint64_t                  *allowed;  /* [kind][start]: those within the period as well */
    uint64_t                  *sendable; /* [level]: ends whose transfer is within the period */
    uint64_t                  *reach;    /* [state][level] */
    uint64_t                  *start;    /* a set to work in */
    bool                       monotone; /* of starts in a set, the last is as good as any */
    double                    *periods;  /* what the least can be, sorted */
    size_t                     period_count, period_room;
};

static bool has(const uint64_t *set, uint32_t member)
{
    return set[member / 64] >> (member % 64) & 1;
}

static void put(uint64_t *set, uint32_t member)
{
    set[member / 64] |= (uint64_t)1 << (member % 64);
}

/* ------------------------------------------------------------------- costs */

double snd_layer_bytes(const struct snd_pipeline *p, uint32_t layer)
{
    double values = layer == 0 ? p->parameters_in : p->parameters_out[layer - 1];

    return values * (double)p->value_bytes * (double)p->batch_size;
}

static double stage_memory_bytes(const struct snd_pipeline *p, double layers_mb, uint32_t first,
                                 uint32_t last)
{
    double in = snd_layer_bytes(p, first - 1), out = snd_layer_bytes(p, last);
    double queues = out * (double)p->buffers_out + (first > 1 ? in * (double)p->buffers_in : 0);

    return layers_mb * MB + queues + in + out;
}

double snd_stage_memory_mb(const struct snd_pipeline *p, uint32_t first, uint32_t last)
{
    double sum = 0;

    for (uint32_t layer = first; layer <= last; layer++)
        sum += p->memory_mb[layer - 1];
    return stage_memory_bytes(p, sum, first, last) / MB;
}

static double send_time(const struct snd_pipeline *p, uint32_t layer, double bandwidth_mbps)
{
    double bytes = snd_layer_bytes(p, layer);

    return bytes > 0 ? bytes / (bandwidth_mbps * MB / 8) : 0; /* by 0: never */
}

/* ------------------------------------------------------------------- kinds */

static bool is_alike(const struct snd_pipeline *p, const struct snd_device_type *a,
                     const struct snd_device_type *b)
{
    if (a->memory_mb != b->memory_mb || a->bandwidth_mbps != b->bandwidth_mbps)
        return false;
    for (uint32_t i = 0; i < p->layers; i++)
        if (a->time_s[i] != b->time_s[i])
            return false;
    return true;
}

static void add_level(struct search *s, double bandwidth)
{
    uint32_t at = 0;

    while (at < s->level_count && s->bandwidths[at] < bandwidth)
        at++;
    if (at < s->level_count && s->bandwidths[at] == bandwidth)
        return;
    memmove(s->bandwidths + at + 1, s->bandwidths + at,
            (s->level_count - at) * sizeof *s->bandwidths);
    s->bandwidths[at] = bandwidth;
    s->level_count++;
}

static void add_kind(struct search *s, uint32_t type)
{
    const struct snd_device_type *t = &s->p->types[type];
    uint32_t                      k = 0;

    if (t->count == 0)
        return;
    while (k < s->kind_count && !is_alike(s->p, t, &s->p->types[s->kinds[k].type]))
        k++;
    if (k == s->kind_count)
        s->kinds[s->kind_count++] = (struct kind){ .type = type };
    uint32_t room = s->layers - s->kinds[k].count;
    s->kinds[k].count += t->count < room ? t->count : room;
    add_level(s, t->bandwidth_mbps);
}

static enum sonde_status count_states(struct search *s, struct sonde_error *err)
{
    double states = 1, devices = 0;

    for (uint32_t k = 0; k < s->kind_count; k++) {
        s->kinds[k].stride = (uint64_t)states;
        for (uint32_t level = 0; level < s->level_count; level++)
            if (s->bandwidths[level] == s->p->types[s->kinds[k].type].bandwidth_mbps)
                s->kinds[k].level = level;
        states *= s->kinds[k].count + 1.0;
        devices += s->kinds[k].count;
        if (states * s->level_count * s->words > (double)WORDS_MAX ||
            states * s->kind_count * s->layers * s->words > WORK_MAX)
            return snd_fail(err, SONDE_E_LIMIT,
                            "%.0f devices or more of %u kinds can be combined in more ways than an "
                            "exact search takes; leave out some, or give alike ones one type",
                            devices, s->kind_count);
    }
    s->states = (uint64_t)states;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ tables */

static uint64_t *row(const struct search *s, uint64_t *table, uint32_t kind, uint32_t start)
{
    return table + ((size_t)kind * s->layers + start) * s->words;
}

static void fill_fits(struct search *s)
{
    for (uint32_t k = 0; k < s->kind_count; k++) {
        double available = s->p->types[s->kinds[k].type].memory_mb * MB;
        for (uint32_t i = 0; i < s->layers; i++) {
            double sum = 0;
            for (uint32_t j = i + 1; j <= s->layers; j++) {
                sum += s->p->memory_mb[j - 1];
                /* What is needed must be less, as PipeEdge has it. */
                if (stage_memory_bytes(s->p, sum, i + 1, j) < available)
                    put(row(s, s->fits, k, i), j);
            }
        }
    }
}

/* No period can be less than what the slowest layer takes on its fastest device. */
static double least_period(const struct search *s)
{
    double least = 0;

    for (uint32_t i = 0; i < s->layers; i++) {
        double best = INFINITY;
        for (uint32_t k = 0; k < s->kind_count; k++)
            best = fmin(best, s->p->types[s->kinds[k].type].time_s[i]);
        least = fmax(least, best);
    }
    return least;
}

static bool add_period(struct search *s, double period, double least)
{
    if (!isfinite(period) || period < least)
        return true;
    if (s->period_count == s->period_room) {
        size_t  room = s->period_room ? s->period_room * 2 : 1024;
        double *more = realloc(s->periods, room * sizeof *more);
        if (!more)
            return false;
        s->periods = more;
        s->period_room = room;
    }
    s->periods[s->period_count++] = period;
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Every time of a stage or transfer. */
static bool fill_periods(struct search *s)
{
    double least = least_period(s);
    bool   good = true;

    for (uint32_t k = 0; k < s->kind_count; k++) {
        const double *time = s->p->types[s->kinds[k].type].time_s;
        for (uint32_t i = 0; i < s->layers && good; i++) {
            double sum = 0;
            for (uint32_t j = i + 1; j <= s->layers && good; j++) {
                sum += time[j - 1];
                if (has(row(s, s->fits, k, i), j))
                    good = add_period(s, sum, least);
            }
        }
    }
    for (uint32_t level = 0; level < s->level_count; level++)
        for (uint32_t j = 1; j < s->layers && good; j++)
            good = add_period(s, send_time(s->p, j, s->bandwidths[level]), least);
    qsort(s->periods, s->period_count, sizeof *s->periods, compare_doubles);
    size_t kept = 0;
    for (size_t i = 0; i < s->period_count; i++)
        if (kept == 0 || s->periods[kept - 1] != s->periods[i])
            s->periods[kept++] = s->periods[i];
    s->period_count = kept;
    return good;
}

/*
 * Whether a start may be put off: the stages that end before the later start are dropped, and the
 * one around it gets shorter. That holds if a shorter stage with the same end is allowed whenever
 * the longer is (buffers may forbid it), and a cut that can be sent to one device to any.
 */
static bool is_monotone(const struct search *s)
{
    for (uint32_t level = 1; level < s->level_count; level++)
        if (memcmp(s->sendable, s->sendable + (size_t)level * s->words, s->words * 8) != 0)
            return false;
    for (uint32_t k = 0; k < s->kind_count; k++)
        for (uint32_t i = 0; i + 1 < s->layers; i++) {
            const uint64_t *longer = row(s, s->allowed, k, i),
                           *shorter = row(s, s->allowed, k, i + 1);
            for (uint32_t w = 0; w < s->words; w++) {
                uint64_t lost = longer[w] & ~shorter[w];
                if (w == (i + 1) / 64)
                    lost &= ~((uint64_t)1 << ((i + 1) % 64));
                if (lost)
                    return false;
            }
        }
    return true;
}

static void fill_allowed(struct search *s, double period)
{
    memset(s->allowed, 0, (size_t)s->kind_count * s->layers * s->words * 8);
    memset(s->sendable, 0, (size_t)s->level_count * s->words * 8);
    for (uint32_t k = 0; k < s->kind_count; k++) {
        const double *time = s->p->types[s->kinds[k].type].time_s;
        s->kinds[k].span = 0;
        for (uint32_t i = 0; i < s->layers; i++) {
            double sum = 0;
            for (uint32_t j = i + 1; j <= s->layers; j++) {
                sum += time[j - 1];
                if (sum > period || !has(row(s, s->fits, k, i), j))
                    continue;
                put(row(s, s->allowed, k, i), j);
                s->kinds[k].span = j - i > s->kinds[k].span ? j - i : s->kinds[k].span;
            }
        }
    }
    for (uint32_t level = 0; level < s->level_count; level++)
        for (uint32_t j = 1; j < s->layers; j++)
            if (send_time(s->p, j, s->bandwidths[level]) <= period)
                put(s->sendable + (size_t)level * s->words, j);
    s->monotone = is_monotone(s);
}

/* ------------------------------------------------------------- the question */

static uint64_t *reach_of(const struct search *s, uint64_t state, uint32_t level)
{
    return s->reach + (state * s->level_count + level) * s->words;
}

/* Where a stage of `kind` may start after the stages of `state`; false if nowhere. */
static bool fill_start(struct search *s, uint64_t state, const struct kind *kind)
{
    uint64_t any = 0;

    memset(s->start, 0, s->words * sizeof *s->start);
    if (state == 0) {
        put(s->start, 0);
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

static void extend(struct search *s, uint64_t state, uint32_t k)
{
    struct kind *kind = &s->kinds[k];

    if (!fill_start(s, state, kind))
        return;
    uint64_t *next = reach_of(s, state + kind->stride, kind->level);
    for (uint32_t w = s->words; w-- > 0;) {
        for (uint64_t left = s->start[w]; left;) {
            uint32_t        bit = 63 - (uint32_t)__builtin_clzll(left);
            const uint64_t *ends = row(s, s->allowed, k, w * 64 + bit);
            for (uint32_t v = w; v < s->words; v++)
                next[v] |= ends[v];
            if (s->monotone)
                return;
            left &= ~((uint64_t)1 << bit);
        }
    }
}

/* The next state: the lowest kind counts fastest. */
static void step(struct search *s)
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
static uint32_t last_reached(const struct search *s, uint64_t state)
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
static bool can_end(const struct search *s, uint64_t state)
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
static bool ask(struct search *s, double period, bool fewest, struct end *end)
{
    bool found = false;

    fill_allowed(s, period);
    memset(s->reach, 0, s->states * s->level_count * s->words * sizeof *s->reach);
    for (uint32_t k = 0; k < s->kind_count; k++)
        s->kinds[k].used = 0;
    for (uint64_t state = 0; state < s->states; state++, step(s)) {
        uint32_t used = 0;
        for (uint32_t k = 0; k < s->kind_count; k++)
            used += s->kinds[k].used;
        for (uint32_t level = 0; level < s->level_count; level++) {
            if (!has(reach_of(s, state, level), s->layers) || (found && used >= end->used))
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
static struct snd_stage step_back(struct search *s, struct end *end, uint32_t last)
{
    for (uint32_t k = 0; k < s->kind_count; k++) {
        struct kind *kind = &s->kinds[k];
        if (kind->level != end->level || end->state / kind->stride % (kind->count + 1) == 0 ||
            !fill_start(s, end->state - kind->stride, kind))
            continue;
        for (uint32_t i = last; i-- > 0;) {
            if (!has(s->start, i) || !has(row(s, s->allowed, k, i), last))
                continue;
            end->state -= kind->stride;
            for (uint32_t level = s->level_count; i > 0 && level-- > 0;) {
                uint32_t slower = level < kind->level ? level : kind->level;
                if (has(reach_of(s, end->state, level), i) &&
                    has(s->sendable + (size_t)slower * s->words, i)) {
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
static void name_device(const struct search *s, uint32_t k, uint32_t n, struct snd_stage *stage)
{
    for (uint32_t t = s->kinds[k].type; t < s->p->type_count; t++) {
        const struct snd_device_type *type = &s->p->types[t];
        if (type->count == 0 || !is_alike(s->p, type, &s->p->types[s->kinds[k].type]))
            continue;
        if (n < type->count) {
            stage->type = t;
            stage->host = n;
            return;
        }
        n -= type->count;
    }
}

static void fill_costs(const struct search *s, struct snd_plan *plan)
{
    const struct snd_pipeline *p = s->p;

    for (uint32_t i = 0; i < plan->count; i++) {
        struct snd_stage             *stage = &plan->stages[i];
        const struct snd_device_type *type = &p->types[stage->type];
        for (uint32_t layer = stage->first; layer <= stage->last; layer++)
            stage->compute_s += type->time_s[layer - 1];
        stage->memory_mb = snd_stage_memory_mb(p, stage->first, stage->last);
        if (i + 1 < plan->count) {
            const struct snd_device_type *next = &p->types[plan->stages[i + 1].type];
            stage->send_bytes = snd_layer_bytes(p, stage->last);
            stage->send_s = send_time(p, stage->last,
                                      fmin(type->bandwidth_mbps, next->bandwidth_mbps));
        }
        if (i == 0 || stage->compute_s > plan->period_s) {
            plan->period_s = stage->compute_s;
            plan->slowest = i;
            plan->is_send = false;
        }
        if (stage->send_s > plan->period_s) {
            plan->period_s = stage->send_s;
            plan->slowest = i;
            plan->is_send = true;
        }
    }
}

static enum sonde_status build_plan(struct search *s, struct end end, struct snd_plan *plan,
                                    struct sonde_error *err)
{
    uint32_t last = s->layers, place = end.used;

    plan->stages = calloc(end.used, sizeof *plan->stages);
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
    fill_costs(s, plan);
    return SONDE_OK;
}

/* What is in the way of any plan at all. */
static enum sonde_status say_no_plan(const struct search *s, struct sonde_error *err)
{
    double most = 0, hold = 0, need = 0;

    for (uint32_t k = 0; k < s->kind_count; k++) {
        const struct snd_device_type *type = &s->p->types[s->kinds[k].type];
        most = fmax(most, type->memory_mb);
        hold += type->memory_mb * s->kinds[k].count;
    }
    for (uint32_t i = 1; i <= s->layers; i++) {
        double alone = snd_stage_memory_mb(s->p, i, i);
        need += s->p->memory_mb[i - 1];
        if (alone >= most)
            return snd_fail(err, SONDE_E_STATE,
                            "no plan: layer %u alone needs %.6g MB with its buffers, and the "
                            "largest device has %.6g",
                            i, alone, most);
    }
    return snd_fail(err, SONDE_E_STATE,
                    "no plan: the layers need %.6g MB besides buffers, the devices have %.6g MB in "
                    "all, and no cut into stages fits them; add devices or take a smaller batch",
                    need, hold);
}

static enum sonde_status search_least(struct search *s, struct snd_plan *plan,
                                      struct sonde_error *err)
{
    struct end end = { 0, 0, 0 };
    size_t     low = 0, high = s->period_count; /* the least that is possible is in [low, high) */

    if (high == 0 || !ask(s, s->periods[high - 1], false, &end))
        return say_no_plan(s, err);
    high--;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ask(s, s->periods[middle], false, &end))
            high = middle;
        else
            low = middle + 1;
    }
    if (!ask(s, s->periods[low], true, &end))
        return say_no_plan(s, err);
    return build_plan(s, end, plan, err);
}

static bool make_tables(struct search *s)
{
    size_t rows = (size_t)s->kind_count * s->layers * s->words;

    s->fits = calloc(rows, sizeof *s->fits);
    s->allowed = calloc(rows, sizeof *s->allowed);
    s->sendable = calloc((size_t)s->level_count * s->words, sizeof *s->sendable);
    s->reach = malloc(s->states * s->level_count * s->words * sizeof *s->reach);
    s->start = calloc(s->words, sizeof *s->start);
    if (!s->fits || !s->allowed || !s->sendable || !s->reach || !s->start)
        return false;
    fill_fits(s);
    return fill_periods(s);
}

enum sonde_status snd_plan_find(const struct snd_pipeline *pipeline, struct snd_plan *plan,
                                struct sonde_error *err)
{
    struct search     s = { .p = pipeline, .layers = pipeline->layers };
    enum sonde_status status;

    *plan = (struct snd_plan){ 0 };
    s.words = s.layers / 64 + 1;
    s.kinds = calloc(pipeline->type_count + 1, sizeof *s.kinds);
    s.bandwidths = calloc(pipeline->type_count + 1, sizeof *s.bandwidths);
    if (!s.kinds || !s.bandwidths) {
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the plan");
        goto done;
    }
    for (uint32_t t = 0; t < pipeline->type_count; t++)
        add_kind(&s, t);
    status = s.kind_count ? count_states(&s, err)
                          : snd_fail(err, SONDE_E_STATE, "no plan: there is no device");
    if (status == SONDE_OK && !make_tables(&s))
        status = snd_fail(err, SONDE_E_NOMEM,
                          "out of memory for %" PRIu64 " combinations of devices", s.states);
    if (status == SONDE_OK)
        status = search_least(&s, plan, err);
done:
    free(s.kinds);
    free(s.bandwidths);
    free(s.fits);
    free(s.allowed);
    free(s.sendable);
    free(s.reach);
    free(s.start);
    free(s.periods);
    return status;
}

void snd_plan_release(struct snd_plan *plan)
{
    free(plan->stages);
    *plan = (struct snd_plan){ 0 };
}
