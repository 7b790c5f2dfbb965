/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of sonde diff: known answers; and what they do with real recordings (tests/data/diff):
 * how many rows of equal programs are called changed, how many slowdowns of 5 % are found.
 */
#include "model/diff/diff_stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_close(double x, double y, double by)
{
    if (!(fabs(x - y) <= by))
        fail_msg("%.9g is not %.9g", x, y);
}

/* From tables of Student's distribution. */
static void students_tail(void **state)
{
    (void)state;
    assert_close(snd_student_tail(1, 1), 0.5, 1e-12);
    assert_close(snd_student_tail(12.706204736, 1), 0.05, 1e-9);
    assert_close(snd_student_tail(2.228138852, 10), 0.05, 1e-9);
    assert_close(snd_student_tail(-2.750, 30), 0.01, 1e-5);
    assert_close(snd_student_tail(0, 7), 1, 1e-12);
    assert_close(snd_student_tail(1e6, 4), 0, 1e-12);
    assert_close(snd_student_quantile(0.05, 10), 2.228138852, 1e-8);
    assert_close(snd_student_quantile(0.01, 4), 4.604094871, 1e-8);
}

static void quantiles(void **state)
{
    const double v[] = { 1, 2, 4, 8 };

    (void)state;
    assert_close(snd_quantile(v, 4, 0.5), 3, 0);
    assert_close(snd_quantile(v, 4, 0), 1, 0);
    assert_close(snd_quantile(v, 4, 1), 8, 0);
    assert_close(snd_quantile(v, 4, 0.75), 5, 1e-12);
    assert_close(snd_quantile(v, 1, 0.3), 1, 0);
}

/* The jackknife in one pass is that by its definition. */
static void lower_means(void **state)
{
    double values[9], without[9], error, unused;

    (void)state;
    for (size_t n = 1; n <= 9; n++) {
        double sum = 0, squares = 0, each[9];
        for (size_t i = 0; i < n; i++)
            values[i] = (double)((i * 7 + 3) % 11) + 0.25 * (double)i;
        for (size_t skip = 0; n > 1 && skip < n; skip++) {
            size_t kept = 0;
            for (size_t i = 0; i < n; i++)
                if (i != skip)
                    without[kept++] = values[i];
            sum += each[skip] = snd_lower_mean(without, kept, &unused);
        }
        for (size_t i = 0; n > 1 && i < n; i++)
            squares += (each[i] - sum / (double)n) * (each[i] - sum / (double)n);
        snd_lower_mean(values, n, &error);
        assert_close(error, sqrt((double)(n - 1) / (double)n * squares), 1e-12);
    }
    double four[] = { 4, 1, 3, 2 }, five[] = { 9, 1, 3, 2, 100 };
    assert_close(snd_lower_mean(four, 4, &error), 1.5, 0);
    assert_close(snd_lower_mean(five, 5, &error), 2, 0);
}

/* The example of Benjamini and Hochberg, 1995. */
static void false_discoveries(void **state)
{
    double p[] = { 0.0201, 0.0001, 0.0004, 0.0019, 0.0095, 0.0278, 0.0298, 0.0344,
                   0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000 };
    double none[] = { 0.5, 0.2, 0.06 };

    (void)state;
    assert_close(snd_false_discovery_limit(p, 15, 0.05), 0.0095, 0);
    assert_true(snd_false_discovery_limit(none, 3, 0.05) < 0);
    assert_true(snd_false_discovery_limit(none, 0, 0.05) < 0);
}

/* --------------------------------------------------------------------- judging */

#define ROWS 6
#define STEPS 20

/* Times near 1,000,000 that differ by a few thousandths, in an order that repeats. */
static void fill(double *ns, size_t row, double factor)
{
    for (size_t i = 0; i < STEPS; i++)
        ns[i] = (1e6 + 1000 * (double)((i * 13 + row * 5) % 17)) * factor;
}

static void one_run_a_side(void **state)
{
    double                 a[ROWS][STEPS], b[ROWS][STEPS];
    struct snd_diff_series series[ROWS][2];
    struct snd_diff_input  rows[ROWS];
    struct snd_diff_answer answers[ROWS];
    struct snd_diff_noise  noise;

    (void)state;
    /* The whole machine is 3 % slower; row 2 besides 5 %, row 4 has 4 samples. */
    for (size_t i = 0; i < ROWS; i++) {
        fill(a[i], i, 1);
        fill(b[i], i + 1, i == 2 ? 1.03 * 1.05 : 1.03);
        series[i][0] = (struct snd_diff_series){ a[i], i == 4 ? 4 : STEPS };
        series[i][1] = (struct snd_diff_series){ b[i], STEPS };
        rows[i] = (struct snd_diff_input){ &series[i][0], &series[i][1] };
    }
    assert_true(snd_diff_judge(rows, ROWS, 1, 1, 0.02, answers, &noise));
    assert_false(noise.by_runs);
    assert_int_equal(noise.judged, 5);
    assert_close(noise.shift, 0.03, 0.002);
    assert_int_equal(answers[2].verdict, SND_DIFF_SLOWER);
    assert_close(answers[2].change, 0.05, 0.003);
    assert_true(answers[2].low < 0.05 && answers[2].high > 0.05 && answers[2].low > 0);
    assert_int_equal(answers[4].verdict, SND_DIFF_NOT_JUDGED);
    assert_true(answers[4].has_times);
    for (size_t i = 0; i < ROWS; i++)
        if (i != 2 && i != 4)
            assert_int_equal(answers[i].verdict, SND_DIFF_SAME);
    /* A limit above the change: it is real, but not called. */
    assert_true(snd_diff_judge(rows, ROWS, 1, 1, 0.10, answers, &noise));
    assert_int_not_equal(answers[2].verdict, SND_DIFF_SLOWER);
}

