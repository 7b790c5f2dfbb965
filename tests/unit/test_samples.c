/* SPDX-License-Identifier: Apache-2.0 */
/* model/samples/sample_trees.c: the call tree of sampled stacks. */
#include "format/layout.h"
#include "model/kept.h"
#include "model/samples/sample_counts.h"
#include "read/reader.h"
#include "scratch.h"
#include "sonde/export.h"

static uint32_t frame_of(struct synth *s, const char *name, uint32_t first, uint32_t line)
{
    return synth_frame_in(s, synth_string(s, name), first, synth_string(s, "p.py"), line, false);
}

static const char *const import_files[] = { "<frozen importlib._bootstrap>",
                                            "/lib/sonde/_autostart/sitecustomize.py" };

/* f is seen at two lines, which are one function; both are below main. */
static struct sonde_trace *make_trace(void)
{
    const char   *path = scratch_path("samples");
    struct synth *s = synth_new(path, NULL);
    uint32_t      sampler = synth_thread(s, "sonde", 0);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t      lib = synth_string(s, "libm.so");
    uint32_t      m = synth_stack(s, 0, frame_of(s, "main", 1, 3));
    uint32_t      f1 = synth_stack(s, m, frame_of(s, "f", 10, 11));
    uint32_t      f2 = synth_stack(s, m, frame_of(s, "f", 10, 12));
    uint32_t      exp = synth_stack(s, f2, synth_frame_in(s, lib, 0, lib, 0, true));
    uint32_t      import = m;

    for (size_t i = 0; i < sizeof import_files / sizeof import_files[0]; i++)
        import = synth_stack(s, import,
                             synth_frame_in(s, lib, 1, synth_string(s, import_files[i]), 1, false));

    synth_sample(s, sampler, 1000, f1, 3 | 10 << 8, t, 1000);
    synth_sample(s, sampler, 1500, f2, 2 | 5 << 8, t, 500);
    synth_sample(s, sampler, 1700, exp, 10 | 2 << 8, t, 200);
    synth_sample(s, sampler, 1800, m, 4 | 1 << 8, t, 100);
    synth_sample(s, sampler, 1850, import, 3, t, 50); /* a count of 0 is one */
    synth_sample(s, sampler, 2000, 0, 0 | 7 << 8, u, 700);
    synth_sample(s, sampler, 2100, 9999, 3 | 1 << 8, u, 100); /* a stack that is not there */
    synth_meta(s, "python.sample.hz", "250");
    synth_close(s, true);
    return scratch_open(path);
}

static const struct sonde_samples_options hide_imports = { .struct_size = sizeof hide_imports,
                                                           .hide_imports = true };

static void stacks_make_trees(void **state)
{
    struct sonde_trace   *trace = make_trace();
    struct sonde_samples *samples;

    (void)state;
    assert_int_equal(sonde_samples_new(trace, &hide_imports, &samples, NULL), SONDE_OK);
    assert_int_equal(sonde_samples_thread_count(samples), 2);
    const struct sonde_sample_thread *t = sonde_samples_thread(samples, 0);
    assert_int_equal(t->samples, 19);
    assert_int_equal(t->time_ns, 1850);
    assert_int_equal(t->cpu_ns, 1750);
    assert_int_equal(t->gil_ns, 1050);
    assert_int_equal(t->gil_wait_ns, 100);
    assert_int_equal(t->idle_ns, 0);
    assert_int_equal(t->last_ns - t->first_ns, 1850);
    const struct sonde_sample_node *root = sonde_samples_node(samples, t->root);
    const struct sonde_sample_node *node = sonde_samples_node(samples, root->first_child);
    assert_true(text_is(node->function, "main"));
    assert_int_equal(node->line, 1);
    assert_int_equal(node->time_ns, 1850);
    assert_int_equal(node->self_ns, 150); /* what imports counts as its caller */
    node = sonde_samples_node(samples, node->first_child);
    assert_true(text_is(node->function, "f"));
    assert_int_equal(node->line, 10);
    assert_int_equal(node->next_sibling, 0);
    assert_int_equal(node->samples, 17);
    assert_int_equal(node->time_ns, 1700);
    assert_int_equal(node->self_ns, 1500);
    assert_int_equal(node->gil_ns, 1000);
    node = sonde_samples_node(samples, node->first_child);
    assert_true(node->is_native);
    assert_int_equal(node->depth, 3);
    assert_true(sonde_samples_rate(samples) > 249 && sonde_samples_rate(samples) < 251);
    sonde_samples_free(samples);
    sonde_trace_close(trace);
}

