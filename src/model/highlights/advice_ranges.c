/* SPDX-License-Identifier: Apache-2.0 */
/* What ranges and steps tell of a program: loading of data, compilation, steps that are slow. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/plural.h"
#include "model/highlights/advisor.h"
#include "model/highlights/amounts.h"
#include "model/ranges/assembly.h"
#include "model/spread.h"
#include "model/summary/summary.h"
#include "read/file/scale.h"

#define LOADER_PERCENT 10.0
#define COMPILES 3u
#define COMPILE_PERCENT 10.0
#define SLOW_TIMES 2
#define STEPS_LEAST 5u
#define EXTRA_PERCENT \
    25.0 /* of what slow steps take longer: less, and no range alone accounts for it */

enum sort { PLAIN, LOADS_ALONE, LOADS_WITH_WORKERS, COMPILE };

/* Of each name of the trace. */
struct named {
    enum sort sort;
    int64_t   total_ns;
    uint64_t  count;
    int64_t   slow_ns, usual_ns;              /* self time in steps that are slow, and others */
    int64_t   longest_ns;                     /* of one, with ... */
    uint32_t  longest_process, longest_stack; /* ... its stack */
};

struct step {
    int64_t  start_ns, end_ns;
    uint64_t number;
    uint32_t process;
    bool     is_slow;
};

/* Leaves that are not PLAIN. */
struct leaf_kind {
    uint32_t name, stack;
};

struct snd_range_advice {
    struct snd_advisor *advisor;
    struct named       *names; /* one more than there are */
    uint32_t            name_count;
    struct leaf_kind   *kinds;
    uint32_t            kind_count, kind_room;
    struct step        *steps; /* whole ones, by process and start */
    uint32_t            step_count, slow_count;
    int64_t             median_ns, longest_ns;
    uint64_t            longest_number;
    struct snd_consumer consumer;
    bool                is_done;
};

/* ---------------------------------------------------------------------- steps */

/*
 * Whether a step takes twice as long as some other: which of them are whole, and so count, takes a walk that most
 * programs do not need.
 */
static bool may_be_slow(const struct sonde_summary *summary)
{
    size_t  count = sonde_summary_step_count(summary);
    int64_t least = INT64_MAX, most = 0;

    for (size_t i = 0; i < count; i++) {
        int64_t took = sonde_summary_step(summary, i)->duration_ns;
        least = took < least ? took : least;
        most = took > most ? took : most;
    }
    return count >= STEPS_LEAST && most / SLOW_TIMES >= least;
}

static bool read_steps(struct snd_range_advice *w)
{
    const struct sonde_summary *summary = w->advisor->summary;
    size_t                      all = sonde_summary_step_count(summary);
    int64_t                    *ns = calloc(all + 1, sizeof *ns);
    struct sonde_spread         spread;

    w->steps = calloc(all + 1, sizeof *w->steps);
    for (size_t i = 0; ns && w->steps && i < all; i++) {
        const struct sonde_step_row *row = sonde_summary_step(summary, i);
        if (row->part != SONDE_STEP_WHOLE)
            continue;
        ns[w->step_count] = row->duration_ns;
        w->steps[w->step_count++] =
            (struct step){ .start_ns = row->start_ns,
                           .end_ns = snd_add(row->start_ns, row->duration_ns),
                           .number = row->number,
                           .process = row->process };
    }
    bool there = ns && w->steps;
    if (there && w->step_count >= STEPS_LEAST) {
        snd_spread(ns, w->step_count, &spread);
        w->median_ns = (int64_t)spread.median_ns;
    }
    for (uint32_t i = 0; w->median_ns > 0 && i < w->step_count; i++) {
        struct step *step = &w->steps[i];
        int64_t      took = snd_sub(step->end_ns, step->start_ns);
        step->is_slow = took / SLOW_TIMES >= w->median_ns;
        w->slow_count += step->is_slow;
        if (took > w->longest_ns) {
            w->longest_ns = took;
            w->longest_number = step->number;
        }
    }
    free(ns);
    return there;
}

