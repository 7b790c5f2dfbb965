/* SPDX-License-Identifier: Apache-2.0 */
/* model/diff/diff_sampler.c: the times of a row that are compared: of its calls, and of its steps. */
#include "model/diff/diff.h"

#include "format/layout.h"
#include "scratch.h"

static const struct snd_diff_source *find_source(const char *name)
{
    for (size_t i = 0; i < snd_diff_source_count; i++)
        if (strcmp(snd_diff_sources[i].name, name) == 0)
            return &snd_diff_sources[i];
    fail_msg("no source %s", name);
    return NULL;
}

static struct snd_diff_run fill(const char *path)
{
    struct snd_diff_run run = { 0 };
    struct sonde_error  err = { 0 };
    struct sonde_trace *trace = scratch_open(path);

    if (find_source("ops")->fill(trace, &run, &err) != SONDE_OK)
        fail_msg("%s", err.message);
    sonde_trace_close(trace);
    return run;
}

static const struct snd_diff_item *find(const struct snd_diff_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->count; i++)
        if (text_is(run->items[i].name, name))
            return &run->items[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* Of more than there is room for, every second, fourth, .. from the first on. */
static void calls_are_thinned_out_evenly(void **state)
{
    static const struct {
        uint32_t calls, stride;
    } cases[] = {
        { 1, 1 },
        { SND_DIFF_CALLS_MOST, 1 },
        { SND_DIFF_CALLS_MOST + 1, 2 },
        { 2 * SND_DIFF_CALLS_MOST, 2 },
        { 2 * SND_DIFF_CALLS_MOST + 1, 4 },
        { 3 * SND_DIFF_CALLS_MOST + 7, 4 },
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct synth *s = synth_new(scratch_path("calls"), NULL);
        uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "op");
        int64_t       sum = 0;
        for (uint32_t i = 0; i < cases[c].calls; i++) {
            synth_span(s, t, (uint64_t)i * 100000, name, 1 + i);
            sum += 1 + i;
        }
        synth_close(s, true);
        struct snd_diff_run         run = fill(scratch_path("calls"));
        const struct snd_diff_item *op = find(&run, "op");
        assert_int_equal(op->all.count, cases[c].calls);
        assert_int_equal(op->all.time_ns, sum);
        assert_int_equal(op->calls.count, (cases[c].calls + cases[c].stride - 1) / cases[c].stride);
        for (size_t i = 0; i < op->calls.count; i++)
            assert_int_equal(op->calls.ns[i], 1 + i * cases[c].stride);
        assert_int_equal(op->steps.count, 0);
        snd_diff_run_release(&run);
    }
}

/* A range belongs to the step in which it began, also if another step has ended before it ends. */
static void steps_have_what_began_in_them(void **state)
{
    struct synth *s = synth_new(scratch_path("steps"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      a = synth_string(s, "a"), b = synth_string(s, "b");

    (void)state;
    synth_span(s, t, 100, a, 7); /* before the first */
    synth_step(s, t, 1000, 1);
    synth_span(s, t, 1100, a, 10);
    synth_begin(s, u, 1150, a, 0); /* ends in the third */
    synth_attr(s, u, SND_ATTR_FLOPS, 5);
    synth_span(s, t, 1200, a, 20);
    synth_step(s, t, 2000, 2);
    synth_span(s, t, 2100, b, 30);
    synth_step(s, t, 3000, 3);
    synth_span(s, t, 3100, a, 40);
    synth_alloc(s, u, 3150, SND_DEVICE(0, 0xffff), 4096, 64);
    synth_end(s, u, 3200);
    synth_step(s, t, 4000, 4);
    synth_close(s, true);
    struct snd_diff_run         run = fill(scratch_path("steps"));
    const struct snd_diff_item *x = find(&run, "a"), *y = find(&run, "b");
    assert_int_equal(run.steps, 3);
    assert_int_equal(run.step_times.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(run.step_times.ns[i], 1000);
    assert_int_equal(x->all.count, 5);
    assert_int_equal(x->all.time_ns, 7 + 10 + 20 + 2050 + 40);
    assert_int_equal(x->all.bytes, 64);
    assert_true(x->all.flops == 5);
    assert_int_equal(x->in_steps.count, 4);
    assert_int_equal(x->in_steps.time_ns, 10 + 20 + 2050 + 40);
    assert_int_equal(x->steps.count, 2);
    assert_int_equal(x->steps.ns[0], 10 + 20 + 2050);
    assert_int_equal(x->steps.ns[1], 40);
    assert_int_equal(y->steps.count, 1);
    assert_int_equal(y->steps.ns[0], 30);
    snd_diff_run_release(&run);
}

/* What follows the last step, of a program that says when its steps end, is in no figure of a step. */
static void what_follows_the_last_step_is_none(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        const char   *path = scratch_path(ended ? "ended" : "open");
        struct synth *s = synth_new(path, NULL);
        uint32_t      t = synth_thread(s, "main", 0), a = synth_string(s, "a");
        synth_meta(s, "steps.first", "1");
        if (ended)
            synth_meta(s, "steps.ended", "3");
        for (uint64_t i = 1; i <= 3; i++) {
            synth_step(s, t, 1000 * i, i);
            synth_span(s, t, 1000 * i + 10, a, 100 * i);
        }
        synth_close(s, true);
        struct snd_diff_run         run = fill(path);
        const struct snd_diff_item *x = find(&run, "a");
        assert_int_equal(run.steps, 2 + ended);
        assert_int_equal(run.step_times.count, 2 + ended);
        assert_int_equal(x->all.count, 3);
        assert_int_equal(x->in_steps.count, 2 + ended);
        assert_int_equal(x->in_steps.time_ns, ended ? 600 : 300);
        assert_int_equal(x->steps.count, 2 + ended);
        assert_int_equal(x->steps.ns[1], 200);
        snd_diff_run_release(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_thinned_out_evenly),
        cmocka_unit_test(steps_have_what_began_in_them),
        cmocka_unit_test(what_follows_the_last_step_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
