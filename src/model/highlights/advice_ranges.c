/* SPDX-License-Identifier: Apache-2.0 */
/* What ranges and steps tell of a program: loading of data, compilation, steps that are slow. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/plural.h"
#include "model/highlights/advisor.h"
#include "model/ranges/assembly.h"
#include "model/spread.h"
#include "model/summary/summary.h"
#include "read/file/scale.h"
#include "read/said/trace_metadata.h"

#define LOADER_PERCENT 10.0
#define COMPILES 3u
#define COMPILE_PERCENT 10.0
#define SLOW_TIMES 2
#define SLOW_STEPS_LEAST 2u /* one alone may be another program's doing */
/* A slow step is so many times further from the median than half of the steps are: on a busy machine all of them vary. */
#define SLOW_DEVIATIONS 7
#define STEPS_LEAST 5u
#define ONE_CALL_PART 0.75
#define EXTRA_PERCENT \
    25.0 /* of what slow steps take longer: less, and no range alone accounts for it */

/* Ranges of a name: all of them, or those of a process. */
struct sum {
    int64_t  total_ns;
    uint64_t count;
    int64_t  longest_ns;                     /* of one, with ... */
    uint32_t longest_process, longest_stack; /* ... its stack */
};

/* Of each name of the trace. */
struct named {
    enum snd_torch_range torchs;       /* SND_TORCH_NONE: nothing that there is a sentence for */
    struct sum          *of_processes; /* if there is: of each process of the trace */
    int64_t              slow_ns, usual_ns; /* self time in steps that are slow, and others */
    struct sum           in_slow;           /* in these */
};

/* From the first event of a process to its last. */
struct lifetime {
    int64_t first_ns, last_ns;
};

struct step {
    int64_t  start_ns, end_ns;
    uint64_t number;
    uint32_t process;
    bool     is_slow;
};

/* Leaves that are torch's. */
struct leaf_kind {
    uint32_t name, stack;
};