/* The step in which a range began; NULL: none. */
static const struct step *find_step(const struct snd_range_advice *w, uint32_t process, int64_t ns)
{
    uint32_t low = 0, high = w->step_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->steps[middle].process < process ||
            (w->steps[middle].process == process && w->steps[middle].start_ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    const struct step *step = low > 0 ? &w->steps[low - 1] : NULL;
    return step && step->process == process && ns < step->end_ns ? step : NULL;
}

/* ----------------------------------------------------------------------- walk */

static bool begins_with(const struct snd_text *name, const char *start)
{
    size_t length = strlen(start);

    return name->length >= length && memcmp(name->bytes, start, length) == 0;
}

/* As torch names what its DataLoader and its compiler do. */
static enum sort judge_name(const struct snd_text *name)
{
    static const char compile[] = "_compile.compile_inner (dynamo_timed)";

    if (begins_with(name, "enumerate(DataLoader)#_SingleProcess"))
        return LOADS_ALONE;
    if (begins_with(name, "enumerate(DataLoader)#_MultiProcess"))
        return LOADS_WITH_WORKERS;
    return name->length == sizeof compile - 1 && begins_with(name, compile) ? COMPILE : PLAIN;
}

static void add_range(struct named *named, uint32_t process, uint32_t stack, int64_t ns)
{
    named->total_ns = snd_add(named->total_ns, ns);
    named->count++;
    if (ns > named->longest_ns) {
        named->longest_ns = ns;
        named->longest_process = process;
        named->longest_stack = stack;
    }
}

static struct named *find_name(const struct snd_range_advice *w, uint32_t name)
{
    return &w->names[name < w->name_count ? name : w->name_count];
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    const struct snd_range *r = &range->range;
    struct named           *named = find_name(user, r->name);

    (void)parent;
    if (named->sort != PLAIN && !r->is_async)
        add_range(named, lane->process, r->stack, r->total_ns);
}

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct snd_range_advice *w = user;

    (void)lane;
    if (find_name(w, shared->name)->sort == PLAIN)
        return 0;
    if (!snd_grow(&w->kinds, &w->kind_room, w->kind_count, sizeof *w->kinds))
        return UINT32_MAX;
    w->kinds[w->kind_count] = (struct leaf_kind){ shared->name, shared->stack };
    return ++w->kind_count;
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    const struct snd_range_advice *w = user;

    (void)known, (void)above, (void)parent;
    if (kind > 0)
        add_range(find_name(w, w->kinds[kind - 1].name), lane->process, w->kinds[kind - 1].stack,
                  snd_sub(leaf->end_ns, leaf->start_ns));
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct snd_range_advice *w = user;

    (void)assembly;
    w->is_done = true;
}

/* Of a walk of its own, once it is known which steps are slow. */
static void on_close_in_step(void *user, struct snd_lane *lane, struct snd_open_range *range,
                             struct snd_open_range *parent)
{
    struct snd_range_advice *w = user;
    const struct snd_range  *r = &range->range;
    struct named            *named = find_name(w, r->name);
    const struct step       *step = r->is_async ? NULL : find_step(w, lane->process, r->start_ns);

    (void)parent;
    if (!step)
        return;
    int64_t  self_ns = snd_sub(r->total_ns, r->child_ns);
    int64_t *sum = step->is_slow ? &named->slow_ns : &named->usual_ns;
    *sum = snd_add(*sum, self_ns);
    if (step->is_slow && named->sort == PLAIN)
        add_range(named, lane->process, r->stack, r->total_ns);
}

/* ------------------------------------------------------------------ sentences */

static struct snd_spot find_spot(const struct snd_range_advice *w, uint32_t number)
{
    const struct snd_text *name = &w->advisor->trace->names.items[number];
    struct snd_spot        spot;

    if (!snd_spot_of_stack(w->advisor, w->names[number].longest_process,
                           w->names[number].longest_stack, &spot))
        spot = (struct snd_spot){ .function = { name->bytes, name->length } };
    return spot;
}

static void tell_loading(struct snd_range_advice *w, const struct named *named,
                         enum snd_pattern pattern, const char *what, const struct snd_spot *spot)
{
    int64_t span = sonde_summary_totals(w->advisor->summary)->span_ns;
    double  share = snd_percent(named->total_ns, span);
    char    place[SND_SPOT_TEXT];

    snd_advise(w->advisor, pattern, share, "table/ops", spot,
               "%s takes %.0f %% of the time, %s in %" PRIu64 " batch%s, at %s", what, share,
               snd_amount_time(named->total_ns).text, named->count, named->count == 1 ? "" : "es",
               snd_spot_short(spot, place));
}

static void tell_sort(struct snd_range_advice *w, uint32_t number)
{
    const struct named *named = &w->names[number];
    int64_t             span = sonde_summary_totals(w->advisor->summary)->span_ns;
    double              share = snd_percent(named->total_ns, span);
    struct snd_spot     spot = find_spot(w, number);
    char                place[SND_SPOT_TEXT];

    snd_spot_short(&spot, place);
    if (named->sort == COMPILE && named->count >= COMPILES && share >= COMPILE_PERCENT)
        snd_advise(w->advisor, SND_ADVICE_COMPILES, share, "table/ops", &spot,
                   "torch.compile compiled code %" PRIu64 " times: %s, %.0f %% of the time, in %s",
                   named->count, snd_amount_time(named->total_ns).text, share, place);
    else if (named->sort == LOADS_ALONE && share >= LOADER_PERCENT)
        tell_loading(w, named, SND_ADVICE_LOADER_ALONE, "Loading data in the main process", &spot);
    else if (named->sort == LOADS_WITH_WORKERS && share >= LOADER_PERCENT)
        tell_loading(w, named, SND_ADVICE_LOADER_WAITS, "Waiting for the DataLoader's workers",
                     &spot);
}

