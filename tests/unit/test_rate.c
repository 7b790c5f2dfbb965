/* SPDX-License-Identifier: Apache-2.0 */
/* When short-lived threads are sampled more often, and which of the samples are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "native/perf/rate.h"

#define MS 1000000u
#define FINE (MS / SND_RATE_FINER)

static struct snd_rate become_fine(void)
{
    struct snd_rate rate = snd_rate_begin(MS);

    snd_rate_rest(&rate, 4 * MS);
    assert_true(snd_rate_judge(&rate, false));
    assert_true(rate.is_fine);
    assert_int_equal(rate.turn, 1);
    return rate;
}

static void use(struct snd_rate *rate, unsigned periods)
{
    struct snd_rate_thread old = { .sampled_ns = 1000 * (uint64_t)MS };

    for (unsigned i = 0; i < periods; i++)
        assert_int_equal(snd_rate_sample(rate, &old, MS, false), MS);
}

static void a_program_without_short_lived_threads_keeps_its_rate(void **state)
{
    struct snd_rate rate = snd_rate_begin(MS);

    (void)state;
    for (int i = 0; i < 100; i++) {
        use(&rate, 99);
        snd_rate_rest(&rate, 1 * MS);
        assert_false(snd_rate_judge(&rate, false));
    }
    assert_int_equal(rate.turn, 0);
}

static void a_few_ends_are_no_reason(void **state)
{
    struct snd_rate rate = snd_rate_begin(MS);

    (void)state;
    snd_rate_rest(&rate, 4 * MS - 1);
    assert_false(snd_rate_judge(&rate, false));
    snd_rate_rest(&rate, 1);
    assert_true(snd_rate_judge(&rate, false));
}

static void a_twentieth_is_one(void **state)
{
    struct snd_rate rate = snd_rate_begin(MS);

    (void)state;
    use(&rate, 19 * 5);
    snd_rate_rest(&rate, 5 * MS - 1);
    assert_true(snd_rate_judge(&rate, false)); /* rounded down */
    rate = snd_rate_begin(MS);
    use(&rate, 19 * 5 + 20);
    snd_rate_rest(&rate, 5 * MS);
    assert_false(snd_rate_judge(&rate, false));
}

static void what_was_long_ago_does_not_count(void **state)
{
    struct snd_rate rate = snd_rate_begin(MS);

    (void)state;
    use(&rate, 1000);
    assert_false(snd_rate_judge(&rate, false));
    snd_rate_rest(&rate, 4 * MS);
    assert_true(snd_rate_judge(&rate, false));
}

static void it_becomes_coarse_again(void **state)
{
    struct snd_rate        rate = become_fine();
    struct snd_rate_thread young = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 30 * SND_RATE_FINER; i++)
        snd_rate_sample(&rate, &young, FINE, true);
    use(&rate, 970);
    assert_false(snd_rate_judge(&rate, false)); /* short-lived ones have a 33rd of a second */
    assert_true(rate.is_fine);
    use(&rate, 999);
    assert_false(snd_rate_judge(&rate, false)); /* too early to tell */
    use(&rate, 1);
    assert_true(snd_rate_judge(&rate, false));
    assert_false(rate.is_fine);
    snd_rate_rest(&rate, 4 * MS);
    assert_true(snd_rate_judge(&rate, false));
    assert_int_equal(rate.turn, 2);
}

static void rings_that_are_nearly_full_make_it_coarse(void **state)
{
    struct snd_rate rate = become_fine();

    (void)state;
    assert_true(snd_rate_judge(&rate, true));
    assert_false(rate.is_fine);
    assert_false(snd_rate_judge(&rate, true));
    for (int second = 0; second < 10; second++) { /* of used time, in which they are not */
        snd_rate_rest(&rate, 4 * MS);
        assert_false(snd_rate_judge(&rate, false));
        use(&rate, 1000);
        assert_false(snd_rate_judge(&rate, false));
    }
    snd_rate_rest(&rate, 4 * MS);
    assert_true(snd_rate_judge(&rate, false));
    assert_true(rate.is_fine);
}

