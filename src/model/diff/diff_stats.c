/* SPDX-License-Identifier: Apache-2.0 */
/* model/diff/diff_stats.c - the statistics of sonde diff; the reasons are in docs/DIFF.md. */
#include "model/diff/diff_stats.h"

#include <math.h>
#include <stdlib.h>

#include "base/data/sort.h"

#define ERROR_FLOOR 0.003 /* of a log ratio: clocks and code placement */
#define RUN_PRIOR 0.01    /* how much two runs differ, where too few rows show it */
#define ROWS_FOR_SHIFT 5  /* with fewer, the median row is no estimate of the machine */
#define ROWS_FOR_SPREAD 3
#define SHIFT_MOST 0.25    /* as a ratio - 1: a greater common change is a change */
#define INFLATED_MOST 0.30 /* standard error that inflation may reach */
#define PRIOR_FREEDOM 4.0  /* weight of the median row's variance between runs */
#define FREEDOM_MOST 30.0

/* ------------------------------------------------------------ distributions */

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double       c = 1, d = 1 - (a + b) * x / (a + 1);

    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m <= 300; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        result *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        result *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return result;
}

static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double snd_student_tail(double t, double freedom)
{
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double snd_student_quantile(double p, double freedom)
{
    double low = 0, high = 1;

    while (snd_student_tail(high, freedom) > p && high < 1e9)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (snd_student_tail(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* ------------------------------------------------------------------ samples */

static int compare_reals(const void *left, const void *right)
{
    const double *x = left, *y = right;

    return SND_RISING(*x, *y);
}

double snd_quantile(const double *sorted, size_t count, double part)
{
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;

    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/*
 * Of n values the lower (n + 1) / 2 are taken. Without one of them, n - 1 values have a lower half of
 * n / 2: what the mean is then follows from the sum, so that the jackknife takes one pass.
 */
double snd_lower_mean(double *values, size_t count, double *error)
{
    size_t lower = (count + 1) / 2, left = count / 2;
    double sum = 0, moved = 0, squares = 0;

    snd_sort(values, count, sizeof *values, compare_reals);
    for (size_t i = 0; i < lower; i++)
        sum += values[i];
    *error = 0;
    if (count < 2)
        return sum / (double)lower;
    /* The value that the lower half gains (even count) or loses (odd) when another goes. */
    bool   even = count % 2 == 0;
    double kept = even ? sum : sum - values[lower - 1];
    for (int pass = 0; pass < 2; pass++) {
        double mean = moved / (double)count, total = 0;
        for (size_t i = 0; i < count; i++) {
            double without = kept;
            if (i < lower)
                without = even ? sum - values[i] + values[lower] : sum - values[i];
            without /= (double)left;
            total += without;
            squares += pass ? (without - mean) * (without - mean) : 0;
        }
        moved = total;
    }
    *error = sqrt((double)(count - 1) / (double)count * squares);
    return sum / (double)lower;
}

double snd_false_discovery_limit(double *p, size_t count, double rate)
{
    double limit = -1;

    snd_sort(p, count, sizeof *p, compare_reals);
    for (size_t i = 0; i < count; i++)
        if (p[i] <= rate * (double)(i + 1) / (double)count)
            limit = p[i];
    return limit;
}

/* -------------------------------------------------------------------- a row */

/* What is known of a row before it is judged: logarithms throughout. */
struct measured {
    double a, b, error; /* locations, and the standard error of their difference */
    double variance;    /* between runs, of one run */
    bool   has_times, judged;
};

struct work {
    const struct snd_diff_input *rows;
    size_t                       count, a_runs, b_runs;
    struct measured             *measured;
    double                      *values; /* scratch: of rows, or of one row's samples */
};

static size_t count_samples(const struct snd_diff_series *runs, size_t count)
{
    size_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += runs[i].count;
    return sum;
}

static size_t take_logs(const struct snd_diff_series *series, double *to)
{
    for (size_t i = 0; i < series->count; i++)
        to[i] = log(series->ns[i] > 1 ? series->ns[i] : 1);
    return series->count;
}

/* All samples of a side are one series. */
static double locate_side(const struct snd_diff_series *runs, size_t count, double *scratch,
                          double *error)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++)
        at += take_logs(&runs[i], scratch + at);
    return snd_lower_mean(scratch, at, error);
}

static void measure_samples(const struct work *w, size_t row)
{
    const struct snd_diff_input *in = &w->rows[row];
    struct measured             *out = &w->measured[row];
    size_t                       a = count_samples(in->a, w->a_runs);
    size_t                       b = count_samples(in->b, w->b_runs);
    double                       error_a, error_b;

    if (a == 0 || b == 0)
        return;
    out->has_times = true;
    out->judged = a >= SND_DIFF_LEAST_SAMPLES && b >= SND_DIFF_LEAST_SAMPLES;
    out->a = locate_side(in->a, w->a_runs, w->values, &error_a);
    out->b = locate_side(in->b, w->b_runs, w->values, &error_b);
    out->error = sqrt(error_a * error_a + error_b * error_b + ERROR_FLOOR * ERROR_FLOOR);
}

/* The mean of the runs' locations; *squares: of what they differ from it by. */
static size_t locate_runs(const struct snd_diff_series *runs, size_t count, double *scratch,
                          double *mean, double *squares)
{
    double sum = 0, sum_squares = 0, unused;
    size_t seen = 0;

    for (int pass = 0; pass < 2; pass++) {
        seen = 0;
        for (size_t i = 0; i < count; i++) {
            if (runs[i].count == 0)
                continue;
            double at = snd_lower_mean(scratch, take_logs(&runs[i], scratch), &unused);
            seen++;
            if (pass == 0)
                sum += at;
            else
                sum_squares += (at - *mean) * (at - *mean);
        }
        *mean = seen ? sum / (double)seen : 0;
    }
    *squares = sum_squares;
    return seen;
}

static void measure_runs(const struct work *w, size_t row)
{
    struct measured *out = &w->measured[row];
    double           squares_a, squares_b;
    size_t           a = locate_runs(w->rows[row].a, w->a_runs, w->values, &out->a, &squares_a);
    size_t           b = locate_runs(w->rows[row].b, w->b_runs, w->values, &out->b, &squares_b);

    out->has_times = a > 0 && b > 0;
    out->judged = a >= 2 && b >= 2;
    if (!out->judged)
        return;
    out->variance = (squares_a + squares_b) / (double)(a + b - 2);
    out->error = sqrt(1.0 / (double)a + 1.0 / (double)b); /* times the deviation: weigh_runs() */
}

/* ------------------------------------------------------------------ all rows */

/* `part` of all rows that are judged have at most this value. */
static double quantile_of_rows(const struct work *w,
                               double (*value)(const struct measured *, double), double by,
                               double part)
{
    size_t seen = 0;

    for (size_t i = 0; i < w->count; i++)
        if (w->measured[i].judged)
            w->values[seen++] = value(&w->measured[i], by);
    snd_sort(w->values, seen, sizeof *w->values, compare_reals);
    return snd_quantile(w->values, seen, part);
}

static double change_of(const struct measured *m, double unused)
{
    (void)unused;
    return m->b - m->a;
}

static double square_of(const struct measured *m, double shift)
{
    double z = (m->b - m->a - shift) / m->error;

    return z * z;
}

static double variance_of(const struct measured *m, double unused)
{
    (void)unused;
    return m->variance;
}

/*
 * One run per side: how much two runs of one program differ is not in the samples, but the rows that did
 * not change show it. Their median is the machine's shift; by how much they spread more than their
 * errors say (genomic control: median and upper quartile of the squared z) all errors are widened.
 */
static double weigh_samples(struct work *w, struct snd_diff_noise *noise, double *freedom)
{
    double shift = 0, wider = 1;

    if (noise->judged >= ROWS_FOR_SHIFT)
        shift = quantile_of_rows(w, change_of, 0, 0.5);
    if (fabs(expm1(shift)) > SHIFT_MOST)
        shift = 0;
    for (size_t i = 0; i < w->count && noise->judged < ROWS_FOR_SHIFT; i++)
        w->measured[i].error =
            sqrt(w->measured[i].error * w->measured[i].error + 2 * RUN_PRIOR * RUN_PRIOR);
    if (noise->judged >= ROWS_FOR_SPREAD) {
        double middle = quantile_of_rows(w, square_of, shift, 0.5) / 0.4549364;
        double upper = quantile_of_rows(w, square_of, shift, 0.75) / 1.3233037;
        wider = fmax(1, sqrt(fmax(middle, upper)));
    }
    for (size_t i = 0; i < w->count; i++) {
        double *error = &w->measured[i].error;
        *error = fmin(*error * wider, fmax(*error, INFLATED_MOST));
    }
    noise->inflation = wider;
    *freedom = noise->judged < ROWS_FOR_SPREAD
                   ? FREEDOM_MOST
                   : fmin(FREEDOM_MOST, 4 * ((double)noise->judged - 1));
    return shift;
}

/*
 * Several runs per side: their differences are the noise. Few runs tell a row's variance badly, so it
 * is moved towards that of the median row (Smyth's moderated t).
 */
static double weigh_runs(struct work *w, struct snd_diff_noise *noise, double *freedom)
{
    double own = (double)(w->a_runs + w->b_runs - 2);
    double usual = quantile_of_rows(w, variance_of, 0, 0.5);

    if (noise->judged < ROWS_FOR_SHIFT)
        usual = fmax(usual, RUN_PRIOR * RUN_PRIOR);
    for (size_t i = 0; i < w->count; i++) {
        struct measured *m = &w->measured[i];
        double variance = (PRIOR_FREEDOM * usual + own * m->variance) / (PRIOR_FREEDOM + own);
        m->error = sqrt(variance * m->error * m->error + ERROR_FLOOR * ERROR_FLOOR);
    }
    *freedom = own + PRIOR_FREEDOM;
    return 0;
}

static void answer(const struct measured *m, double shift, double freedom,
                   struct snd_diff_answer *out)
{
    double change = m->b - m->a - (m->judged ? shift : 0);

    *out = (struct snd_diff_answer){ .has_times = m->has_times, .p = 1 };
    if (!m->has_times)
        return;
    out->a_ns = exp(m->a);
    out->b_ns = exp(m->b);
    out->change = out->low = out->high = expm1(change);
    if (!m->judged)
        return;
    double reach = snd_student_quantile(0.05, freedom) * m->error;
    out->low = expm1(change - reach);
    out->high = expm1(change + reach);
    out->verdict = out->low >= -SND_DIFF_CLOSE && out->high <= SND_DIFF_CLOSE ? SND_DIFF_SAME
                                                                              : SND_DIFF_UNCLEAR;
    out->p = snd_student_tail(change / m->error, freedom);
}

static void call_changed(const struct work *w, double least_effect, struct snd_diff_answer *answers)
{
    size_t seen = 0;

    for (size_t i = 0; i < w->count; i++)
        if (w->measured[i].judged)
            w->values[seen++] = answers[i].p;
    double limit = snd_false_discovery_limit(w->values, seen, SND_DIFF_FDR);
    for (size_t i = 0; i < w->count; i++)
        if (w->measured[i].judged && answers[i].p <= limit &&
            fabs(log1p(answers[i].change)) >= log1p(least_effect))
            answers[i].verdict = answers[i].change > 0 ? SND_DIFF_SLOWER : SND_DIFF_FASTER;
}

bool snd_diff_judge(const struct snd_diff_input *rows, size_t count, size_t a_runs, size_t b_runs,
                    double least_effect, struct snd_diff_answer *answers,
                    struct snd_diff_noise *noise)
{
    struct work w = { .rows = rows, .count = count, .a_runs = a_runs, .b_runs = b_runs };
    size_t      room = count;
    double      shift = 0, freedom = 1;

    *noise = (struct snd_diff_noise){ .by_runs = a_runs >= 2 && b_runs >= 2, .inflation = 1 };
    for (size_t i = 0; i < count; i++) {
        size_t a = count_samples(rows[i].a, a_runs), b = count_samples(rows[i].b, b_runs);
        room = a > room ? a : room;
        room = b > room ? b : room;
    }
    w.measured = calloc(count + 1, sizeof *w.measured);
    w.values = calloc(room + 1, sizeof *w.values);
    if (w.measured && w.values) {
        for (size_t i = 0; i < count; i++) {
            (noise->by_runs ? measure_runs : measure_samples)(&w, i);
            noise->judged += w.measured[i].judged;
        }
        if (noise->judged > 0)
            shift = (noise->by_runs ? weigh_runs : weigh_samples)(&w, noise, &freedom);
        for (size_t i = 0; i < count; i++)
            answer(&w.measured[i], shift, freedom, &answers[i]);
        call_changed(&w, least_effect, answers);
        noise->shift = expm1(shift);
    }
    bool done = w.measured && w.values;
    free(w.measured);
    free(w.values);
    return done;
}
