/* SPDX-License-Identifier: Apache-2.0 */
/* read/file/scale.c: raw clocks to nanoseconds on the time axis of the trace. */
#include "read/file/scale.h"

#include "read/reader.h"
#include "scratch.h"

static const struct snd_clock_pair start = { 1000000, 5000000000, 0 };

static void nanosecond_clocks_are_exact(void **state)
{
    struct snd_scale    scale;
    struct snd_baseline none = { 0 };

    (void)state;
    assert_true(snd_scale_make(&scale, SND_CLOCK_MONOTONIC, &start, &none));
    assert_int_equal(snd_scale_ns(&scale, 1000000), 5000000000);
    assert_int_equal(snd_scale_ns(&scale, 1000000 + 123456789), 5123456789);
    assert_int_equal(snd_scale_ns(&scale, 1000000 - 7), 4999999993);
}

/* 3.187 GHz over a base line of 2 s: after an hour still within a nanosecond a second. */
static void rates_are_precise(void **state)
{
    struct snd_scale      scale;
    struct snd_baseline   line = { 0 };
    struct snd_clock_pair later = { 1000000 + 2 * 3187000000ull, 7000000000, 0 };

    (void)state;
    snd_baseline_add(&line, &later);
    snd_baseline_add(&line, &start);
    assert_true(snd_scale_make(&scale, SND_CLOCK_TSC, &start, &line));
    for (uint64_t s = 1; s <= 3600; s += 100) {
        int64_t ns = snd_scale_ns(&scale, 1000000 + s * 3187000000u);
        int64_t exact = 5000000000 + (int64_t)s * 1000000000;
        assert_true(llabs(ns - exact) <= (int64_t)s);
        assert_true(llabs(ns - exact) <= 5);
    }
}

static void the_widest_base_line_counts(void **state)
{
    struct snd_scale      scale;
    struct snd_baseline   line = { 0 };
    struct snd_clock_pair pairs[4] = { { 2000, 5000001010, 0 }, /* noisy: near to the start */
                                       { 1000000000, 6000000000, 0 },
                                       { 500000000, 5499999000, 0 },
                                       { 0, 0, 0 } /* not filled in */ };

    (void)state;
    snd_baseline_add(&line, &(struct snd_clock_pair){ 1000, 5000000000, 0 });
    for (size_t i = 0; i < 4; i++)
        snd_baseline_add(&line, &pairs[i]);
    assert_int_equal(line.first.raw, 1000);
    assert_int_equal(line.last.raw, 1000000000);
    assert_true(snd_scale_make(&scale, SND_CLOCK_TSC, &start, &line));
}

static void impossible_clocks_are_told(void **state)
{
    static const struct snd_clock_pair ends[] = {
        { 1000000, 6000000000, 0 },    /* the clock stands still */
        { UINT64_MAX, 5000000001, 0 }, /* 10^19 ticks in a nanosecond */
        { 1000001, UINT64_MAX, 0 },    /* centuries in a tick */
        { 2000000, 4000000000, 0 },    /* time runs backwards */
    };

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct snd_baseline line = { 0 };
        struct snd_scale    scale;
        snd_baseline_add(&line, &start);
        snd_baseline_add(&line, &ends[i]);
        assert_false(snd_scale_make(&scale, SND_CLOCK_TSC, &start, &line));
        assert_int_equal(snd_scale_ns(&scale, 1000000 + 5), 5000000005);
    }
}

static const struct snd_scale_bend bends[] = { { 1000000, 500 },
                                               { 2000000, 2500 },
                                               { 5000000, -3000 } };
static const struct snd_scale      bent = {
         .raw0 = 1000, .rate = (int64_t)1 << SND_SCALE_SHIFT, .bends = bends, .bend_count = 3
};

static void bends_are_joined_by_lines(void **state)
{
    static const struct snd_scale_bend expected[] = {
        { 0, 500 },         { 1000000, 500 },   { 1000500, 501 },  { 1500000, 1500 },
        { 1999500, 2499 },  { 2000000, 2500 },  { 3500000, -250 }, { 4999999, -2999 },
        { 5000000, -3000 }, { 9000000, -3000 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_int_equal(snd_scale_added(&bent, expected[i].at_ns), expected[i].add_ns);
        assert_int_equal(snd_scale_ns(&bent, 1000 + (uint64_t)expected[i].at_ns),
                         expected[i].at_ns + expected[i].add_ns);
    }
}

/* The clock that a moment is found by: no time before it is as late, and it is hardly too early. */
static void moments_are_found_by_their_clock(void **state)
{
    (void)state;
    for (int64_t straight = 0; straight <= 6000000; straight += 12345) {
        uint64_t raw = 1000 + (uint64_t)straight;
        int64_t  ns = snd_scale_ns(&bent, raw);
        uint64_t before = snd_scale_raw_before(&bent, ns);
        assert_true(before <= raw && before + 1010 >= raw);
        assert_true(before == 0 || snd_scale_ns(&bent, before) < ns);
    }
}

/* A clock that is off by the same all the time has one bend, which moves all that its process shows; another's stays. */
static void one_bend_moves_a_process(void **state)
{
    static const struct snd_scale_bend one = { 1000, 500 };
    struct synth                      *s = synth_new(scratch_path("bent"), NULL);
    uint32_t                           t = synth_thread(s, "main", 0);

    (void)state;
    synth_begin(s, t, 100, synth_string(s, "range"), 0);
    synth_end(s, t, 200);
    synth_close(s, true);
    for (uint32_t count = 0; count <= 1; count++) {
        struct sonde_trace *trace = scratch_open(scratch_path("bent"));
        struct sonde_thread before = *sonde_trace_thread(trace, 0);
        int64_t             from = sonde_trace_process(trace, 0)->start_ns,
                to = sonde_trace_process(trace, 0)->stop_ns;
        assert_true(snd_axis_bend(trace, 0, &one, count));
        assert_int_equal(trace->processes[0].scale.bend_count, count);
        assert_int_equal(sonde_trace_process(trace, 0)->start_ns, from + 500 * count);
        assert_int_equal(sonde_trace_process(trace, 0)->stop_ns, to + 500 * count);
        assert_int_equal(sonde_trace_thread(trace, 0)->start_ns, before.start_ns + 500 * count);
        assert_int_equal(sonde_trace_thread(trace, 0)->stop_ns, before.stop_ns + 500 * count);
        sonde_trace_close(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nanosecond_clocks_are_exact),
        cmocka_unit_test(rates_are_precise),
        cmocka_unit_test(the_widest_base_line_counts),
        cmocka_unit_test(impossible_clocks_are_told),
        cmocka_unit_test(bends_are_joined_by_lines),
        cmocka_unit_test(moments_are_found_by_their_clock),
        cmocka_unit_test(one_bend_moves_a_process),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
