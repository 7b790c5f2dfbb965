/* SPDX-License-Identifier: Apache-2.0 */
/* view/samples/sample_tree_text.c: which frames are the program's own, and places that are too long. */
#include "scratch.h"
#include "sonde/export.h"

#define LIBRARY "/py/lib/site-packages/tool.py"

struct place {
    const char *function, *file;
};

/* The tree of one stack, outermost first. */
static struct sonde_buffer tree_of(const struct place *places, size_t count, uint32_t width,
                                   bool ascii)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct synth               *s = synth_new(scratch_path("t.sonde"), NULL);
    uint32_t sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0), at = 0;

    for (size_t i = 0; i < count; i++)
        at = synth_stack(s, at,
                         synth_frame_in(s, synth_string(s, places[i].function), 1,
                                        synth_string(s, places[i].file), 7, false));
    synth_meta(s, "command", "/program.py");
    synth_meta(s, "python.sample.hz", "1000");
    synth_meta(s, "python.sys_path", "[\"/py/lib/site-packages\"]");
    synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    synth_sample(s, sampler, 50000000, at, 3 | 50 << 8, t, 50000000);
    synth_close(s, true);
    options.view = "samples";
    options.width = width;
    options.ascii = ascii;
    struct sonde_trace *trace = scratch_open(scratch_path("t.sonde"));
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return text;
}

/* Code that the program made of text is its own where its own code calls it, a library's elsewhere. */
static void code_without_a_file(void **state)
{
    static const struct {
        const char *outer, *file;
        bool        own;
    } cases[] = {
        { "/program.py", "<string>", true },
        { "/program.py", "<stdin>", true },
        { "/program.py", "<frozen runpy>", false },
        { "/program.py", "<ipython-input-3>", true },
        { LIBRARY, "<string>", false },
        { LIBRARY, "<stdin>", false },
        { LIBRARY, "<ipython-input-3>", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct place  stack[] = { { "start", "/program.py" }, { "outer", cases[i].outer },
                                        { "made", cases[i].file },  { "inner1", LIBRARY },
                                        { "inner2", LIBRARY },      { "inner3", LIBRARY },
                                        { "inner4", LIBRARY } };
        struct sonde_buffer text = tree_of(stack, sizeof stack / sizeof stack[0], 0, false);
        /* of library code in a row, the first and the last are shown */
        if ((strstr(text.bytes, "inner1") != NULL) != cases[i].own ||
            strstr(text.bytes, "inner2") || !strstr(text.bytes, "inner4"))
            fail_msg("%s in %s:\n%s", cases[i].file, cases[i].outer, text.bytes);
        sonde_buffer_release(&text);
    }
}

/* A script that a package installs to start itself is no program of the user's: if it is all, libraries are not folded. */
static void scripts_that_start_a_package(void **state)
{
    static const struct {
        const char *file;
        bool        own;
    } cases[] = {
        { "/usr/local/bin/black", false },
        { "/bin/black", false },
        { "/home/me/v1.0/bin/black", false },
        { "/bin/black.py", true },
        { "/usr/local/bin/black.py", true },
        { "/usr/local/sbin/black", true },
        { "/home/me/binary/black", true },
        { "/home/me/black", true },
        { "bin/black", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct place  stack[] = { { "start", cases[i].file },
                                        { "inner1", LIBRARY },
                                        { "inner2", LIBRARY },
                                        { "inner3", LIBRARY },
                                        { "inner4", LIBRARY } };
        struct sonde_buffer text = tree_of(stack, sizeof stack / sizeof stack[0], 0, false);
        if ((strstr(text.bytes, "inner2") == NULL) != cases[i].own || !strstr(text.bytes, "inner4"))
            fail_msg("%s:\n%s", cases[i].file, text.bytes);
        sonde_buffer_release(&text);
    }
}

/* Of a place that is too long for the line the end is shown, of a short line nothing is cut. */
static void places_are_cut_at_their_begin(void **state)
{
    static const struct place stack[] = {
        { "f", "/py/lib/site-packages/some_package/measurements/of_many/kinds/program.py" }
    };

    (void)state;
    struct sonde_buffer text = tree_of(stack, 1, 40, false);
    const char         *line = strstr(text.bytes, "0.050 f  …");
    assert_non_null(line);
    size_t length = strcspn(line, "\n");
    assert_int_equal(length, 40 + 2); /* the mark has three bytes */
    assert_memory_equal(line + length - 30, "nts/of_many/kinds/program.py:1", 30);
    sonde_buffer_release(&text);
    text = tree_of(stack, 1, 40, true);
    line = strstr(text.bytes, "0.050 f  ...");
    assert_non_null(line);
    assert_int_equal(strcspn(line, "\n"), 40);
    sonde_buffer_release(&text);
    text = tree_of(stack, 1, 100, false);
    assert_non_null(
        strstr(text.bytes, "0.050 f  some_package/measurements/of_many/kinds/program.py:1\n"));
    sonde_buffer_release(&text);
}

/* Names are shown from the folder that all files of the program lie in; code that is in no file has none. */
static void files_are_shown_from_their_folder(void **state)
{
    static const struct place stack[] = { { "f", "/home/me/app/a.py" },
                                          { "g", "/home/me/app/sub/b.py" },
                                          { "made", "<string>" },
                                          { "plain", "c.py" } };

    (void)state;
    struct sonde_buffer text = tree_of(stack, 4, 0, false);
    if (!strstr(text.bytes, " f  a.py:1") || !strstr(text.bytes, " g  sub/b.py:1") ||
        !strstr(text.bytes, " plain  c.py:1"))
        fail_msg("%s", text.bytes);
    sonde_buffer_release(&text);
}

/* Times are red above three fifths of the whole, yellow above a fifth, green above a twentieth, pale below. */
static void colours_tell_shares(void **state)
{
    static const struct {
        const char *name;
        uint64_t    ms;
        const char *shown;
    } functions[] = {
        { "most", 60, "\033[33m0.060\033[0m " },
        { "some", 20, "\033[32m0.020\033[0m " },
        { "more", 15, "\033[32m0.015\033[0m " },
        { "least", 5, "\033[92m\033[2m0.005\033[0m " },
    };
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct synth               *s = synth_new(scratch_path("colours.sonde"), NULL);
    uint32_t sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
    uint32_t file = synth_string(s, "/program.py");
    uint32_t outer = synth_stack(s, 0,
                                 synth_frame_in(s, synth_string(s, "outer"), 1, file, 7, false));
    uint64_t ms = 0;

    (void)state;
    synth_meta(s, "command", "/program.py");
    synth_meta(s, "python.sample.hz", "1000");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        uint32_t frame = synth_frame_in(s, synth_string(s, functions[i].name), 10, file, 11, false);
        ms += functions[i].ms;
        synth_sample(s, sampler, ms * 1000000, synth_stack(s, outer, frame),
                     (uint32_t)(3 | functions[i].ms << 8), t, (uint32_t)functions[i].ms * 1000000);
    }
    synth_close(s, true);
    options.view = "samples";
    options.colour = true;
    struct sonde_trace *trace = scratch_open(scratch_path("colours.sonde"));
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    assert_non_null(strstr(text.bytes, "\033[31m0.100\033[0m "));
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!strstr(text.bytes, functions[i].shown))
            fail_msg("%s:\n%s", functions[i].name, text.bytes);
    sonde_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_without_a_file),
        cmocka_unit_test(scripts_that_start_a_package),
        cmocka_unit_test(places_are_cut_at_their_begin),
        cmocka_unit_test(files_are_shown_from_their_folder),
        cmocka_unit_test(colours_tell_shares),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