/* What slow steps do more of than the others, in the mean. */
static void tell_slow(struct snd_range_advice *w)
{
    double   usual = (double)(w->step_count - w->slow_count), slow = (double)w->slow_count;
    double   most = 0, took = 0, usually = 0;
    uint32_t which = SONDE_NONE;
    char     place[SND_SPOT_TEXT], more[220] = "; no range alone accounts for it";

    if (w->slow_count == 0 || w->slow_count == w->step_count)
        return;
    for (uint32_t i = 0; i < w->step_count; i++)
        *(w->steps[i].is_slow ? &took : &usually) += (double)snd_sub(w->steps[i].end_ns,
                                                                     w->steps[i].start_ns);
    double extra = took / slow - usually / usual;
    for (uint32_t i = 0; i < w->name_count; i++) {
        double own = (double)w->names[i].slow_ns / slow - (double)w->names[i].usual_ns / usual;
        if (own > most) {
            most = own;
            which = i;
        }
    }
    struct snd_spot spot = { .function = { "", 0 } };
    if (which != SONDE_NONE && 100 * most >= EXTRA_PERCENT * extra) {
        const struct snd_text *name = &w->advisor->trace->names.items[which];
        spot = find_spot(w, which);
        snprintf(more, sizeof more, "; each has %s more of %.*s itself%s%s",
                 snd_amount_time((int64_t)most).text, (int)(name->length < 60 ? name->length : 60),
                 name->bytes, spot.line ? ", at " : "",
                 spot.line ? snd_spot_short(&spot, place) : "");
    }
    snd_advise(w->advisor, SND_ADVICE_SLOW_STEPS, 100 * extra * slow / (took + usually),
               "table/steps", &spot,
               "%" PRIu32 " of %" PRIu32
               " steps take%s twice the median of %s or more (step %" PRIu64 ": %s)%s",
               w->slow_count, w->step_count, w->slow_count == 1 ? "s" : "",
               snd_amount_time(w->median_ns).text, w->longest_number,
               snd_amount_time(w->longest_ns).text, more);
}

enum sonde_status snd_advise_ranges_wait(struct snd_advisor *advisor, struct sonde_error *err)
{
    const struct snd_texts  *names = &advisor->trace->names;
    struct snd_range_advice *w = calloc(1, sizeof *w);
    bool                     any = false;

    advisor->ranges = w;
    if (w)
        w->names = calloc((size_t)names->count + 1, sizeof *w->names);
    if (!w || !w->names)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    w->advisor = advisor;
    w->name_count = names->count;
    for (uint32_t i = 0; i < names->count; i++) {
        w->names[i].sort = judge_name(&names->items[i]);
        any |= w->names[i].sort != PLAIN;
    }
    w->consumer = (struct snd_consumer){ .user = w,
                                         .any_flops = true,
                                         .close = on_close,
                                         .kind = on_kind,
                                         .leaf = on_leaf,
                                         .end = on_end };
    w->is_done = !any;
    if (any)
        snd_wait(advisor->trace, &w->consumer);
    return SONDE_OK;
}

void snd_range_advice_free(struct snd_range_advice *w)
{
    if (!w)
        return;
    if (w->advisor)
        snd_wait_end(w->advisor->trace, &w->consumer);
    free(w->names);
    free(w->kinds);
    free(w->steps);
    free(w);
}

enum sonde_status snd_advise_ranges_finish(struct snd_advisor *advisor, struct sonde_error *err)
{
    return snd_wait_walk(advisor->trace, advisor->ranges->is_done, err);
}

enum sonde_status snd_advise_ranges(struct snd_advisor *advisor, struct sonde_error *err)
{
    struct snd_range_advice  *w = advisor->ranges;
    const struct snd_consumer in_steps = { .user = w,
                                           .any_flops = true,
                                           .close = on_close_in_step };
    struct snd_assembly       assembly;
    enum sonde_status         st = SONDE_OK;

    if (may_be_slow(advisor->summary))
        st = snd_summary_count_steps(advisor->summary, err);
    if (st == SONDE_OK && !read_steps(w))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    if (st == SONDE_OK && w->slow_count > 0) {
        st = snd_assemble(&assembly, advisor->trace, SONDE_BY_THREAD, &in_steps, 1, err);
        snd_assembly_release(&assembly);
    }
    for (uint32_t i = 0; st == SONDE_OK && i < w->name_count; i++)
        if (w->names[i].sort != PLAIN && w->names[i].count > 0)
            tell_sort(w, i);
    if (st == SONDE_OK)
        tell_slow(w);
    return st;
}