struct snd_range_advice {
    struct snd_advisor *advisor;
    struct named       *names; /* one more than there are */
    uint32_t            name_count;
    struct sum         *sums;      /* those of names, in one piece */
    struct lifetime    *lifetimes; /* of each process */
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

/* The median of how far `count` times are from `median_ns`; they are replaced by that. */
static int64_t find_deviation(int64_t *ns, uint32_t count, int64_t median_ns)
{
    struct sonde_spread spread;

    for (uint32_t i = 0; i < count; i++)
        ns[i] = ns[i] > median_ns ? snd_sub(ns[i], median_ns) : snd_sub(median_ns, ns[i]);
    snd_spread(ns, count, &spread);
    return (int64_t)spread.median_ns;
}

static bool read_steps(struct snd_range_advice *w)
{
    const struct sonde_summary *summary = w->advisor->summary;
    size_t                      all = sonde_summary_step_count(summary);
    int64_t                    *ns = calloc(all + 1, sizeof *ns);
    struct sonde_spread         spread;
    int64_t                     deviation_ns = 0;

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
        deviation_ns = find_deviation(ns, w->step_count, w->median_ns);
    }
    for (uint32_t i = 0; w->median_ns > 0 && i < w->step_count; i++) {
        struct step *step = &w->steps[i];
        int64_t      took = snd_sub(step->end_ns, step->start_ns);
        step->is_slow = took / SLOW_TIMES >= w->median_ns &&
                        snd_sub(took, w->median_ns) / SLOW_DEVIATIONS >= deviation_ns;
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

/* Of ranges that there is a sentence for: parts of a compilation are in it. */
static enum snd_torch_range judge_name(const struct snd_text *name)
{
    enum snd_torch_range range = snd_torch_range(name->bytes, name->length);

    return range == SND_TORCH_COMPILES_PART ? SND_TORCH_NONE : range;
}

static void add_range(struct sum *sum, uint32_t process, uint32_t stack, int64_t ns)
{
    sum->total_ns = snd_add(sum->total_ns, ns);
    sum->count++;
    if (ns > sum->longest_ns) {
        sum->longest_ns = ns;
        sum->longest_process = process;
        sum->longest_stack = stack;
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
    if (named->torchs != SND_TORCH_NONE && !r->is_async)
        add_range(&named->of_processes[lane->process], lane->process, r->stack, r->total_ns);
}

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct snd_range_advice *w = user;

    (void)lane;
    if (find_name(w, shared->name)->torchs == SND_TORCH_NONE)
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
        add_range(&find_name(w, w->kinds[kind - 1].name)->of_processes[lane->process],
                  lane->process, w->kinds[kind - 1].stack, snd_sub(leaf->end_ns, leaf->start_ns));
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct snd_range_advice *w = user;

    for (uint32_t i = 0; i < w->advisor->trace->thread_count; i++) {
        const struct snd_lane *lane = &assembly->lanes[i];
        struct lifetime       *life = &w->lifetimes[lane->process];
        if (lane->events == 0)
            continue;
        life->first_ns = lane->first_ns < life->first_ns ? lane->first_ns : life->first_ns;
        life->last_ns = lane->last_ns > life->last_ns ? lane->last_ns : life->last_ns;
    }
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
    if (step->is_slow)
        add_range(&named->in_slow, lane->process, r->stack, r->total_ns);
}

/* ------------------------------------------------------------------ sentences */

static struct snd_spot find_spot(const struct snd_range_advice *w, uint32_t number,
                                 const struct sum *sum)
{
    const struct snd_text *name = &w->advisor->trace->names.items[number];
    struct snd_spot        spot;

    if (!snd_spot_of_stack(w->advisor, sum->longest_process, sum->longest_stack, &spot) &&
        !snd_spot_of_samples(w->advisor, name->bytes, &spot))
        spot = (struct snd_spot){ .function = { name->bytes, name->length } };
    return spot;
}

/* A sum over the processes of a job is longer than any of them ran: the share is of the one in which it is greatest; NULL: of none. */
static const struct sum *find_greatest(const struct snd_range_advice *w, const struct named *named,
                                       double *share)
{
    uint32_t          count = w->advisor->trace->process_count;
    const struct sum *best = NULL;

    for (uint32_t i = 0; i < count; i++) {
        const struct sum *sum = &named->of_processes[i];
        int64_t           span = count == 1 ? sonde_summary_totals(w->advisor->summary)->span_ns
                                            : snd_sub(w->lifetimes[i].last_ns, w->lifetimes[i].first_ns);
        if (count == 1 && (named->torchs == SND_TORCH_LOADS_ALONE ||
                           named->torchs == SND_TORCH_LOADS_WITH_WORKERS))
            span = snd_sub(span, w->advisor->import_ns);
        double own = snd_percent(sum->total_ns, span);
        if (sum->count > 0 && (!best || own > *share)) {
            best = sum;
            *share = own;
        }
    }
    return best;
}

#define WHOSE_TEXT (SND_RANK_TEXT + 8)
/* " of rank 2 on node1", of a job; "" of a program alone, or of processes that are no ranks. */
static const char *name_whose(const struct snd_range_advice *w, const struct sum *sum,
                              char text[static WHOSE_TEXT])
{
    char rank[SND_RANK_TEXT];

    text[0] = '\0';
    if (w->advisor->trace->process_count > 1 &&
        snd_meta_rank(w->advisor->trace, sum->longest_process, rank)[0] != '\0')
        snprintf(text, WHOSE_TEXT, " of %s", rank);
    return text;
}

static void tell_sort(struct snd_range_advice *w, uint32_t number)
{
    static const struct {
        enum snd_pattern pattern;
        double           percent;
        uint64_t         count;
        const char      *what;
    } sorts[] = {
        [SND_TORCH_LOADS_ALONE] = { SND_ADVICE_LOADER_ALONE, LOADER_PERCENT, 1,
                                    "Loading data in the main process" },
        [SND_TORCH_LOADS_WITH_WORKERS] = { SND_ADVICE_LOADER_WAITS, LOADER_PERCENT, 2,
                                           "Waiting for the DataLoader's workers" },
        [SND_TORCH_COMPILES] = { SND_ADVICE_COMPILES, COMPILE_PERCENT, COMPILES, NULL },
    };
    enum snd_torch_range sort = w->names[number].torchs;
    double               share;
    const struct sum    *sum = find_greatest(w, &w->names[number], &share);
    char                 place[SND_SPOT_TEXT], whose[WHOSE_TEXT];

    if (!sum || sum->count < sorts[sort].count)
        return;
    /* The first batch is waited for while the workers start, however many there are. */
    bool   starts = sort == SND_TORCH_LOADS_WITH_WORKERS;
    double lasting = starts ? share * (double)snd_sub(sum->total_ns, sum->longest_ns) /
                                  (double)(sum->total_ns > 0 ? sum->total_ns : 1)
                            : share;
    if (lasting < sorts[sort].percent)
        return;
    struct snd_spot spot = find_spot(w, number, sum);
    snd_spot_short(&spot, place);
    if (sort == SND_TORCH_COMPILES)
        snd_advise(w->advisor, SND_ADVICE_COMPILES, share, "table/ops", &spot,
                   "torch.compile compiled code %" PRIu64
                   " times: %s, %.0f %% of the time%s, in %s",
                   sum->count, snd_amount_time(sum->total_ns).text, share,
                   name_whose(w, sum, whose), place);
    else
        snd_advise(w->advisor, sorts[sort].pattern, share, "table/ops", &spot,
                   "%s takes %.0f %% of the time%s%s, %s in %" PRIu64 " call%s, at %s",
                   sorts[sort].what, share, name_whose(w, sum, whose),
                   w->advisor->trace->process_count == 1 && w->advisor->import_ns > 0
                       ? " without imports"
                       : "",
                   snd_amount_time(sum->total_ns).text, sum->count, snd_plural(sum->count), place);
}

/* What slow steps do more of than the others, in the mean. */
static void tell_slow(struct snd_range_advice *w)
{
    double   usual = (double)(w->step_count - w->slow_count), slow = (double)w->slow_count;
    double   most = 0, took = 0, usually = 0;
    uint32_t which = SONDE_NONE;
    char     place[SND_SPOT_TEXT], more[220] = "; no range alone accounts for it";

    if (w->slow_count < SLOW_STEPS_LEAST || w->slow_count == w->step_count)
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
    /* If one call of it makes most of the difference, chance may have: it is no reason of several steps. */
    bool is_one_call = which != SONDE_NONE &&
                       (double)w->names[which].in_slow.longest_ns > ONE_CALL_PART * most * slow;
    if (which != SONDE_NONE && 100 * most >= EXTRA_PERCENT * extra && !is_one_call) {
        const struct snd_text *name = &w->advisor->trace->names.items[which];
        spot = find_spot(w, which, &w->names[which].in_slow);
        snprintf(more, sizeof more, "; each has %s more of %.*s itself%s%s",
                 snd_amount_time((int64_t)most).text, (int)(name->length < 60 ? name->length : 60),
                 name->bytes, spot.line ? ", at " : "",
                 spot.line ? snd_spot_short(&spot, place) : "");
    }
    snd_advise(w->advisor, SND_ADVICE_SLOW_STEPS, 100 * extra * slow / (took + usually),
               "table/steps", &spot,
               "%" PRIu32 " of %" PRIu32 " steps take twice the median of %s or more (step %" PRIu64
               ": %s)%s",
               w->slow_count, w->step_count, snd_amount_time(w->median_ns).text, w->longest_number,
               snd_amount_time(w->longest_ns).text, more);
}

/* What is kept of names that are torch's; false: no memory. */
static bool make_sums(struct snd_range_advice *w, uint32_t kept)
{
    uint32_t processes = w->advisor->trace->process_count;

    w->lifetimes = calloc((size_t)processes + 1, sizeof *w->lifetimes);
    w->sums = calloc((size_t)kept * processes + 1, sizeof *w->sums);
    for (uint32_t i = 0; w->lifetimes && i < processes; i++)
        w->lifetimes[i] = (struct lifetime){ INT64_MAX, INT64_MIN };
    for (uint32_t i = 0, at = 0; w->sums && i < w->name_count; i++)
        if (w->names[i].torchs != SND_TORCH_NONE)
            w->names[i].of_processes = &w->sums[(size_t)at++ * processes];
    return w->lifetimes && w->sums;
}

enum sonde_status snd_advise_ranges_wait(struct snd_advisor *advisor, struct sonde_error *err)
{
    const struct snd_texts  *names = &advisor->trace->names;
    struct snd_range_advice *w = calloc(1, sizeof *w);
    uint32_t                 kept = 0;

    advisor->ranges = w;
    if (w)
        w->names = calloc((size_t)names->count + 1, sizeof *w->names);
    if (!w || !w->names)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    w->advisor = advisor;
    w->name_count = names->count;
    for (uint32_t i = 0; i < names->count; i++) {
        w->names[i].torchs = judge_name(&names->items[i]);
        kept += w->names[i].torchs != SND_TORCH_NONE;
    }
    if (!make_sums(w, kept))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    w->consumer = (struct snd_consumer){ .user = w,
                                         .any_flops = true,
                                         .close = on_close,
                                         .kind = on_kind,
                                         .leaf = on_leaf,
                                         .end = on_end };
    w->is_done = kept == 0;
    if (kept > 0)
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
    free(w->sums);
    free(w->lifetimes);
    free(w->kinds);
    free(w->steps);
    free(w);
}

enum sonde_status snd_advise_ranges_finish(struct snd_advisor *advisor, struct sonde_error *err)
{
    return snd_wait_walk(advisor->trace, advisor->ranges->is_done, err);
}

bool snd_advise_ranges_have(const struct snd_advisor *advisor, enum snd_torch_range range)
{
    const struct snd_range_advice *w = advisor->ranges;

    for (uint32_t i = 0; i < w->name_count; i++)
        for (uint32_t p = 0; w->names[i].torchs == range && p < advisor->trace->process_count; p++)
            if (w->names[i].of_processes[p].count > 0)
                return true;
    return false;
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
    if (st == SONDE_OK && w->slow_count >= SLOW_STEPS_LEAST) {
        st = snd_assemble(&assembly, advisor->trace, SONDE_BY_THREAD, &in_steps, 1, err);
        snd_assembly_release(&assembly);
    }
    for (uint32_t i = 0; st == SONDE_OK && i < w->name_count; i++)
        if (w->names[i].torchs != SND_TORCH_NONE)
            tell_sort(w, i);
    if (st == SONDE_OK)
        tell_slow(w);
    return st;
}
