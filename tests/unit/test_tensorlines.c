/* SPDX-License-Identifier: Apache-2.0 */
/* Whose line took which tensor's memory, and until when. */
#include "format/layout.h"
#include "scratch.h"
#include "sonde/tensorlines.h"

#define CPU SND_DEVICE(0, 0xffff)

static uint32_t frame(struct synth *s, const char *function, const char *file, uint32_t line)
{
    return synth_frame(s, synth_string(s, function), synth_string(s, file), line);
}

static void op(struct synth *s, uint32_t t, uint64_t at, uint32_t stack, uint64_t address,
               uint64_t bytes)
{
    synth_begin(s, t, at, synth_string(s, "aten::x"), 0);
    synth_attr(s, t, SND_ATTR_STACK, stack);
    synth_begin(s, t, at + 1, synth_string(s, "aten::empty"), 0); /* has its parent's stack */
    synth_alloc(s, t, at + 2, CPU, address, bytes);
    synth_end(s, t, at + 3);
    synth_end(s, t, at + 4);
}

static void the_innermost_chosen_line(void **state)
{
    struct synth              *s = synth_new(scratch_path("lines"), NULL);
    uint32_t                   t = synth_thread(s, "main", 0);
    struct sonde_tensor_lines *lines;

    (void)state;
    synth_meta(s, "model.lines 1",
               "{\"function\": \"f\", \"name\": \"f\", \"file\": \"/x/lib/a.py\", \"first\": 5, "
               "\"lines\": [\"def f():\", \" g()\", \" h()\"]}");
    synth_meta(s, "model.lines 2",
               "{\"function\": \"g\", \"name\": \"g\", \"file\": \"/x/lib/a.py\", \"first\": 20, "
               "\"lines\": [\"def g():\", \" t\"]}");
    synth_meta(s, "model.lines 3", "{\"first\": 0, \"lines\": [\"no line 0\"]}");
    uint32_t in_f = synth_stack(s, 0, frame(s, "f", "lib/a.py", 6));
    uint32_t in_g = synth_stack(s, in_f, frame(s, "g", "lib/a.py", 21));
    uint32_t in_h = synth_stack(s, synth_stack(s, 0, frame(s, "f", "lib/a.py", 7)),
                                frame(s, "h", "lib/a.py", 40));
    uint32_t other = synth_stack(s, 0, frame(s, "f", "lib/b.py", 6));
    op(s, t, 1000, in_g, 1, 100);
    op(s, t, 2000, in_g, 2, 200);
    synth_free(s, t, 2500, CPU, 1, 0); /* outside any range */
    op(s, t, 3000, in_h, 3, 400);
    op(s, t, 4000, other, 4, 1000); /* another file's f */
    op(s, t, 5000, in_g, 5, 50);
    synth_free(s, t, 6000, CPU, 3, 400);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("lines"));
    assert_int_equal(sonde_tensor_lines_new(trace, &lines, NULL), SONDE_OK);
    assert_int_equal(sonde_tensor_lines_count(lines), 5);
    const struct sonde_tensor_line *row = sonde_tensor_lines_row(lines, 1);
    assert_true(text_is(row->source, " g()"));
    assert_int_equal(row->allocs, 0); /* g took it, and g was chosen too */
    row = sonde_tensor_lines_row(lines, 2);
    assert_int_equal(row->line, 7);
    assert_int_equal(row->taken_bytes, 400);
    assert_int_equal(row->end_bytes, 0);
    assert_int_equal(row->active_bytes, 600);
    row = sonde_tensor_lines_row(lines, 4);
    assert_true(text_is(row->function, "g"));
    assert_int_equal(row->allocs, 3);
    assert_int_equal(row->taken_bytes, 350);
    assert_int_equal(row->peak_bytes, 300);
    assert_int_equal(row->end_bytes, 250);
    assert_int_equal(row->active_bytes, 1650);
    assert_null(sonde_tensor_lines_row(lines, 5));
    sonde_tensor_lines_free(lines);
    sonde_trace_close(trace);
}

static void a_source_in_several_notes(void **state)
{
    struct synth              *s = synth_new(scratch_path("notes"), NULL);
    uint32_t                   t = synth_thread(s, "main", 0);
    struct sonde_tensor_lines *lines;

    (void)state;
    synth_meta(s, "model.lines 1 1",
               "{\"function\": \"A.f\", \"name\": \"f\", \"file\": \"/x/a.py\", \"first\": 5, "
               "\"lines\": [\"def f():\", \" one\"]}");
    synth_meta(s, "model.lines 1 2",
               "{\"function\": \"A.f\", \"name\": \"f\", \"file\": \"/x/a.py\", \"first\": 7, "
               "\"lines\": [\" two\", \" three\"]}");
    synth_meta(s, "model.lines 1 3",
               "{\"name\": \"f\", \"file\": \"/x/a.py\", \"first\": 9, "
               "\"lines\": []}"); /* nothing more */
    synth_meta(s, "model.lines 2 1",
               "{\"function\": \"B.f\", \"name\": \"f\", \"file\": \"/x/a.py\", \"first\": 20, "
               "\"lines\": [\"def f():\"]}");
    op(s, t, 1000, synth_stack(s, 0, frame(s, "f", "a.py", 8)), 1, 100);
    op(s, t, 2000, synth_stack(s, 0, frame(s, "f", "a.py", 9)), 2, 200); /* after its end */
    op(s, t, 3000, synth_stack(s, 0, frame(s, "f", "a.py", 20)), 3, 400);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("notes"));
    assert_int_equal(sonde_tensor_lines_new(trace, &lines, NULL), SONDE_OK);
    assert_int_equal(sonde_tensor_lines_count(lines), 5);
    static const int64_t taken[] = { 0, 0, 0, 100, 400 };
    static const int     at[] = { 5, 6, 7, 8, 20 };
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(sonde_tensor_lines_row(lines, i)->line, at[i]);
        assert_int_equal(sonde_tensor_lines_row(lines, i)->taken_bytes, taken[i]);
    }
    sonde_tensor_lines_free(lines);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_chosen_line),
        cmocka_unit_test(a_source_in_several_notes),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
