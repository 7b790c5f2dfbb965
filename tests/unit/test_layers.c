/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: whose samples are whose, and what is made of them. */
#include <math.h>

#include "format/fields.h"
#include "format/layout.h"
#include "scratch.h"
#include "sonde/layers.h"

static const char head[] = "model_name=m\ndtype=torch.float32\nbatch_size=2\nlayers=3";

static void run(struct synth *s, uint32_t t, uint64_t ns, const char *name, uint64_t duration)
{
    synth_span(s, t, ns, synth_string(s, name), duration);
}

static void samples_and_spread(void **state)
{
    static const uint64_t times[] = { 40, 10, 30, 20, 100 };
    struct synth         *s = synth_new(scratch_path("spread"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    struct sonde_layers  *layers;

    (void)state;
    synth_meta(s, "layers", head);
    synth_meta(s, "layer 2",
               "name=second\nin=torch.float32 [4, 3] 96\nin=torch.bool [] 2\n"
               "out=torch.float16 [5] 20\nparameter_count=7\nparameter_bytes=28\n"
               "buffer_bytes=4");
    synth_meta(s, "layer 1", "name=first");
    run(s, t, 10, "layer 2 warmup", 5000);
    run(s, t, 6000, "layer 22", 5000); /* another layer's, of which nothing is said */
    for (size_t i = 0; i < 5; i++)
        run(s, t, 20000 + 1000 * i, "layer 2", times[i]);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("spread"));
    assert_int_equal(sonde_layers_new(trace, &layers, NULL), SONDE_OK);
    assert_int_equal(sonde_layers_count(layers), 2);
    assert_true(text_is(sonde_layers_head(layers)->model_name, "m"));
    assert_int_equal(sonde_layers_head(layers)->batch_size, 2);
    const struct sonde_layer *first = sonde_layers_row(layers, 0);
    assert_int_equal(first->number, 1);
    assert_int_equal(first->time[SONDE_LAYER_FORWARD].count, 0);
    assert_int_equal(first->rss_bytes, -1);
    const struct sonde_layer *l = sonde_layers_row(layers, 1);
    assert_int_equal(l->number, 2);
    assert_int_equal(l->in_count, 2);
    assert_int_equal(l->in[0].ndim, 2);
    assert_int_equal(l->in[0].dims[1], 3);
    assert_int_equal(l->in[1].ndim, 0);
    assert_true(text_is(l->in[1].dtype, "torch.bool"));
    assert_int_equal(l->in_bytes, 98);
    assert_int_equal(l->out_bytes, 20);
    assert_int_equal(l->parameter_bytes, 28);
    const struct sonde_spread *time = &l->time[SONDE_LAYER_FORWARD];
    assert_int_equal(time->count, 5);
    assert_int_equal(time->min_ns, 10);
    assert_int_equal(time->max_ns, 100);
    assert_int_equal(time->p90_ns, 100);
    assert_true(time->mean_ns == 40 && time->median_ns == 30);
    assert_true(fabs(time->std_ns - sqrt(5000.0 / 4)) < 1e-9);
    assert_null(sonde_layers_row(layers, 2));
    sonde_layers_free(layers);
    sonde_trace_close(trace);
}

/* Where CUDA events are the clock, the ranges are the host's. */
static void device_times(void **state)
{
    struct synth        *s = synth_new(scratch_path("device"), NULL);
    uint32_t             t = synth_thread(s, "main", 0);
    struct sonde_layers *layers;

    (void)state;
    synth_meta(s, "layers", head);
    synth_meta(s, "layer 1", "name=a");
    synth_meta(s, "layer 2", "name=b\nsame_as=1");
    synth_meta(s, "layer 3", "name=c\nsame_as=9"); /* there is no such layer */
    run(s, t, 100, "layer 1", 7);
    synth_counter(s, t, 200, synth_string(s, "layer 1 device_ns"), 5000.0);
    synth_counter(s, t, 210, synth_string(s, "layer 1 device_ns"), -1.0);
    synth_counter(s, t, 220, synth_string(s, "layer 1 device_copy_ns"), 800.0);
    run(s, t, 225, "layer 1 copy", 3);                         /* the host's */
    synth_counter(s, t, 230, synth_string(s, "layer 1"), 1.0); /* no sample */
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("device"));
    assert_int_equal(sonde_layers_new(trace, &layers, NULL), SONDE_OK);
    for (size_t i = 0; i < 2; i++) {
        const struct sonde_layer *l = sonde_layers_row(layers, i);
        assert_int_equal(l->time[SONDE_LAYER_FORWARD].count, 1);
        assert_int_equal(l->time[SONDE_LAYER_FORWARD].min_ns, 5000);
        assert_int_equal(l->time[SONDE_LAYER_HOST].min_ns, 7);
        assert_int_equal(l->time[SONDE_LAYER_COPY].min_ns, 800);
        assert_int_equal(l->same_as, i);
    }
    assert_int_equal(sonde_layers_row(layers, 2)->same_as, 0);
    assert_int_equal(sonde_layers_row(layers, 2)->time[SONDE_LAYER_FORWARD].count, 0);
    sonde_layers_free(layers);
    sonde_trace_close(trace);
}

