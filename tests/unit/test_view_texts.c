/* SPDX-License-Identifier: Apache-2.0 */
/* What views say where there is nothing to list, and why. */
#include "format/fields.h"
#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"

#define CPU SND_DEVICE(0, 0xffff)
#define CUDA0 SND_DEVICE(1, 0)

/* A view of "t.sonde", which is closed here. */
static struct sonde_buffer view(struct synth *s, const char *name)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);

    synth_close(s, true);
    options.view = name;
    struct sonde_trace *trace = scratch_open(scratch_path("t.sonde"));
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return text;
}

static void says(struct synth *s, const char *name, const char *text, bool is_said)
{
    struct sonde_buffer shown = view(s, name);

    if ((strstr(shown.bytes, text) != NULL) != is_said)
        fail_msg("%s:\n%s", name, shown.bytes);
    sonde_buffer_release(&shown);
}

static struct synth *begin(uint32_t *thread)
{
    struct synth *s = synth_new(scratch_path("t.sonde"), NULL);

    *thread = synth_thread(s, "main", 0);
    return s;
}

/* A GPU that was not recorded, one that did nothing, one that always did something, one that once did not. */
static void gpus_without_gaps(void **state)
{
    static const char *const texts[] = {
        "The trace has no work of GPUs: record it with --gpu, or ProfilerActivity.CUDA.",
        "The GPU was recorded, and did no work meanwhile.",
        "A kernel ran from the first to the last moment of each GPU's span.",
        "Why no kernel ran",
    };

    (void)state;
    for (unsigned kernels = 0; kernels < 4; kernels++)
        for (unsigned text = 0; text < 4; text++) {
            uint32_t      t;
            struct synth *s = begin(&t);
            if (kernels > 0)
                synth_fact(s, SND_FACT_OF_CUDA, 0, 0,
                           &(struct snd_fact_member){ SND_FIELD_CUDA_RUNTIME_VERSION,
                                                      SND_FACT_NUMBER, 0, 13000 },
                           1);
            uint32_t queue = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
            uint32_t work = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "k"),
                                                                     .kind = SND_WORK_KERNEL });
            for (unsigned i = 0; kernels > 1 && i < 2; i++)
                synth_device(s, t, 1000 + i * (kernels == 2 ? 500 : 2000), work, queue, 500, i + 1,
                             0);
            says(s, "gpu", texts[text], text == kernels);
        }
}

/* Memory that was freed at once, or of which only the end was seen, is held by nobody. */
static void memory_that_nobody_holds(void **state)
{
    static const char nothing[] = "Nothing was held: all that was allocated was freed again.";
    uint32_t          t;

    (void)state;
    struct synth *s = begin(&t);
    synth_free(s, t, 1000, CPU, 64, 100);
    says(s, "memory", nothing, true);
    s = begin(&t);
    synth_alloc(s, t, 1000, CPU, 64, 100);
    synth_free(s, t, 2000, CPU, 64, 100);
    says(s, "memory", nothing, false); /* at the peak it was held */
    says(begin(&t), "memory", nothing, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(gpus_without_gaps),
                                        cmocka_unit_test(memory_that_nobody_holds) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