static void idle_threads_are_told_apart(void **state)
{
    struct sonde_trace   *trace = make_trace();
    struct sonde_samples *samples;

    (void)state;
    assert_int_equal(sonde_samples_new(trace, NULL, &samples, NULL), SONDE_OK);
    const struct sonde_sample_thread *u = sonde_samples_thread(samples, 1);
    assert_int_equal(u->idle_ns, 700);
    assert_int_equal(u->time_ns, 800);
    assert_int_equal(sonde_samples_node(samples, u->root)->self_ns, 800);
    assert_int_equal(sonde_samples_node(samples, u->root)->first_child, 0);
    const struct sonde_sample_node *root =
        sonde_samples_node(samples, sonde_samples_thread(samples, 0)->root);
    const struct sonde_sample_node *main_node = sonde_samples_node(samples, root->first_child);
    assert_int_equal(main_node->self_ns, 100); /* imports are shown */
    assert_null(sonde_samples_thread(samples, 2));
    sonde_samples_free(samples);
    sonde_trace_close(trace);
}

/* Names from the root down to a node without children, each followed by a semicolon. */
static void join_names(const struct sonde_samples *samples, uint32_t node, char *text, size_t size)
{
    text[0] = 0;
    for (uint32_t i = sonde_samples_node(samples, node)->first_child; i != 0;
         i = sonde_samples_node(samples, i)->first_child) {
        const struct sonde_sample_node *n = sonde_samples_node(samples, i);
        size_t                          used = strlen(text);
        snprintf(text + used, size - used, "%.*s%s;", (int)n->function.length, n->function.bytes,
                 n->is_range ? "*" : "");
    }
}

/* main calls f, which calls libm; both depths as recorded, 0: not at all. */
static void check_depths(uint32_t outer, uint32_t inner, const char *expected)
{
    char          text[200];
    const char   *path = scratch_path("depths");
    struct synth *s = synth_new(path, NULL);
    uint32_t      sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
    uint32_t      m = synth_stack(s, 0, frame_of(s, "main", 1, 3));
    uint32_t      f = synth_stack(s, m, frame_of(s, "f", 10, 11));
    uint32_t      lib = synth_string(s, "libm"),
             exp = synth_stack(s, f, synth_frame_in(s, lib, 0, lib, 0, true));

    synth_begin(s, t, 100, synth_string(s, "step"), 0);
    if (outer)
        synth_attr(s, t, SND_ATTR_PYTHON_DEPTH, outer);
    synth_begin(s, t, 200, synth_string(s, "tail"), 0);
    if (inner)
        synth_attr(s, t, SND_ATTR_PYTHON_DEPTH, inner);
    synth_sample(s, sampler, 1000, exp, 3 | 1 << 8, t, 500);
    synth_end(s, t, 2000);
    synth_end(s, t, 2000);
    synth_close(s, true);
    struct sonde_trace   *trace = scratch_open(path);
    struct sonde_samples *samples;
    assert_int_equal(sonde_samples_new(trace, NULL, &samples, NULL), SONDE_OK);
    join_names(samples, sonde_samples_thread(samples, 0)->root, text, sizeof text);
    assert_string_equal(text, expected);
    sonde_samples_free(samples);
    sonde_trace_close(trace);
}

static void ranges_come_after_what_opened_them(void **state)
{
    (void)state;
    check_depths(0, 0, "main;f;step*;tail*;libm;");
    check_depths(1, 0, "main;step*;f;tail*;libm;");
    check_depths(1, 2, "main;step*;f;tail*;libm;");
    check_depths(1, 1, "main;step*;tail*;f;libm;");
    check_depths(0, 1, "main;step*;tail*;f;libm;"); /* what it lies in does not come later */
    check_depths(9, 9, "main;f;step*;tail*;libm;"); /* its function has been left */
}

/* Of two processes' threads: fib calls itself, once more through another function. */
static struct sonde_trace *make_recursion(void)
{
    const char   *path = scratch_path("recursion");
    struct synth *s = synth_new(path, NULL);
    uint32_t      sampler = synth_thread(s, "sonde", 0);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t      m = synth_stack(s, 0, frame_of(s, "main", 1, 3));
    uint32_t      fib1 = synth_stack(s, m, frame_of(s, "fib", 10, 11));
    uint32_t      fib2 = synth_stack(s, fib1, frame_of(s, "fib", 10, 12));
    uint32_t      fib3 = synth_stack(s, fib2, frame_of(s, "fib", 10, 11));
    uint32_t      helper = synth_stack(s, fib3, frame_of(s, "helper", 20, 21));
    uint32_t      fib4 = synth_stack(s, helper, frame_of(s, "fib", 10, 11));

