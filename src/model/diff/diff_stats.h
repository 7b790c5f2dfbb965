/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/diff/diff_stats.h - whether two sets of measured times differ by more than noise.
 *
 * The method and what it was measured to do are in docs/DIFF.md. Nothing here knows of traces.
 *
 * Layer: model. Threads: no state.
 */
#ifndef SND_MODEL_DIFF_DIFF_STATS_H
#define SND_MODEL_DIFF_DIFF_STATS_H

#include <stdbool.h>
#include <stddef.h>

#define SND_DIFF_LEAST_SAMPLES 5 /* a side, where one run per side is compared */
#define SND_DIFF_FDR 0.05        /* expected share of wrong ones among rows called changed */
#define SND_DIFF_LEAST_EFFECT 0.02
#define SND_DIFF_CLOSE 0.05 /* an interval within it, either way, is called the same */

/* The times of one row in one run, in nanoseconds; none: the run does not have the row. */
struct snd_diff_series {
    const double *ns;
    size_t        count;
};

/* A row: its series of each run of side A, and of side B. */
struct snd_diff_input {
    const struct snd_diff_series *a, *b;
};

enum snd_diff_verdict {
    SND_DIFF_NOT_JUDGED,
    SND_DIFF_SAME,
    SND_DIFF_UNCLEAR, /* no change was seen, but noise would have hidden one of SND_DIFF_CLOSE */
    SND_DIFF_FASTER,
    SND_DIFF_SLOWER
};

struct snd_diff_answer {
    enum snd_diff_verdict verdict;
    bool                  has_times; /* both sides have samples: the rest is set */
    double                a_ns, b_ns;
    double change, low, high; /* b / a - 1, without the shift; bounds of the 95 % interval */
    double p;                 /* of no change; 1 where not judged */
};

/* How the answers were reached. */
struct snd_diff_noise {
    bool   by_runs;   /* runs, not samples, are the unit: at least two per side */
    size_t judged;    /* rows */
    double shift;     /* by which all rows changed alike, as a ratio - 1; taken as the machine's */
    double inflation; /* by which standard errors were widened, judged by the spread of rows */
};

/*
 * Answers for `count` rows, each of `a_runs` and `b_runs` series. `least_effect`: smaller changes are not
 * called changed. False: out of memory.
 */
bool snd_diff_judge(const struct snd_diff_input *rows, size_t count, size_t a_runs, size_t b_runs,
                    double least_effect, struct snd_diff_answer *answers,
                    struct snd_diff_noise *noise);

/*
 * The mean of the lower half of `values`, which are sorted in place, and its standard error by the
 * jackknife; of one value the error is 0. What disturbs a measurement makes it longer, never shorter.
 */
double snd_lower_mean(double *values, size_t count, double *error);

/* Probability that |t| of Student's distribution is at least |t|. */
double snd_student_tail(double t, double freedom);
/* The t > 0 whose tail is `p`. */
double snd_student_quantile(double p, double freedom);

/* The value below which `part` of `sorted` lies, interpolated. */
double snd_quantile(const double *sorted, size_t count, double part);

/* Benjamini and Hochberg: the greatest p that is still called significant; below 0: none is. */
double snd_false_discovery_limit(double *p, size_t count, double rate);

#endif
