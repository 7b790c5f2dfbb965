/* SPDX-License-Identifier: Apache-2.0 */
/* A model's cost: from marked runs and passes to numbers, worked out by hand. */
#include <math.h>

#include "format/layout.h"
#include "scratch.h"
#include "sonde/bench.h"

#define CPU SND_DEVICE(0, 0xffff)
#define GPU SND_DEVICE(1, 0)

static void range(struct synth *s, uint32_t t, uint64_t start, uint64_t end, const char *name)
{
    synth_begin(s, t, start, synth_string(s, name), 0);
    synth_end(s, t, end);
}

static void product(struct synth *s, uint32_t t, uint64_t at)
{
    synth_begin(s, t, at, synth_string(s, "aten::mm"), synth_shapes(s, "2,3;3,4"));
    synth_end(s, t, at + 10);
}

static struct sonde_bench *finish(struct synth *s, struct sonde_trace **trace)
{
    struct sonde_bench *bench;
    struct sonde_error  err = { SONDE_OK, 0, "" };

    synth_close(s, true);
    *trace = scratch_open(scratch_path("bench"));
    if (sonde_bench_new(*trace, &bench, &err) != SONDE_OK)
        fail_msg("%s", err.message);
    return bench;
}

static void runs_are_spread(void **state)
{
    static const uint64_t lengths[] = { 400, 100, 200, 300 };
    struct synth         *s = synth_new(scratch_path("bench"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    struct sonde_trace   *trace;

    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        range(s, t, 10000 * (i + 1), 10000 * (i + 1) + lengths[i], "model.forward batch=8");
    range(s, t, 90000, 90010, "model.forward batch=2");
    range(s, t, 91000, 91010, "model.forward batch=0"); /* none of these is one */
    range(s, t, 92000, 92010, "model.forward batch=8x");
    range(s, t, 93000, 93010, "model.forward batch=");
    synth_begin(s, t, 94000, synth_string(s, "model.forward batch=8"), 0); /* nor this: no end */
    struct sonde_bench *bench = finish(s, &trace);
    assert_int_equal(sonde_bench_count(bench), 2);
    assert_int_equal(sonde_bench_batch(bench, 0)->size, 2);
    const struct sonde_bench_batch *b = sonde_bench_batch(bench, 1);
    const struct sonde_bench_time  *time = &b->time[SONDE_BENCH_ON_DEVICE];
    assert_int_equal(b->size, 8);
    assert_int_equal(time->spread.count, 4);
    assert_true(time->spread.mean_ns == 250 && time->spread.median_ns == 250);
    assert_true(fabs(time->sigma_ns - sqrt(12500)) < 1e-9);
    assert_true(fabs(time->rate_mean - (1e9 / 100 + 1e9 / 200 + 1e9 / 300 + 1e9 / 400) / 4) < 1e-3);
    assert_true(time->rate_max == 1e7 && time->rate_min == 2.5e6);
    assert_int_equal(b->time[SONDE_BENCH_TOTAL].spread.count, 0);
    assert_int_equal(b->passes, 0);
    assert_true(isnan(b->joules));
    assert_null(sonde_bench_batch(bench, 2));
    sonde_bench_free(bench);
    sonde_trace_close(trace);
}

static void peak_is_of_what_the_pass_took(void **state)
{
    struct synth       *s = synth_new(scratch_path("bench"), NULL);
    uint32_t            t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    struct sonde_trace *trace;

    (void)state;
    synth_alloc(s, t, 100, CPU, 1, 5000); /* before: its free inside does not count */
    synth_begin(s, t, 1000, synth_string(s, "model.pass batch=4"), 0);
    synth_alloc(s, t, 1100, CPU, 2, 300);
    synth_free(s, t, 1200, CPU, 1, 5000);
    synth_alloc(s, u, 1300, CPU, 3, 200); /* on another thread: the pass's all the same */
    synth_alloc(s, t, 1400, GPU, 4, 99);  /* another device's: not the model's */
    synth_free(s, t, 1500, CPU, 2, 0);    /* does not tell its size */
    synth_alloc(s, t, 1600, CPU, 5, 250);
    product(s, t, 1700);
    synth_end(s, t, 2000);
    synth_alloc(s, t, 2100, CPU, 6, 70000);                            /* after */
    synth_begin(s, t, 3000, synth_string(s, "model.pass batch=4"), 0); /* a smaller one */
    synth_alloc(s, t, 3100, CPU, 7, 10);
    product(s, t, 3200);
    synth_end(s, t, 4000);
    product(s, t, 5000);                                               /* in no pass */
    synth_begin(s, t, 6000, synth_string(s, "model.pass batch=4"), 0); /* killed in the middle */
    product(s, t, 6100);
    struct sonde_bench             *bench = finish(s, &trace);
    const struct sonde_bench_batch *b = sonde_bench_batch(bench, 0);
    assert_int_equal(b->size, 4);
    assert_int_equal(b->passes, 2);
    assert_int_equal(b->peak_bytes, 500);
    assert_int_equal(b->held_bytes, 450);
    assert_true(b->macs == 24 && b->flops == 48);
    assert_int_equal(b->before_bytes, -1);
    sonde_bench_free(bench);
    sonde_trace_close(trace);
}

static void training_holds_what_forward_kept(void **state)
{
    struct synth       *s = synth_new(scratch_path("bench"), NULL);
    uint32_t            t = synth_thread(s, "main", 0);
    struct sonde_trace *trace;

    (void)state;
    synth_begin(s, t, 1000, synth_string(s, "model.train batch=1"), 0);
    synth_alloc(s, t, 1100, CPU, 2, 300);
    product(s, t, 1200);
    synth_end(s, t, 2000);
    synth_begin(s, t, 3000, synth_string(s, "model.backward batch=1"), 0);
    synth_alloc(s, t, 3100, CPU, 3, 400);
    product(s, t, 3200);
    product(s, t, 3300);
    synth_free(s, t, 3400, CPU, 2, 300);
    synth_end(s, t, 4000);
    struct sonde_bench             *bench = finish(s, &trace);
    const struct sonde_bench_batch *b = sonde_bench_batch(bench, 0);
    assert_int_equal(b->passes, 0);
    assert_int_equal(b->backward_passes, 1);
    assert_true(b->backward_macs == 48 && b->backward_flops == 96);
    assert_int_equal(b->backward_peak_bytes, 700);
    sonde_bench_free(bench);
    sonde_trace_close(trace);
}

static void what_was_told(void **state)
{
    struct synth       *s = synth_new(scratch_path("bench"), NULL);
    uint32_t            t = synth_thread(s, "main", 0);
    struct sonde_trace *trace;

    (void)state;
    synth_meta(s, "model",
               "{\"name\": \"n\", \"class\": \"N\", \"device\": \"cpu\", \"dtype\": \"float32\", "
               "\"parameters\": 10, \"trainable\": 6, \"parameter_bytes\": 40}");
    synth_meta(s, "model.batch", "{\"batch\": 3, \"input_bytes\": 12, \"before_bytes\": 52}");
    synth_meta(s, "model.energy",
               "{\"batch\": 3, \"source\": \"RAPL\", \"before_uj\": 1000000, "
               "\"after_uj\": 9000000, \"runs\": 4}");
    synth_meta(s, "model.failure", "batch 9: failed in N.x");
    range(s, t, 1000, 2000, "model.peak flops=5000");
    range(s, t, 3000, 3500, "model.peak flops=5000");
    range(s, t, 4000, 5000, "model.peak flops=5000");
    struct sonde_bench             *bench = finish(s, &trace);
    const struct sonde_bench_model *m = sonde_bench_model(bench);
    assert_true(text_is(m->name, "n") && text_is(m->kind, "N") && text_is(m->dtype, "float32"));
    assert_true(text_is(m->failure, "batch 9: failed in N.x") && text_is(m->energy, "RAPL"));
    assert_int_equal(m->parameters, 10);
    assert_int_equal(m->trainable, 6);
    assert_int_equal(m->buffer_bytes, -1);
    assert_true(m->peak_flops == 1e10); /* the best of the three */
    const struct sonde_bench_batch *b = sonde_bench_batch(bench, 0);
    assert_int_equal(b->size, 3);
    assert_int_equal(b->input_bytes, 12);
    assert_true(b->joules == 2);
    assert_string_equal(b->path, scratch_path("bench"));
    assert_null(b->train_path);
    sonde_bench_free(bench);
    sonde_trace_close(trace);
}

/* What was not measured, and why; of a batch without energy there is none. */
static void why_there_is_no_energy(void **state)
{
    struct synth       *s = synth_new(scratch_path("bench"), NULL);
    uint32_t            t = synth_thread(s, "main", 0);
    struct sonde_trace *trace;

    (void)state;
    synth_meta(s, "model.batch", "{\"batch\": 3, \"input_bytes\": 12, \"before_bytes\": 52}");
    synth_meta(s, "model.energy", "{\"absent\": \"no counter may be read\"}");
    range(s, t, 1000, 2000, "model.peak flops=5000");
    struct sonde_bench *bench = finish(s, &trace);
    assert_true(text_is(sonde_bench_model(bench)->energy, "no counter may be read"));
    assert_true(isnan(sonde_bench_batch(bench, 0)->joules));
    sonde_bench_free(bench);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_spread),
        cmocka_unit_test(peak_is_of_what_the_pass_took),
        cmocka_unit_test(training_holds_what_forward_kept),
        cmocka_unit_test(what_was_told),
        cmocka_unit_test(why_there_is_no_energy),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