static void a_young_thread_keeps_its_samples(void **state)
{
    struct snd_rate        rate = become_fine();
    struct snd_rate_thread thread = { 0 };
    uint64_t               young = SND_RATE_YOUNG * SND_RATE_FINER, kept = 0;

    (void)state;
    for (uint64_t i = 0; i < young; i++)
        assert_int_equal(snd_rate_sample(&rate, &thread, FINE, true), FINE);
    for (uint64_t i = 1; i <= 3 * SND_RATE_FINER; i++) {
        uint64_t is = snd_rate_sample(&rate, &thread, FINE, true);
        assert_int_equal(is, i % SND_RATE_FINER == 0 ? MS : 0);
        kept += is;
    }
    assert_int_equal(kept, 3 * MS);
    assert_int_equal(thread.sampled_ns, young * FINE + kept);
}

/* Whatever they live for: what is in no sample is less than a fine period of each. */
static void short_lived_threads_have_their_time(void **state)
{
    struct snd_rate rate = become_fine();
    uint64_t        used = 0, sampled = 0;
    uint32_t        seed = 1;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct snd_rate_thread thread = { 0 };
        seed = seed * 1664525u + 1013904223u;
        uint64_t length = seed % (2 * MS);
        for (uint64_t at = FINE; at <= length; at += FINE)
            snd_rate_sample(&rate, &thread, FINE, true);
        assert_in_range(length - thread.sampled_ns, 0, FINE - 1);
        used += length;
        sampled += thread.sampled_ns;
    }
    assert_in_range((used - sampled) * 1000 / used, 50, 75); /* half a fine period of a whole one */
}

static void a_thread_with_fine_samples_needs_no_others(void **state)
{
    struct snd_rate        rate = become_fine();
    struct snd_rate_thread both = { 0 }, older = { 0 };

    (void)state;
    assert_int_equal(snd_rate_sample(&rate, &older, MS, false), MS);
    assert_int_equal(snd_rate_sample(&rate, &both, FINE, true), FINE);
    assert_int_equal(snd_rate_sample(&rate, &both, MS, false), 0);
    assert_int_equal(both.sampled_ns, FINE);
    use(&rate, 2000);
    assert_true(snd_rate_judge(&rate, false)); /* coarse: it has the others alone */
    assert_int_equal(snd_rate_sample(&rate, &both, MS, false), MS);
    snd_rate_rest(&rate, 4 * MS);
    assert_true(snd_rate_judge(&rate, false)); /* fine again, for those that begin now */
    assert_int_equal(snd_rate_sample(&rate, &both, MS, false), MS);
}

static void a_period_has_a_least_length(void **state)
{
    static const struct {
        uint64_t period, fine;
    } cases[] = { { 10 * MS, 10 * MS / 8 }, { MS / 2, 100000 }, { 200000, 100000 },
                  { 199999, 199999 },       { 50000, 50000 },   { 0, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_rate rate = snd_rate_begin(cases[i].period);
        assert_int_equal(rate.fine_ns, cases[i].fine);
        snd_rate_rest(&rate, 100 * MS);
        assert_int_equal(snd_rate_judge(&rate, false), cases[i].fine != cases[i].period);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_short_lived_threads_keeps_its_rate),
        cmocka_unit_test(a_few_ends_are_no_reason),
        cmocka_unit_test(a_twentieth_is_one),
        cmocka_unit_test(what_was_long_ago_does_not_count),
        cmocka_unit_test(it_becomes_coarse_again),
        cmocka_unit_test(rings_that_are_nearly_full_make_it_coarse),
        cmocka_unit_test(a_young_thread_keeps_its_samples),
        cmocka_unit_test(short_lived_threads_have_their_time),
        cmocka_unit_test(a_thread_with_fine_samples_needs_no_others),
        cmocka_unit_test(a_period_has_a_least_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