/* What all rows do by far more than a machine does is a change. */
static void all_rows_change(void **state)
{
    double                 a[ROWS][STEPS], b[ROWS][STEPS];
    struct snd_diff_series series[ROWS][2];
    struct snd_diff_input  rows[ROWS];
    struct snd_diff_answer answers[ROWS];
    struct snd_diff_noise  noise;

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        fill(a[i], i, 1);
        fill(b[i], i, 2.0 + 0.1 * (double)i);
        series[i][0] = (struct snd_diff_series){ a[i], STEPS };
        series[i][1] = (struct snd_diff_series){ b[i], STEPS };
        rows[i] = (struct snd_diff_input){ &series[i][0], &series[i][1] };
    }
    assert_true(snd_diff_judge(rows, ROWS, 1, 1, 0.02, answers, &noise));
    assert_close(noise.shift, 0, 0);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(answers[i].verdict, SND_DIFF_SLOWER);
    assert_close(answers[0].change, 1, 1e-9);
}

static void several_runs_a_side(void **state)
{
    double                 ns[2][ROWS][3];
    struct snd_diff_series series[ROWS][6];
    struct snd_diff_input  rows[ROWS];
    struct snd_diff_answer answers[ROWS];
    struct snd_diff_noise  noise;

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t run = 0; run < 3; run++) {
            double noisy = 1e6 * (1 + 0.004 * (double)((run * 2 + i) % 3));
            ns[0][i][run] = noisy;
            ns[1][i][run] = noisy * (i == 1 ? 0.9 : 1);
            series[i][run] = (struct snd_diff_series){ &ns[0][i][run], 1 };
            series[i][3 + run] = (struct snd_diff_series){ &ns[1][i][run],
                                                           i == 5 && run > 0 ? 0 : 1 };
        }
        rows[i] = (struct snd_diff_input){ &series[i][0], &series[i][3] };
    }
    assert_true(snd_diff_judge(rows, ROWS, 3, 3, 0.02, answers, &noise));
    assert_true(noise.by_runs);
    assert_int_equal(answers[1].verdict, SND_DIFF_FASTER);
    assert_close(answers[1].change, -0.1, 0.002);
    assert_int_equal(answers[0].verdict, SND_DIFF_SAME);
    assert_int_equal(answers[5].verdict, SND_DIFF_NOT_JUDGED); /* one run of B has it */
}

/* Two runs of each side differ from each other: the least by which runs can be judged. */
static void from_two_runs_on(void **state)
{
    const double           ns[] = { 1e6, 1.001e6 };
    struct snd_diff_series series[] = { { &ns[0], 1 }, { &ns[1], 1 } };
    struct snd_diff_input  row = { series, series };
    struct snd_diff_answer answer;
    struct snd_diff_noise  noise;

    (void)state;
    for (size_t a = 1; a <= 2; a++)
        for (size_t b = 1; b <= 2; b++) {
            assert_true(snd_diff_judge(&row, 1, a, b, 0.02, &answer, &noise));
            assert_int_equal(noise.by_runs, a == 2 && b == 2);
            assert_true(noise.inflation == 1);
        }
}

static void nothing_to_judge(void **state)
{
    const double           one[] = { 5 };
    struct snd_diff_series some = { one, 1 }, none = { one, 0 };
    struct snd_diff_input  rows[] = { { &some, &none }, { &none, &none } };
    struct snd_diff_answer answers[2];
    struct snd_diff_noise  noise;

    (void)state;
    assert_true(snd_diff_judge(rows, 2, 1, 1, 0.02, answers, &noise));
    assert_int_equal(noise.judged, 0);
    assert_false(answers[0].has_times);
    assert_true(snd_diff_judge(rows, 0, 1, 1, 0.02, answers, &noise));
}

/* ------------------------------------------------------------ real recordings */

#define POOL_ROWS 100
struct run {
    char   slowed[32];
    size_t rows;
    struct {
        char   name[96];
        double ns[STEPS];
        size_t count;
    } row[POOL_ROWS];
};
struct pool {
    struct run *runs;
    size_t      count;
};