static void refuse(const char *name, const char *about, const char *of_layer, const char *why)
{
    struct synth        *s = synth_new(scratch_path(name), NULL);
    struct sonde_layers *layers;
    struct sonde_error   err;

    synth_thread(s, "main", 0);
    synth_meta(s, "layers", about);
    synth_meta(s, "layer 1", of_layer);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path(name));
    assert_int_equal(sonde_layers_new(trace, &layers, &err), SONDE_E_FORMAT);
    assert_null(layers);
    assert_non_null(strstr(err.message, why));
    sonde_trace_close(trace);
}

static void what_cannot_be(void **state)
{
    (void)state;
    refuse("r1", "model_name=m\nbatch_size=0\nlayers=3", "name=a", "batch size");
    refuse("r2", "model_name=m\nbatch_size=2\nlayers=-1", "name=a", "number of layers");
    refuse("r3", head, "in=torch.float32", "not described");
    refuse("r4", head, "in=torch.float32 [3, x] 5", "shape");
    refuse("r5", head, "in=torch.float32 [3, -2] 5", "shape");
    refuse("r6", head, "out=torch.float32 [3, 2", "size");
    refuse("r8", head, "parameter_bytes=-4", "parameter_bytes");
    refuse("r7", head, "out=torch.float32 [3, 2] many", "size");
    refuse("r9", head, "in=torch.float32 [3] -12", "size");
}

/* ------------------------------------------------------------------ as facts */

#define NUMBER(field, n)                                     \
    (struct snd_fact_member)                                 \
    {                                                        \
        SND_FIELD_##field, SND_FACT_NUMBER, 0, (uint64_t)(n) \
    }
#define TEXT(field, text)                                          \
    (struct snd_fact_member)                                       \
    {                                                              \
        SND_FIELD_##field, SND_FACT_TEXT, synth_string(s, text), 0 \
    }
#define TENSOR(field, shape, bytes)                                                   \
    (struct snd_fact_member)                                                          \
    {                                                                                 \
        SND_FIELD_##field, SND_FACT_TENSOR, synth_shapes(s, shape), (uint64_t)(bytes) \
    }

static void tell_model(struct synth *s, int64_t batch_size, int64_t layers)
{
    const struct snd_fact_member told[] = {
        TEXT(LAYERS_MODEL_NAME, "m"), TEXT(LAYERS_DTYPE, "torch.float32"),
        TEXT(LAYERS_DEVICE, "cpu"),   NUMBER(LAYERS_BATCH_SIZE, batch_size),
        NUMBER(LAYERS_COUNT, layers), TEXT(LAYERS_MEMORY, "rss"),
        NUMBER(LAYERS_PAIRED, 1),     TEXT(LAYERS_KEY, "torch"),
        TEXT(LAYERS_VALUE, "2.0"),    TEXT(LAYERS_KEY, "of no value"),
        TEXT(LAYERS_KEY, "threads"),  TEXT(LAYERS_VALUE, "4"),
    };

    synth_fact(s, SND_FACT_OF_LAYERS, 0, 0, told, sizeof told / sizeof told[0]);
}