    synth_sample(s, sampler, 1000, fib1, 3 | 1 << 8, t, 100);
    synth_sample(s, sampler, 1100, fib3, 3 | 1 << 8, t, 100);
    synth_sample(s, sampler, 1200, fib4, 3 | 1 << 8, t, 100);
    synth_sample(s, sampler, 1300, m, 0 | 1 << 8, t, 100); /* main waits */
    synth_sample(s, sampler, 1400, fib2, 2 | 1 << 8, u, 100);
    synth_close(s, true);
    return scratch_open(path);
}

static void check_merged(const struct sonde_samples *samples)
{
    assert_int_equal(sonde_samples_thread_count(samples), 1);
    const struct sonde_sample_thread *t = sonde_samples_thread(samples, 0);
    assert_int_equal(t->threads, 2);
    assert_int_equal(t->time_ns, 500);
    assert_int_equal(t->idle_ns, 100);
    assert_int_equal(t->last_ns - t->first_ns, 500); /* from 100 before the first to the other's */
    const struct sonde_sample_node *node = sonde_samples_node(samples, t->root);
    assert_int_equal(node->time_ns, 400);
    node = sonde_samples_node(samples, node->first_child);
    assert_true(text_is(node->function, "main"));
    assert_int_equal(node->self_ns, 0); /* it waited */
    node = sonde_samples_node(samples, node->first_child);
    assert_true(text_is(node->function, "fib"));
    assert_int_equal(node->levels, 3);
    assert_int_equal(node->time_ns, 400);
    assert_int_equal(node->self_ns, 300);
    node = sonde_samples_node(samples, node->first_child);
    assert_true(text_is(node->function, "helper"));
    assert_int_equal(sonde_samples_node(samples, node->first_child)->levels, 1);
}

/* From the trace, and from samples by thread, which do not walk it again. */
static void threads_are_merged_and_recursion_is_folded(void **state)
{
    const struct sonde_samples_options options = { .struct_size = sizeof options,
                                                   .by = SONDE_SAMPLES_MERGED,
                                                   .fold_recursion = true,
                                                   .skip_idle = true };
    struct sonde_trace                *trace = make_recursion();
    struct sonde_samples              *samples, *merged;

    (void)state;
    assert_int_equal(sonde_samples_new(trace, &options, &samples, NULL), SONDE_OK);
    check_merged(samples);
    sonde_samples_free(samples);
    assert_int_equal(sonde_samples_new(trace, NULL, &samples, NULL), SONDE_OK);
    assert_int_equal(sonde_samples_merge(samples, &options, &merged, NULL), SONDE_OK);
    sonde_samples_free(samples);
    check_merged(merged);
    sonde_samples_free(merged);
    sonde_trace_close(trace);
}

static void processes_are_told_apart(void **state)
{
    const struct sonde_samples_options options = { .struct_size = sizeof options,
                                                   .by = SONDE_SAMPLES_BY_PROCESS };
    struct sonde_trace                *trace = make_recursion();
    struct sonde_samples              *samples;

    (void)state;
    assert_int_equal(sonde_samples_new(trace, &options, &samples, NULL), SONDE_OK);
    assert_int_equal(sonde_samples_thread_count(samples), 1);
    assert_int_equal(sonde_samples_thread(samples, 0)->threads, 2);
    uint32_t root = sonde_samples_thread(samples, 0)->root;
    assert_int_equal(sonde_samples_node(samples, root)->time_ns, 500);
    sonde_samples_free(samples);
    sonde_trace_close(trace);
}

static void functions_count_recursion_once(void **state)
{
    struct sonde_trace            *trace = make_recursion();
    struct sonde_samples          *samples;
    struct sonde_sample_functions *functions;

    (void)state;
    assert_int_equal(sonde_samples_new(trace, NULL, &samples, NULL), SONDE_OK);
    assert_int_equal(sonde_sample_functions_new(samples, &functions, NULL), SONDE_OK);
    assert_int_equal(functions->count, 3);
    assert_int_equal(functions->whole_ns, 500);
    const struct sonde_sample_function *row = functions->rows;
    assert_true(text_is(row[0].function, "fib"));
    assert_int_equal(row[0].self_ns, 400);
    assert_int_equal(row[0].total_ns, 400);
    assert_int_equal(row[0].samples, 4);
    assert_true(text_is(row[1].function, "main"));
    assert_int_equal(row[1].self_ns, 100);
    assert_int_equal(row[1].total_ns, 500);
    assert_true(text_is(row[2].function, "helper"));
    assert_int_equal(row[2].self_ns, 0);
    assert_int_equal(row[2].total_ns, 100);
    sonde_sample_functions_free(functions);
    sonde_samples_free(samples);
    sonde_trace_close(trace);
}

