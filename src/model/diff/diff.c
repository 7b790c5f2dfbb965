/* SPDX-License-Identifier: Apache-2.0 */
/* model/diff/diff.c - two sides compared, row by row; declared in diff.h. */
#include "model/diff/diff.h"

#include <math.h>
#include <stdlib.h>

#define SAME_FLOPS 1e-9 /* relative: sums of threads are added in any order */

/* What is compared of a run: sums of its steps, or of all of it. */
static const struct snd_diff_sums *sums_of(const struct snd_diff      *d,
                                           const struct snd_diff_item *item)
{
    return d->has_steps ? &item->in_steps : &item->all;
}

static double units_of(const struct snd_diff *d, const struct snd_diff_run *run)
{
    return d->has_steps ? (double)run->steps : 1;
}

/* From the least of a side's runs to the greatest. */
struct extent {
    double low, high;
};

static void widen(struct extent *e, double value, bool first)
{
    e->low = first || value < e->low ? value : e->low;
    e->high = first || value > e->high ? value : e->high;
}

struct extents {
    struct extent count, bytes, flops;
};

static struct snd_diff_value sum_side(const struct snd_diff *d, const struct snd_diff_line *line,
                                      const struct snd_diff_run *runs, uint32_t count,
                                      struct extents *extents)
{
    static const struct snd_diff_sums none;
    struct snd_diff_value             value = { 0 };

    *extents = (struct extents){ 0 };
    for (uint32_t i = 0; line && i < count; i++) {
        const struct snd_diff_item *item = line->items[i];
        const struct snd_diff_sums *sums = item ? sums_of(d, item) : &none;
        double                      units = units_of(d, &runs[i]);
        widen(&extents->count, (double)sums->count / units, i == 0);
        widen(&extents->bytes, (double)sums->bytes / units, i == 0);
        widen(&extents->flops, sums->flops / units, i == 0);
        value.count += (double)sums->count / units / count;
        value.time_ns += (double)sums->time_ns / units / count;
        value.bytes += (double)sums->bytes / units / count;
        value.flops += sums->flops / units / count;
        if (item)
            value.samples += d->has_steps ? item->steps.count : item->calls.count;
    }
    return value;
}

/* Every run of one side lies apart from every run of the other. */
static bool is_apart(struct extent a, struct extent b, double relative)
{
    double slack = relative * fmax(fabs(a.high), fabs(b.high));

    return a.high + slack < b.low || b.high + slack < a.low;
}

static void set_row(const struct snd_diff *d, struct snd_diff_row *row,
                    const struct snd_diff_line *a, const struct snd_diff_line *b)
{
    struct extents of_a, of_b;

    row->match = !a            ? SND_DIFF_NEW
                 : !b          ? SND_DIFF_GONE
                 : b->by_place ? SND_DIFF_RENAMED
                               : SND_DIFF_BOTH;
    row->name = b ? b->first->name : a->first->name;
    if (row->match == SND_DIFF_RENAMED)
        row->was = a->first->name;
    row->a = sum_side(d, a, d->runs, d->a_runs, &of_a);
    row->b = sum_side(d, b, d->runs + d->a_runs, d->b_runs, &of_b);
    if (!a || !b)
        return;
    row->count_changed = !d->is_sampled && is_apart(of_a.count, of_b.count, 0);
    row->bytes_changed = is_apart(of_a.bytes, of_b.bytes, 0);
    row->flops_changed = is_apart(of_a.flops, of_b.flops, SAME_FLOPS);
}

/* ---------------------------------------------------------------------- times */

static void take_series(const struct snd_diff *d, const struct snd_diff_line *line, uint32_t runs,
                        struct snd_diff_series *to)
{
    for (uint32_t i = 0; i < runs; i++) {
        const struct snd_diff_item *item = line ? line->items[i] : NULL;
        to[i] = (struct snd_diff_series){ 0 };
        if (item)
            to[i] = d->has_steps ? item->steps : item->calls;
    }
}

/* The whole: durations of steps; without steps the time of all rows, one number per run. */
static bool judge_whole(struct snd_diff *d, double least_effect)
{
    size_t                  runs = (size_t)d->a_runs + d->b_runs;
    struct snd_diff_series *series = calloc(runs, sizeof *series);
    double                 *sums = calloc(runs, sizeof *sums);
    struct snd_diff_noise   noise;
    bool                    done = series && sums;

    for (size_t i = 0; done && i < runs; i++) {
        const struct snd_diff_run *run = &d->runs[i];
        double                    *mean = i < d->a_runs ? &d->a_whole_ns : &d->b_whole_ns;
        double                     side = i < d->a_runs ? d->a_runs : d->b_runs;
        for (uint32_t k = 0; k < run->count; k++)
            sums[i] += (double)run->items[k].all.time_ns;
        series[i] = (struct snd_diff_series){ &sums[i], run->count > 0 };
        if (d->has_steps) {
            series[i] = run->step_times;
            sums[i] = 0;
            for (size_t k = 0; k < run->step_times.count; k++)
                sums[i] += run->step_times.ns[k] / (double)run->step_times.count;
        }
        *mean += sums[i] / side;
    }
    struct snd_diff_input row = { series, series ? series + d->a_runs : NULL };
    done = done && snd_diff_judge(&row, 1, d->a_runs, d->b_runs, least_effect, &d->whole, &noise);
    free(series);
    free(sums);
    return done;
}

