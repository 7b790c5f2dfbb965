/* SPDX-License-Identifier: Apache-2.0 */
/* Memory over time by category, and the files made of it. */
#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"

#define CPU SND_DEVICE(0, 0xffff)
#define CUDA SND_DEVICE(1, 0)

static void begin(struct synth *s, uint32_t t, uint64_t ns, const char *name, uint64_t scope)
{
    synth_begin(s, t, ns, synth_string(s, name), 0);
    if (scope > 0)
        synth_attr(s, t, SND_ATTR_SCOPE, scope);
}

static struct sonde_trace *make(const char *name)
{
    struct synth *s = synth_new(scratch_path(name), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    synth_alloc(s, t, 1000, CPU, 0x1, 1); /* outside: an input */
    begin(s, t, 2000, "a person's own", 8);
    begin(s, t, 3000, "aten::op", 0);
    synth_alloc(s, t, 3100, CPU, 0x2, 10);  /* kept until the backward pass: an activation */
    synth_alloc(s, t, 3200, CPU, 0x3, 100); /* given back in the same operator */
    synth_alloc(s, t, 3250, CUDA, 0x3, 7);  /* another device */
    synth_free(s, t, 3300, CPU, 0x3, 0);
    synth_end(s, t, 4000);
    begin(s, t, 5000, "autograd::engine::evaluate_function: X", 0);
    begin(s, t, 5100, "X", 2);
    synth_alloc(s, t, 5200, CPU, 0x4, 1000);  /* outlives the pass: a gradient */
    synth_alloc(s, t, 5300, CPU, 0x5, 10000); /* given back in a later function */
    synth_free(s, t, 5400, CPU, 0x2, 0);
    synth_end(s, t, 5500);
    synth_end(s, t, 5600);
    begin(s, t, 5700, "autograd::engine::evaluate_function: Y", 0);
    synth_free(s, t, 5800, CPU, 0x5, 0);
    synth_end(s, t, 5900);
    begin(s, t, 6000, "Optimizer.step#SGD.step", 8);
    begin(s, t, 6100, "aten::zeros_like", 0);
    synth_alloc(s, t, 6200, CPU, 0x6, 100000); /* stays: the optimizer's */
    synth_end(s, t, 6300);
    synth_end(s, t, 6400);
    synth_end(s, t, 7000);
    synth_free(s, t, 8000, CPU, 0x77, 0); /* from before */
    synth_close(s, true);
    return scratch_open(scratch_path(name));
}

static void categories(void **state)
{
    static const struct {
        int64_t  time_ns, bytes;
        unsigned category;
    } expected[] = {
        { 1000, 1, SONDE_MEMORY_INPUT },
        { 3100, 10, SONDE_MEMORY_ACTIVATION },
        { 3200, 100, SONDE_MEMORY_TEMPORARY },
        { 3300, -100, SONDE_MEMORY_TEMPORARY },
        { 5200, 1000, SONDE_MEMORY_GRADIENT },
        { 5300, 10000, SONDE_MEMORY_AUTOGRAD_DETAIL },
        { 5400, -10, SONDE_MEMORY_ACTIVATION },
        { 5800, -10000, SONDE_MEMORY_AUTOGRAD_DETAIL },
        { 6200, 100000, SONDE_MEMORY_OPTIMIZER_STATE },
    };
    struct sonde_trace    *trace = make("categories");
    struct sonde_timeline *timeline;

    (void)state;
    assert_int_equal(sonde_timeline_new(trace, 0, SONDE_NONE, &timeline, NULL), SONDE_OK);
    const struct sonde_timeline_columns *c = sonde_timeline_columns(timeline);
    assert_int_equal(c->count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < c->count; i++) {
        assert_int_equal(c->time_ns[i], expected[i].time_ns);
        assert_int_equal(c->bytes[i], expected[i].bytes);
        assert_int_equal(c->category[i], expected[i].category);
    }
    sonde_timeline_free(timeline);
    assert_int_equal(sonde_timeline_new(trace, 1, 0, &timeline, NULL), SONDE_OK);
    assert_int_equal(sonde_timeline_columns(timeline)->count, 1);
    sonde_timeline_free(timeline);
    sonde_trace_close(trace);
}

static char *write_as(struct sonde_trace *trace, struct sonde_timeline *timeline,
                      enum sonde_timeline_format format, struct sonde_buffer *text)
{
    struct sonde_sink sink = sonde_sink_buffer(text);