/* Samples that do not say when they were read are shared out; so many in one that it is no use are not. */
static void samples_of_several_ranges(void **state)
{
    static const struct {
        uint32_t    count;
        const char *expected;
    } cases[] = {
        { 4, "main;f (p.py:1);first 500000\nmain;f (p.py:1);second 500000\n" },
        { 100000, "main;f (p.py:1);first 549990\nmain;f (p.py:1);second 450010\n" },
        { 100001, "main;f (p.py:1);second 1000000\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth *s = synth_new(scratch_path("shared"), NULL);
        uint32_t      sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
        uint32_t      stack = synth_stack(s, 0, frame_of(s, "f", 1, 1));
        synth_meta(s, "python.sample.hz", "1000");
        synth_begin(s, t, 0, synth_string(s, "first"), 0);
        synth_end(s, t, 550000000);
        synth_begin(s, t, 550000000, synth_string(s, "second"), 0);
        synth_sample(s, sampler, 1000000000, stack, 3 | cases[i].count << 8, t, 1000000000);
        synth_end(s, t, 1000000001);
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("shared"));
        struct sonde_buffer text = { 0 };
        struct sonde_sink   sink = sonde_sink_buffer(&text);
        assert_int_equal(sonde_export(trace, "folded", NULL, &sink, NULL), SONDE_OK);
        if (!text.bytes || strcmp(text.bytes, cases[i].expected) != 0)
            fail_msg("%u samples:\n%s", cases[i].count, text.bytes ? text.bytes : "");
        sonde_buffer_release(&text);
        sonde_trace_close(trace);
    }
}

static bool take_one(void *user, const struct sonde_event *sample, uint32_t chain)
{
    (void)sample, (void)chain;
    ++*(unsigned *)user;
    return false;
}

/* Who has no memory left is told no more, beside ranges and without. */
static void a_walk_ends_early(void **state)
{
    (void)state;
    for (int with_ranges = 0; with_ranges < 2; with_ranges++) {
        struct synth    *s = synth_new(scratch_path("early"), NULL);
        uint32_t         sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
        uint32_t         stack = synth_stack(s, 0, frame_of(s, "f", 1, 1));
        struct snd_mixed mixed;
        unsigned         taken = 0;
        if (with_ranges)
            synth_begin(s, t, 0, synth_string(s, "range"), 0);
        for (uint64_t i = 1; i <= 5; i++)
            synth_sample(s, sampler, i * 1000, stack, 3 | 1 << 8, t, 1000);
        if (with_ranges)
            synth_end(s, t, 9000);
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("early"));
        assert_int_equal(snd_mixed_walk(&mixed, trace, take_one, &taken, NULL),
                         with_ranges ? SONDE_E_NOMEM
                                     : SONDE_OK); /* it is said of the taker's own */
        assert_int_equal(taken, 1);
        snd_mixed_release(&mixed);
        sonde_trace_close(trace);
    }
}

/* What --gil shows of a trace is not lent to who asks for all of it. */
static void samples_of_the_lock_are_not_kept(void **state)
{
    struct sonde_trace       *trace = make_trace();
    struct snd_only_gil       only = { 0 };
    struct snd_sample_counts *held, *all, *again;

    (void)state;
    snd_kept_begin(trace);
    trace->only_gil = &only;
    assert_int_equal(snd_sample_counts_new(trace, &held, NULL), SONDE_OK);
    uint32_t rows = (uint32_t)held->count;
    snd_sample_counts_free(held);
    trace->only_gil = NULL;
    assert_true(only.held > 0 && only.others > 0);
    assert_int_equal(snd_sample_counts_new(trace, &all, NULL), SONDE_OK);
    assert_true(all->count > rows);
    assert_int_equal(snd_sample_counts_new(trace, &again, NULL), SONDE_OK);
    assert_ptr_equal(again, all);
    snd_sample_counts_free(all);
    snd_kept_end(trace);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_merged_and_recursion_is_folded),
        cmocka_unit_test(processes_are_told_apart),
        cmocka_unit_test(functions_count_recursion_once),
        cmocka_unit_test(stacks_make_trees),
        cmocka_unit_test(ranges_come_after_what_opened_them),
        cmocka_unit_test(idle_threads_are_told_apart),
        cmocka_unit_test(samples_of_several_ranges),
        cmocka_unit_test(a_walk_ends_early),
        cmocka_unit_test(samples_of_the_lock_are_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
