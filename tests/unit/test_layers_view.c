/* SPDX-License-Identifier: Apache-2.0 */
/* view/network/layers_view.c: columns are shown if any layer has a value for them. view/python/lines_view.c: a function without lines. */
#include "base/count_of.h"
#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"

static struct sonde_buffer report(const char *name, const char *view)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct sonde_trace         *trace = scratch_open(scratch_path(name));

    options.view = view;
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return text;
}

/* One of two layers has one value: that is enough, and nothing else is shown for it. */
static void columns_with_one_value(void **state)
{
    static const struct {
        const char *title, *range, *fact;
    } columns[] = {
        { "  Backward  ", "layer 2 backward", "name=second" },
        { "  Copies  ", "layer 2 copy", "name=second" },
        { "  RSS  ", NULL, "name=second\nrss_bytes=0" },
        { "  Same as  ", NULL, "name=second\nsame_as=1" },
        { NULL, NULL, "name=second" },
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(columns); i++) {
        struct synth *s = synth_new(scratch_path("layers"), NULL);
        uint32_t      t = synth_thread(s, "main", 0);
        synth_meta(s, "layers", "model_name=m\nbatch_size=1\nlayers=2");
        synth_meta(s, "layer 1", "name=first");
        synth_meta(s, "layer 2", columns[i].fact);
        synth_span(s, t, 100, synth_string(s, "layer 1"), 5);
        if (!strstr(columns[i].fact, "same_as")) /* one that was run is not the same as another */
            synth_span(s, t, 200, synth_string(s, "layer 2"), 5);
        if (columns[i].range)
            synth_span(s, t, 300, synth_string(s, columns[i].range), 5);
        synth_close(s, true);
        struct sonde_buffer text = report("layers", "layers");
        for (size_t k = 0; k + 1 < SND_COUNT_OF(columns); k++)
            if ((strstr(text.bytes, columns[k].title) != NULL) != (k == i))
                fail_msg("%s:\n%s", columns[k].title, text.bytes);
        sonde_buffer_release(&text);
    }
}

/* A function that was asked for and never ran has the line of its definition. */
static void a_function_that_never_ran(void **state)
{
    static const uint64_t none[SND_LINE_WORDS] = { 0 };
    struct synth         *s = synth_new(scratch_path("lines"), NULL);
    uint32_t              file = synth_string(s, "/not/there.py"), name = synth_string(s, "never");

    (void)state;
    synth_thread(s, "main", 0);
    synth_tally(s, SND_TALLY_LINE, synth_frame_in(s, name, 41, file, 41, false), 0, none,
                SND_LINE_WORDS);
    synth_close(s, true);
    struct sonde_buffer text = report("lines", "lines");
    assert_non_null(strstr(text.bytes, "Could not find file /not/there.py\n"));
    assert_non_null(strstr(text.bytes, "\n    41 "));
    assert_null(strstr(text.bytes, "\n    42 "));
    sonde_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_with_one_value),
        cmocka_unit_test(a_function_that_never_ran),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