    text->length = 0;
    assert_int_equal(sonde_timeline_write(trace, timeline, format, false, &sink, NULL), SONDE_OK);
    return text->bytes;
}

/* As torch writes them: microseconds and sizes by category in its order; single changes. */
static void files(void **state)
{
    struct sonde_trace    *trace = make("files");
    struct sonde_timeline *timeline;
    struct sonde_buffer    text = { 0 };

    (void)state;
    assert_int_equal(sonde_timeline_new(trace, 0, SONDE_NONE, &timeline, NULL), SONDE_OK);
    assert_string_equal(
        write_as(trace, timeline, SONDE_TIMELINE_JSON, &text),
        "[[1700000000000001, 1700000000000003, 1700000000000005, 1700000000000006], "
        "[[0, 0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 10, 0, 0, 0], "
        "[0, 0, 0, 1, 0, 0, 1000, 0, 0], [0, 0, 100000, 1, 0, 0, 1000, 0, 0]]]");
    assert_memory_equal(write_as(trace, timeline, SONDE_TIMELINE_RAW, &text),
                        "[[1700000000000001000, 2, 1, 2], [1700000000000003100, 2, 10, 4], ", 66);
    assert_non_null(strstr(text.bytes, "[1700000000000003300, 4, -100, 3]"));
    assert_non_null(
        strstr(write_as(trace, timeline, SONDE_TIMELINE_HTML, &text), "at most 101001 bytes"));
    assert_non_null(strstr(text.bytes, "<polygon fill=\"goldenrod\""));
    sonde_timeline_free(timeline);
    assert_int_equal(sonde_timeline_new(trace, 12, SONDE_NONE, &timeline, NULL), SONDE_OK);
    assert_string_equal(write_as(trace, timeline, SONDE_TIMELINE_JSON, &text), "[[], []]");
    assert_non_null(
        strstr(write_as(trace, timeline, SONDE_TIMELINE_HTML, &text), "at most 0 bytes"));
    sonde_timeline_free(timeline);
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

/* An operator of 100 ns in which a block is allocated, or freed if it has no bytes. */
static void touch(struct synth *s, uint32_t t, uint64_t ns, uint64_t address, uint64_t bytes)
{
    begin(s, t, ns, "aten::op", 0);
    if (bytes > 0)
        synth_alloc(s, t, ns + 50, CPU, address, bytes);
    else
        synth_free(s, t, ns + 50, CPU, address, 0);
    synth_end(s, t, ns + 100);
}

static void step(struct synth *s, uint32_t t, uint64_t ns)
{
    begin(s, t, ns, "Optimizer.step#Adam.step", 8);
}

/* What an optimizer allocates is its state once it outlives the step, however it is freed later; docs/MEMORY.md. */
static void state_of_an_optimizer(void **state)
{
    static const struct {
        int64_t  bytes;
        unsigned category;
    } expected[] = {
        { 1, SONDE_MEMORY_OPTIMIZER_STATE },  /* freed after the step, outside of everything */
        { 2, SONDE_MEMORY_OPTIMIZER_STATE },  /* freed in a forward operator */
        { 4, SONDE_MEMORY_OPTIMIZER_STATE },  /* freed in the next step */
        { 8, SONDE_MEMORY_TEMPORARY },        /* freed in the same step */
        { 16, SONDE_MEMORY_TEMPORARY },       /* freed in the same operator */
        { 32, SONDE_MEMORY_OPTIMIZER_STATE }, /* never freed */
    };
    struct synth          *s = synth_new(scratch_path("optimizer"), NULL);
    uint32_t               t = synth_thread(s, "main", 0);
    struct sonde_timeline *timeline;

    (void)state;
    step(s, t, 1000);
    touch(s, t, 1100, 0x1, 1);
    touch(s, t, 1200, 0x2, 2);
    touch(s, t, 1300, 0x4, 4);
    touch(s, t, 1400, 0x8, 8);
    begin(s, t, 1500, "aten::sqrt", 0);
    synth_alloc(s, t, 1510, CPU, 0x10, 16);
    synth_free(s, t, 1520, CPU, 0x10, 0);
    synth_end(s, t, 1600);
    touch(s, t, 1700, 0x8, 0);
    touch(s, t, 1800, 0x20, 32);
    synth_end(s, t, 2000);
    synth_free(s, t, 2100, CPU, 0x1, 0);
    touch(s, t, 2200, 0x2, 0);
    step(s, t, 3000);
    touch(s, t, 3100, 0x4, 0);
    synth_end(s, t, 4000);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("optimizer"));
    assert_int_equal(sonde_timeline_new(trace, 0, SONDE_NONE, &timeline, NULL), SONDE_OK);
    const struct sonde_timeline_columns *c = sonde_timeline_columns(timeline);
    assert_int_equal(c->count, 11);
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++)
            if (c->bytes[i] == expected[k].bytes || c->bytes[i] == -expected[k].bytes)
                assert_int_equal(c->category[i], expected[k].category);
    sonde_timeline_free(timeline);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(categories),
        cmocka_unit_test(files),
        cmocka_unit_test(state_of_an_optimizer),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
