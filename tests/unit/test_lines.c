/* SPDX-License-Identifier: Apache-2.0 */
/* model/python/counted_lines.c: hits, time and memory of source lines. */
#include "format/layout.h"
#include "scratch.h"

static uint32_t line_frame(struct synth *s, const char *name, uint32_t first, uint32_t line)
{
    return synth_frame_in(s, synth_string(s, name), first, synth_string(s, "p.py"), line, false);
}

static struct sonde_trace *make_trace(void)
{
    static const uint64_t none[2] = { 0, 0 }, one[2] = { 10, 500 }, two[2] = { 4, 100 };
    static const uint64_t memory[6] = { 3, (uint64_t)-4096, 100, 4196, 1 << 20, 50 };
    const char           *path = scratch_path("lines");
    struct synth         *s = synth_new(path, NULL);
    uint32_t              last = line_frame(s, "f", 7, 9), middle = line_frame(s, "f", 7, 8);

    synth_tally(s, SND_TALLY_LINE, line_frame(s, "never", 20, 20), 0, none, 2);
    synth_tally(s, SND_TALLY_LINE, last, 0, one, 2);
    synth_tally(s, SND_TALLY_LINE, middle, 0, two, 2);
    /* The same line by another frame: a copy of the function's code. */
    synth_tally(s, SND_TALLY_LINE, line_frame(s, "f", 7, 9), 0, two, 2);
    synth_tally(s, SND_TALLY_LINE_MEMORY, middle, 0, memory, 6);
    synth_meta(s, "python.source p.py", "123 456789");
    synth_meta(s, "python.source:p.py", "text");
    synth_meta(s, "python.source q.py", "9 9");
    synth_close(s, true);
    return scratch_open(path);
}

static void lines_are_grouped_and_in_order(void **state)
{
    struct sonde_trace *trace = make_trace();
    struct sonde_lines *lines;

    (void)state;
    assert_int_equal(sonde_lines_new(trace, SONDE_LINES_TIME, &lines, NULL), SONDE_OK);
    assert_int_equal(sonde_lines_function_count(lines), 2);
    const struct sonde_line_function *never = sonde_lines_function(lines, 0);
    assert_true(text_is(never->name, "never"));
    assert_int_equal(never->count, 0);
    assert_int_equal(never->hits, 0);
    const struct sonde_line_function *f = sonde_lines_function(lines, 1);
    assert_true(text_is(f->name, "f") && text_is(f->file, "p.py"));
    assert_int_equal(f->line, 7);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->time_ns, 700);
    assert_int_equal(sonde_lines_line(lines, f->first)->line, 8);
    assert_int_equal(sonde_lines_line(lines, f->first + 1)->line, 9);
    assert_int_equal(sonde_lines_line(lines, f->first + 1)->hits, 14);
    assert_int_equal(sonde_lines_line(lines, f->first + 1)->time_ns, 600);
    assert_true(f->has_stat);
    assert_int_equal(f->stat_size, 123);
    assert_int_equal(f->stat_mtime_ns, 456789);
    assert_true(text_is(f->source, "text"));
    assert_null(sonde_lines_function(lines, 2));
    sonde_lines_free(lines);
    sonde_trace_close(trace);
}

/* A hostile trace's numbers do not come round to small or negative ones. */
static void counts_do_not_wrap(void **state)
{
    static const uint64_t most[2] = { UINT64_MAX, 1 }, many[2] = { (uint64_t)1 << 62, 1 };
    const char           *path = scratch_path("wraps");
    struct synth         *s = synth_new(path, NULL);
    struct sonde_lines   *lines;

    (void)state;
    synth_tally(s, SND_TALLY_LINE, line_frame(s, "f", 7, 8), 0, most, 2);
    for (int i = 0; i < 5; i++) /* copies of the function's code */
        synth_tally(s, SND_TALLY_LINE, line_frame(s, "f", 7, 9), 0, many, 2);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(path);
    assert_int_equal(sonde_lines_new(trace, SONDE_LINES_TIME, &lines, NULL), SONDE_OK);
    const struct sonde_line_function *f = sonde_lines_function(lines, 0);
    assert_true(f->hits == UINT64_MAX);
    assert_true(sonde_lines_line(lines, f->first)->hits == UINT64_MAX);
    assert_true(sonde_lines_line(lines, f->first + 1)->hits == UINT64_MAX);
    sonde_lines_free(lines);
    sonde_trace_close(trace);
}

static void memory_is_signed(void **state)
{
    struct sonde_trace *trace = make_trace();
    struct sonde_lines *lines;

    (void)state;
    assert_int_equal(sonde_lines_new(trace, SONDE_LINES_MEMORY, &lines, NULL), SONDE_OK);
    assert_int_equal(sonde_lines_function_count(lines), 1);
    const struct sonde_line *line = sonde_lines_line(lines, 0);
    assert_int_equal(line->line, 8);
    assert_int_equal(line->hits, 3);
    assert_int_equal(line->increment_bytes, -4096);
    assert_int_equal(line->allocated_bytes, 100);
    assert_int_equal(line->freed_bytes, 4196);
    assert_int_equal(line->usage_bytes, 1 << 20);
    assert_int_equal(line->peak_bytes, 50);
    sonde_lines_free(lines);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_grouped_and_in_order),
        cmocka_unit_test(counts_do_not_wrap),
        cmocka_unit_test(memory_is_signed),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
