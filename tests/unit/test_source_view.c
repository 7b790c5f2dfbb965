/* SPDX-License-Identifier: Apache-2.0 */
/* view/samples/source_view.c: lines of source with all their numbers, and what is shown around them. */
#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"

static struct sonde_buffer csv_of(const char *path)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct sonde_trace         *trace = scratch_open(path);

    options.view = "source";
    options.format = SONDE_REPORT_CSV;
    options.rows = -1;
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return text;
}

static void add_line(struct synth *s, const char *function, uint32_t first, const char *file,
                     uint32_t line, uint64_t hits)
{
    const uint64_t words[2] = { hits, 100 * hits };
    uint32_t frame = synth_frame_in(s, synth_string(s, function), first, synth_string(s, file),
                                    line, false);

    synth_tally(s, SND_TALLY_LINE, frame, 0, words, 2);
}

static bool has_line(const struct sonde_buffer *csv, const char *file, unsigned line)
{
    char begin[300];

    snprintf(begin, sizeof begin, "\n%s,%u,", file, line);
    return strstr(csv->bytes, begin) != NULL;
}

/* Two functions that stand in one line: its row has what both did there. */
static void a_line_of_two_functions(void **state)
{
    struct synth *s = synth_new(scratch_path("two.sonde"), NULL);

    (void)state;
    add_line(s, "f", 1, "two.py", 2, 3);
    add_line(s, "<lambda>", 2, "two.py", 2, 4);
    add_line(s, "f", 1, "two.py", 3, 1);
    synth_close(s, true);
    struct sonde_buffer csv = csv_of(scratch_path("two.sonde"));
    assert_non_null(strstr(csv.bytes, "\ntwo.py,2,7,700,"));
    assert_non_null(strstr(csv.bytes, "\ntwo.py,3,1,100,"));
    sonde_buffer_release(&csv);
}

/* A stack with two functions of one line, as a comprehension's: a sample of it, and its time, count once. */
static void samples_of_a_line_of_two_functions(void **state)
{
    struct synth *s = synth_new(scratch_path("sampled.sonde"), NULL);
    uint32_t      t = synth_thread(s, "t", 0), file = synth_string(s, "two.py");
    uint32_t      outer = synth_stack(s, 0,
                                      synth_frame_in(s, synth_string(s, "main"), 1, file, 9, false));
    uint32_t f = synth_stack(s, outer, synth_frame_in(s, synth_string(s, "f"), 2, file, 3, false));
    uint32_t inner =
        synth_stack(s, f, synth_frame_in(s, synth_string(s, "<listcomp>"), 3, file, 3, false));

    (void)state;
    synth_sample(s, t, 30, inner, 3 | 2 << 8, t, 20);
    synth_sample(s, t, 40, f, 3 | 1 << 8, t, 10);
    synth_close(s, true);
    struct sonde_buffer csv = csv_of(scratch_path("sampled.sonde"));
    assert_non_null(strstr(csv.bytes, "\ntwo.py,3,,,,3,30,100,30,100,"));
    assert_non_null(strstr(csv.bytes, "\ntwo.py,9,,,,3,0,0,30,100,"));
    sonde_buffer_release(&csv);
}

/* A file with a function of `count` lines that begins at line `first`. */
static const char *save_source(uint32_t first, uint32_t count)
{
    static char path[256];
    FILE       *file;

    snprintf(path, sizeof path, "%s", scratch_path("long.py"));
    file = fopen(path, "w");
    assert_non_null(file);
    for (uint32_t i = 1; i < first; i++)
        fprintf(file, "x = %u\n", i);
    fprintf(file, "def f():\n");
    for (uint32_t i = 1; i < count; i++)
        fprintf(file, "    y = %u\n", i);
    fprintf(file, "z = 0\nz = 1\nz = 2\nz = 3\n");
    assert_int_equal(fclose(file), 0);
    return path;
}

/* A function is shown whole wherever it stands; of one that is very long, what is around numbers. */
static void what_is_shown_of_a_function(void **state)
{
    static const struct {
        uint32_t count;
        bool     whole;
    } cases[] = { { 100, true }, { 2000, true }, { 2001, false }, { 5000, false } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char   *file = save_source(1500, cases[i].count);
        struct synth *s = synth_new(scratch_path("long.sonde"), NULL);
        add_line(s, "f", 1500, file, 1550, 5);
        synth_close(s, true);
        struct sonde_buffer csv = csv_of(scratch_path("long.sonde"));
        assert_int_equal(has_line(&csv, file, 1500), cases[i].whole);
        assert_int_equal(has_line(&csv, file, 1500 + cases[i].count - 1), cases[i].whole);
        assert_false(has_line(&csv, file, 1500 + cases[i].count)); /* behind it */
        assert_false(has_line(&csv, file, 1499));
        for (uint32_t line = 1547; line <= 1553; line++)
            assert_int_equal(has_line(&csv, file, line),
                             cases[i].whole || (line >= 1548 && line <= 1552));
        sonde_buffer_release(&csv);
    }
}

/* Functions with a few lines between them: those are shown, more are not. */
static void lines_between_two_functions(void **state)
{
    (void)state;
    for (uint32_t gap = 3; gap <= 6; gap++) {
        const char   *path = scratch_path("gap.py");
        struct synth *s = synth_new(scratch_path("gap.sonde"), NULL);
        FILE         *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "def f():\n    x = 1\n");
        for (uint32_t i = 0; i < gap; i++)
            fprintf(file, "z = %u\n", i);
        fprintf(file, "def g():\n    x = 1\n    y = 1\n    z = 1\n");
        assert_int_equal(fclose(file), 0);
        add_line(s, "f", 1, path, 1, 5);
        add_line(s, "g", 3 + gap, path, 6 + gap, 5);
        synth_close(s, true);
        struct sonde_buffer csv = csv_of(scratch_path("gap.sonde"));
        assert_true(has_line(&csv, path, 3)); /* two around line 1 */
        for (uint32_t line = 4; line < 3 + gap; line++)
            assert_int_equal(has_line(&csv, path, line), gap - 1 <= 4);
        assert_true(has_line(&csv, path, 3 + gap));
        sonde_buffer_release(&csv);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_two_functions),
        cmocka_unit_test(samples_of_a_line_of_two_functions),
        cmocka_unit_test(what_is_shown_of_a_function),
        cmocka_unit_test(lines_between_two_functions),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