static void what_is_told_as_facts(void **state)
{
    struct synth        *s = synth_new(scratch_path("facts"), NULL);
    uint32_t             t = synth_thread(s, "main", 0);
    struct sonde_layers *layers;
    struct sonde_text    key, value;

    (void)state;
    tell_model(s, 2, 3);
    synth_fact(s, SND_FACT_OF_LAYER, 0, 2,
               (struct snd_fact_member[]){
                   TEXT(LAYER_NAME, "second"), TEXT(LAYER_DTYPE, "torch.float32"),
                   TENSOR(LAYER_IN, "4,3", 96), TEXT(LAYER_DTYPE, "torch.bool"),
                   TENSOR(LAYER_IN, "2", 2), TENSOR(LAYER_OUT, "5", 5),
                   NUMBER(LAYER_PARAMETER_COUNT, 7), NUMBER(LAYER_PARAMETER_BYTES, 28),
                   NUMBER(LAYER_BUFFER_BYTES, 4), NUMBER(LAYER_RSS_BYTES, 4096),
                   NUMBER(LAYER_SAME_AS, 1) },
               11);
    synth_fact(s, SND_FACT_OF_LAYER, 0, 1,
               (struct snd_fact_member[]){ TEXT(LAYER_NAME, "first"), NUMBER(LAYER_SAME_AS, 1) },
               2);
    synth_fact(s, SND_FACT_OF_LAYER, 0, 0, &TEXT(LAYER_NAME, "none"), 1);
    synth_fact(s, SND_FACT_OF_LAYER, 0, (1 << 20) + 1, &TEXT(LAYER_NAME, "too many"), 1);
    synth_fact(s, SND_FACT_OF_LAYER, 0, 1 << 20, &TEXT(LAYER_NAME, "last"), 1);
    run(s, t, 100, "layer 1", 50);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("facts"));
    assert_int_equal(sonde_layers_new(trace, &layers, NULL), SONDE_OK);
    const struct sonde_layers_head *about = sonde_layers_head(layers);
    assert_true(text_is(about->model_name, "m") && text_is(about->dtype, "torch.float32") &&
                text_is(about->device, "cpu"));
    assert_true(about->batch_size == 2 && about->layers == 3);
    assert_true(about->memory_is_rss && about->paired);
    assert_int_equal(sonde_layers_count(layers), 3);
    assert_true(text_is(sonde_layers_row(layers, 0)->name, "first"));
    assert_int_equal(sonde_layers_row(layers, 0)->same_as, 0); /* not as itself */
    assert_int_equal(sonde_layers_row(layers, 0)->rss_bytes, -1);
    assert_true(text_is(sonde_layers_row(layers, 2)->name, "last"));
    const struct sonde_layer *l = sonde_layers_row(layers, 1);
    assert_int_equal(l->number, 2);
    assert_int_equal(l->same_as, 1);
    assert_int_equal(l->time[SONDE_LAYER_FORWARD].count, 1);
    assert_true(l->in_count == 2 && l->out_count == 1);
    assert_true(l->in[0].ndim == 2 && l->in[0].dims[0] == 4 && l->in[0].dims[1] == 3);
    assert_true(text_is(l->in[0].dtype, "torch.float32") && text_is(l->in[1].dtype, "torch.bool") &&
                text_is(l->out[0].dtype, "torch.bool"));
    assert_true(l->in_bytes == 98 && l->out_bytes == 5);
    assert_true(l->parameter_count == 7 && l->parameter_bytes == 28 && l->buffer_bytes == 4 &&
                l->rss_bytes == 4096);
    assert_true(sonde_layers_environment(layers, 0, &key, &value));
    assert_true(text_is(key, "torch") && text_is(value, "2.0"));
    assert_true(sonde_layers_environment(layers, 1, &key, &value));
    assert_true(text_is(key, "threads") && text_is(value, "4"));
    assert_false(sonde_layers_environment(layers, 2, &key, &value));
    sonde_layers_free(layers);
    sonde_trace_close(trace);
}

/* A model and one layer with one tensor; `why`: NULL if that may be. */
static void refuse_facts(int64_t batch_size, int64_t count, const char *shape, int64_t bytes,
                         int64_t parameters, const char *why)
{
    struct synth        *s = synth_new(scratch_path("refused"), NULL);
    struct sonde_layers *layers;
    struct sonde_error   err;

    synth_thread(s, "main", 0);
    tell_model(s, batch_size, count);
    synth_fact(s, SND_FACT_OF_LAYER, 0, 1,
               (struct snd_fact_member[]){ TENSOR(LAYER_IN, shape, bytes),
                                           NUMBER(LAYER_PARAMETER_COUNT, parameters) },
               2);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("refused"));
    assert_int_equal(sonde_layers_new(trace, &layers, &err), why ? SONDE_E_FORMAT : SONDE_OK);
    if (why && !strstr(err.message, why))
        fail_msg("%s", err.message);
    sonde_layers_free(layers);
    sonde_trace_close(trace);
}

static void facts_that_cannot_be(void **state)
{
    (void)state;
    refuse_facts(1, 1, "4,3", 0, 0, NULL);
    refuse_facts(1, UINT32_MAX, "4,3", 0, 0, NULL);
    refuse_facts(0, 1, "4,3", 48, 1, "batch size");
    refuse_facts(1, 0, "4,3", 48, 1, "number of layers");
    refuse_facts(1, (int64_t)UINT32_MAX + 1, "4,3", 48, 1, "number of layers");
    refuse_facts(1, 1, "4,3", -1, 1, "shape or size");
    refuse_facts(1, 1, "#", 48, 1, "shape or size");     /* a number, */
    refuse_facts(1, 1, "4,3;2", 48, 1, "shape or size"); /* two tensors */
    refuse_facts(1, 1, "4,3", 48, -1, "parameter_count is less than 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_and_spread),   cmocka_unit_test(device_times),
        cmocka_unit_test(what_cannot_be),       cmocka_unit_test(what_is_told_as_facts),
        cmocka_unit_test(facts_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