static bool judge_rows(struct snd_diff *d, const struct snd_diff_side *a,
                       const struct snd_diff_side *b, double least_effect)
{
    size_t                  runs = (size_t)d->a_runs + d->b_runs;
    struct snd_diff_series *series = calloc(d->count * runs + 1, sizeof *series);
    struct snd_diff_input  *inputs = calloc(d->count + 1, sizeof *inputs);
    struct snd_diff_answer *answers = calloc(d->count + 1, sizeof *answers);
    bool                    done = series && inputs && answers;
    size_t                  gone = b->count;

    for (uint32_t i = 0; done && i < a->count; i++)
        if (a->lines[i].partner == 0)
            set_row(d, &d->rows[gone++], &a->lines[i], NULL);
    for (uint32_t j = 0; done && j < b->count; j++) {
        const struct snd_diff_line *line = &b->lines[j];
        const struct snd_diff_line *was = line->partner ? &a->lines[line->partner - 1] : NULL;
        set_row(d, &d->rows[j], was, line);
        inputs[j] = (struct snd_diff_input){ series + j * runs, series + j * runs + d->a_runs };
        take_series(d, was, d->a_runs, series + j * runs);
        take_series(d, line, d->b_runs, series + j * runs + d->a_runs);
    }
    done = done &&
           snd_diff_judge(inputs, b->count, d->a_runs, d->b_runs, least_effect, answers, &d->noise);
    for (size_t j = 0; done && j < b->count; j++)
        d->rows[j].time = answers[j];
    free(series);
    free(inputs);
    free(answers);
    return done;
}

/* ------------------------------------------------------------------ the whole */

/* Steps are samples only if every run has enough of them. */
static void note_runs(struct snd_diff *d)
{
    d->has_steps = true;
    for (uint32_t i = 0; i < d->a_runs + d->b_runs; i++) {
        d->has_steps &= d->runs[i].steps > 0;
        d->is_sampled |= d->runs[i].is_sampled;
        *(i < d->a_runs ? &d->a_steps : &d->b_steps) += d->runs[i].steps;
        d->cut |= d->runs[i].steps >= SND_DIFF_STEPS_MOST;
    }
    if (d->a_runs < 2 || d->b_runs < 2)
        d->has_steps &= d->a_steps >= SND_DIFF_LEAST_SAMPLES &&
                        d->b_steps >= SND_DIFF_LEAST_SAMPLES;
}

static bool compare(struct snd_diff *d, double least_effect)
{
    struct snd_diff_side a = { 0 }, b = { 0 };
    bool                 done = snd_diff_side_fill(&a, d->runs, d->a_runs) &&
                snd_diff_side_fill(&b, d->runs + d->a_runs, d->b_runs);

    note_runs(d);
    done = done && snd_diff_match(&a, &b, !d->is_sampled);
    if (done) {
        d->count = b.count;
        for (uint32_t i = 0; i < a.count; i++)
            d->count += a.lines[i].partner == 0;
        d->rows = calloc(d->count + 1, sizeof *d->rows);
        done = d->rows && judge_rows(d, &a, &b, least_effect) && judge_whole(d, least_effect);
    }
    snd_diff_side_release(&a);
    snd_diff_side_release(&b);
    return done;
}

enum sonde_status snd_diff_new(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
                               const struct snd_diff_source *source, double least_effect,
                               struct snd_diff **out, struct sonde_error *err)
{
    enum sonde_status st = SONDE_OK;
    struct snd_diff  *d = calloc(1, sizeof *d);

    *out = NULL;
    if (d)
        d->runs = calloc(a_runs + b_runs, sizeof *d->runs);
    if (!d || !d->runs) {
        free(d);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %zu runs", a_runs + b_runs);
    }
    d->source = source;
    d->a_runs = (uint32_t)a_runs;
    d->b_runs = (uint32_t)b_runs;
    for (size_t i = 0; st == SONDE_OK && i < a_runs + b_runs; i++)
        st = source->fill(traces[i], &d->runs[i], err);
    if (st == SONDE_OK && !compare(d, least_effect))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the comparison");
    if (st != SONDE_OK) {
        snd_diff_free(d);
        return st;
    }
    *out = d;
    return SONDE_OK;
}

uint32_t snd_diff_run_number(const struct snd_diff *diff, uint32_t run)
{
    return run < diff->a_runs ? run + 1 : run - diff->a_runs + 1;
}

const char *snd_diff_run_side(const struct snd_diff *diff, uint32_t run)
{
    return run < diff->a_runs ? "A" : "B";
}

bool snd_diff_run_has(const struct snd_diff *diff, uint32_t run, unsigned quantity)
{
    const struct snd_diff_run *r = &diff->runs[run];
    bool                       found = false;

    if (!(diff->source->has & quantity))
        return false;
    if (quantity == SND_DIFF_COUNT)
        return !diff->is_sampled;
    for (uint32_t i = 0; i < r->count && !found; i++)
        found = quantity == SND_DIFF_MEMORY ? r->has_memory || r->items[i].all.bytes != 0
                                            : r->items[i].all.flops > 0;
    return found;
}

void snd_diff_free(struct snd_diff *diff)
{
    if (!diff)
        return;
    for (uint32_t i = 0; i < diff->a_runs + diff->b_runs; i++)
        snd_diff_run_release(&diff->runs[i]);
    free(diff->runs);
    free(diff->rows);
    free(diff);
}