static void read_row(struct run *run, const char *name, char *times)
{
    size_t at = run->rows++;

    assert_true(at < POOL_ROWS);
    snprintf(run->row[at].name, sizeof run->row[at].name, "%s", name);
    for (char *next; run->row[at].count < STEPS; times = next) {
        double ns = strtod(times, &next);
        if (next == times)
            break;
        run->row[at].ns[run->row[at].count++] = ns;
    }
}

static struct pool read_pool(const char *name)
{
    char        path[4096], line[4096], slowed[32], row[96];
    struct pool result = { calloc(100, sizeof *result.runs), 0 };
    size_t      run;
    int         at;

    snprintf(path, sizeof path, "%s/diff/%s.txt", getenv("SONDE_TEST_DATA"), name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#' || sscanf(line, "%zu %31s %95s %n", &run, slowed, row, &at) != 3)
            continue;
        assert_true(run < 100);
        result.count = run + 1;
        strcpy(result.runs[run].slowed, slowed);
        read_row(&result.runs[run], row, line + at);
    }
    fclose(file);
    return result;
}

/* Calls of one run against another: how many rows, how many changed, whether `expected` is among them. */
struct result {
    size_t rows, changed;
    bool   found;
};

static struct result compare_runs(const struct run *a, const struct run *b)
{
    struct snd_diff_series series[POOL_ROWS][2];
    struct snd_diff_input  rows[POOL_ROWS] = { { NULL, NULL } };
    struct snd_diff_answer answers[POOL_ROWS];
    const char            *names[POOL_ROWS];
    struct snd_diff_noise  noise;
    struct result          result = { 0 };
    size_t                 count = 0;

    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < b->rows; j++)
            if (strcmp(a->row[i].name, b->row[j].name) == 0) {
                series[count][0] = (struct snd_diff_series){ a->row[i].ns, a->row[i].count };
                series[count][1] = (struct snd_diff_series){ b->row[j].ns, b->row[j].count };
                rows[count] = (struct snd_diff_input){ &series[count][0], &series[count][1] };
                names[count++] = a->row[i].name;
            }
    assert_true(snd_diff_judge(rows, count, 1, 1, SND_DIFF_LEAST_EFFECT, answers, &noise));
    result.rows = noise.judged;
    for (size_t i = 0; i < count; i++) {
        bool slower = answers[i].verdict == SND_DIFF_SLOWER;
        result.changed += slower || answers[i].verdict == SND_DIFF_FASTER;
        result.found |= slower && strcmp(names[i], b->slowed) == 0;
    }
    return result;
}

static uint32_t draw(uint64_t *state, size_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* 200 pairs of runs of the same program, drawn from the pool: at most 5 % of rows called changed. */
static void equal_programs(void **state)
{
    static const char *const names[] = { "quiet", "busy", "torch" };

    (void)state;
    for (size_t p = 0; p < 3; p++) {
        struct pool pool = read_pool(names[p]);
        uint64_t    seed = 1;
        size_t      rows = 0, changed = 0;
        for (size_t pairs = 0; pairs < 200;) {
            const struct run *a = &pool.runs[draw(&seed, pool.count)];
            const struct run *b = &pool.runs[draw(&seed, pool.count)];
            if (a == b || strcmp(a->slowed, "-") != 0 || strcmp(b->slowed, "-") != 0)
                continue;
            struct result r = compare_runs(a, b);
            rows += r.rows;
            changed += r.changed;
            pairs++;
        }
        print_message("%s: %zu of %zu rows of equal programs called changed\n", names[p], changed,
                      rows);
        assert_true(rows >= 1000);
        assert_true(changed * 20 <= rows);
        free(pool.runs);
    }
}

/* One row has 5 % more to do, another one each time; 20 steps a side: found in 95 of 100. */
static void slowdowns(void **state)
{
    struct pool pool = read_pool("quiet");
    uint64_t    seed = 1;
    size_t      found = 0;

    (void)state;
    for (size_t pairs = 0; pairs < 100;) {
        const struct run *a = &pool.runs[draw(&seed, pool.count)];
        const struct run *b = &pool.runs[draw(&seed, pool.count)];
        if (strcmp(a->slowed, "-") != 0 || strcmp(b->slowed, "-") == 0)
            continue;
        found += compare_runs(a, b).found;
        pairs++;
    }
    print_message("%zu of 100 slowdowns of 5 %% found\n", found);
    assert_true(found >= 95);
    free(pool.runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_tail),       cmocka_unit_test(quantiles),
        cmocka_unit_test(lower_means),         cmocka_unit_test(false_discoveries),
        cmocka_unit_test(one_run_a_side),      cmocka_unit_test(all_rows_change),
        cmocka_unit_test(several_runs_a_side), cmocka_unit_test(from_two_runs_on),
        cmocka_unit_test(nothing_to_judge),    cmocka_unit_test(equal_programs),
        cmocka_unit_test(slowdowns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
