/* SPDX-License-Identifier: Apache-2.0 */
/* model/python/counted_functions.c, calls.c: the table of Python functions and their callers. */
#include "format/layout.h"
#include "scratch.h"

static uint32_t frame_of(struct synth *s, const char *name, uint32_t line)
{
    return synth_frame_in(s, synth_string(s, name), line, synth_string(s, "p.py"), line, false);
}

static void begin_call(struct synth *s, uint32_t t, uint64_t ns, uint32_t frame, bool resumed)
{
    synth_begin(s, t, ns, synth_string(s, "range"), 0);
    synth_attr(s, t, SND_ATTR_FRAME, frame | (uint64_t)resumed << 32);
}

static const struct sonde_function *find(const struct sonde_functions *f, const char *name,
                                         uint32_t *index)
{
    for (uint32_t i = 0; i < sonde_functions_count(f); i++) {
        if (text_is(sonde_functions_row(f, i)->name, name)) {
            if (index)
                *index = i;
            return sonde_functions_row(f, i);
        }
    }
    fail_msg("no function %s", name);
    return NULL;
}

static const struct sonde_call *find_call(const struct sonde_functions *f, const char *caller,
                                          const char *callee)
{
    const struct sonde_function *row = find(f, callee, NULL);
    uint32_t                     from = SONDE_NONE;

    if (caller)
        find(f, caller, &from);
    for (uint32_t i = 0; i < row->caller_count; i++)
        if (sonde_functions_caller(f, row->first_caller + i)->caller == from)
            return sonde_functions_caller(f, row->first_caller + i);
    fail_msg("%s does not call %s", caller ? caller : "nobody", callee);
    return NULL;
}

static struct sonde_functions *functions_of(struct sonde_trace *trace)
{
    struct sonde_functions *functions;

    assert_int_equal(sonde_functions_new(trace, &functions, NULL), SONDE_OK);
    return functions;
}

/* a() { b() { a() { b() } } b() }, what cProfile makes of it written down by hand. */
static void ranges_are_counted_as_cprofile_counts(void **state)
{
    const char   *path = scratch_path("ranges");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      a = frame_of(s, "a", 1), b = frame_of(s, "b", 9);

    (void)state;
    begin_call(s, t, 0, a, false);
    begin_call(s, t, 10, b, false);
    begin_call(s, t, 30, a, false);
    begin_call(s, t, 60, b, false);
    synth_end(s, t, 100); /* b: 40, of which 40 its own */
    synth_end(s, t, 150); /* a: 120, of which 80 */
    synth_end(s, t, 200); /* b: 190, of which 70 */
    begin_call(s, t, 300, b, false);
    synth_end(s, t, 350);
    synth_end(s, t, 1000); /* a: 1000, of which 760 */
    synth_close(s, true);
    struct sonde_trace          *trace = scratch_open(path);
    struct sonde_functions      *f = functions_of(trace);
    const struct sonde_function *row = find(f, "a", NULL);

    assert_int_equal(sonde_functions_count(f), 2);
    assert_true(text_is(row->file, "p.py"));
    assert_int_equal(row->line, 1);
    assert_int_equal(row->calls, 2);
    assert_int_equal(row->primitive_calls, 1);
    assert_int_equal(row->self_ns, 840);
    assert_int_equal(row->total_ns, 1000);
    row = find(f, "b", NULL);
    assert_int_equal(row->calls, 3);
    assert_int_equal(row->primitive_calls, 2);
    assert_int_equal(row->self_ns, 160);
    assert_int_equal(row->total_ns, 240);
    const struct sonde_call *call = find_call(f, "a", "b");
    assert_int_equal(call->calls, 3);
    assert_int_equal(call->primitive_calls, 2); /* the inner one lies in a call a to b */
    assert_int_equal(call->total_ns, 240);
    assert_int_equal(call->self_ns, 160);
    call = find_call(f, "b", "a");
    assert_int_equal(call->calls, 1);
    assert_int_equal(call->total_ns, 120);
    assert_int_equal(find_call(f, NULL, "a")->total_ns, 1000);
    sonde_functions_free(f);
    sonde_trace_close(trace);
}

/* A thread's recursion is its own; operators in between are part of the function. */
static void threads_resumptions_and_operators(void **state)
{
    const char   *path = scratch_path("threads");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      a = frame_of(s, "a", 1), g = frame_of(s, "g", 5);

    (void)state;
    begin_call(s, t, 0, a, false);
    begin_call(s, u, 5, a, false);
    synth_begin(s, t, 10, synth_string(s, "aten::add"), 0);
    begin_call(s, t, 20, g, false);
    synth_end(s, t, 30);
    begin_call(s, t, 40, g, true);
    synth_attr(s, t, SND_ATTR_AWAITED, 700);
    synth_end(s, t, 45);
    synth_end(s, t, 50);
    synth_end(s, u, 55);
    synth_end(s, t, 100);
    synth_close(s, true);
    struct sonde_trace          *trace = scratch_open(path);
    struct sonde_functions      *f = functions_of(trace);
    const struct sonde_function *row = find(f, "a", NULL);

    assert_int_equal(row->calls, 2);
    assert_int_equal(row->primitive_calls, 2);
    assert_int_equal(row->total_ns, 150);
    assert_int_equal(row->self_ns, 135);
    row = find(f, "g", NULL);
    assert_int_equal(row->calls, 1);
    assert_int_equal(row->resumptions, 1);
    assert_int_equal(row->awaiting_ns, 700);
    assert_int_equal(row->total_ns, 15);
    assert_int_equal(find_call(f, "a", "g")->calls, 1);
    sonde_functions_free(f);
    sonde_trace_close(trace);
}

/* A range that ends before what it called: both are counted, neither twice. */
static void ends_out_of_order(void **state)
{
    const char   *path = scratch_path("order");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    begin_call(s, t, 0, frame_of(s, "a", 1), false);
    begin_call(s, t, 10, frame_of(s, "b", 2), false);
    begin_call(s, t, 20, frame_of(s, "c", 3), false);
    synth_end_at(s, t, 30, 1); /* b */
    synth_end(s, t, 50);
    synth_end(s, t, 100);
    synth_close(s, true);
    struct sonde_trace     *trace = scratch_open(path);
    struct sonde_functions *f = functions_of(trace);

    assert_int_equal(find(f, "b", NULL)->total_ns, 20);
    assert_int_equal(find(f, "c", NULL)->total_ns, 30);
    assert_int_equal(find(f, "a", NULL)->total_ns, 100);
    assert_int_equal(find(f, "a", NULL)->calls, 1);
    sonde_functions_free(f);
    sonde_trace_close(trace);
}

/* Of many calls that are open the outer ones end first: each has its own time, at every depth. */
static void deep_ends_out_of_order(void **state)
{
    (void)state;
    for (uint32_t depth = 2; depth <= 65; depth++) {
        struct synth *s = synth_new(scratch_path("deep"), NULL);
        uint32_t      t = synth_thread(s, "main", 0);
        char          name[16];
        for (uint32_t i = 0; i < depth; i++) {
            snprintf(name, sizeof name, "f%u", i);
            begin_call(s, t, 10 * i, frame_of(s, name, i + 1), false);
        }
        for (uint32_t i = 0; i < depth; i++)
            synth_end_at(s, t, 1000 + i, depth - 1 - i);
        synth_close(s, true);
        struct sonde_trace     *trace = scratch_open(scratch_path("deep"));
        struct sonde_functions *f = functions_of(trace);
        for (uint32_t i = 0; i < depth; i++) {
            snprintf(name, sizeof name, "f%u", i);
            assert_int_equal(find(f, name, NULL)->total_ns, 1000 + i - 10 * i);
            assert_int_equal(find(f, name, NULL)->calls, 1);
        }
        sonde_functions_free(f);
        sonde_trace_close(trace);
    }
}

/* Tallies of several processes, of clocks of different rates, make one table. */
static void tallies_are_added_up(void **state)
{
    static const uint64_t words[8] = { 5, 2, 4000, 1000, 3, 700, 2, 4000 };
    static const uint64_t old[6] = { 7, 3, 6000, 600, 0, 0 };
    char                  folder[256], path[300];

    (void)state;
    snprintf(folder, sizeof folder, "%s", scratch_path("many"));
    snprintf(path, sizeof path, "mkdir -p %s", folder);
    assert_int_equal(system(path), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = { .pid = 100 + i, .ticks_per_ns_x1000 = i ? 2000 : 0 };
        snprintf(path, sizeof path, "%s/%u.sonde", folder, i);
        struct synth *s = synth_new(path, &options);
        if (i == 1)
            synth_string(s, "ids differ");
        uint32_t main_frame = frame_of(s, "main", 1), f = frame_of(s, "f", 2);
        synth_clock(s, 1000000, 0);
        synth_tally(s, SND_TALLY_CALLS, main_frame, 0, words, 8);
        synth_tally(s, SND_TALLY_CALLS, f, main_frame, old, 6); /* an older version's */
        synth_tally(s, SND_TALLY_CALLS, f, f, old, 6);
        synth_tally(s, 99, f, 0, words, 8); /* a later one's */
        synth_close(s, true);
    }
    struct sonde_trace          *trace = scratch_open(folder);
    struct sonde_functions      *f = functions_of(trace);
    const struct sonde_function *row = find(f, "main", NULL);

    assert_int_equal(sonde_functions_count(f), 2);
    assert_int_equal(row->calls, 10);
    assert_int_equal(row->primitive_calls, 4);
    assert_int_equal(row->total_ns, 4000 + 2000); /* the second ticks twice a nanosecond */
    assert_int_equal(row->self_ns, 1500);
    assert_int_equal(row->resumptions, 6);
    assert_int_equal(row->awaiting_ns, 700 + 350);
    row = find(f, "f", NULL); /* without the later words, calls by itself are no primitive ones */
    assert_int_equal(row->calls, 28);
    assert_int_equal(row->primitive_calls, 6);
    assert_int_equal(row->total_ns, 6000 + 3000);
    assert_int_equal(find_call(f, "f", "f")->primitive_calls, 6);
    sonde_functions_free(f);
    sonde_trace_close(trace);
}

/* A process that counts is not counted again by its ranges. */
static void tallies_go_before_ranges(void **state)
{
    static const uint64_t words[8] = { 1, 1, 10, 10, 0, 0, 1, 10 };
    const char           *path = scratch_path("both");
    struct synth         *s = synth_new(path, NULL);
    uint32_t              t = synth_thread(s, "main", 0), a = frame_of(s, "a", 1);

    (void)state;
    synth_tally(s, SND_TALLY_CALLS, a, 0, words, 8);
    begin_call(s, t, 0, a, false);
    synth_end(s, t, 10);
    synth_close(s, true);
    struct sonde_trace     *trace = scratch_open(path);
    struct sonde_functions *f = functions_of(trace);

    assert_int_equal(find(f, "a", NULL)->calls, 1);
    sonde_functions_free(f);
    sonde_trace_close(trace);
}

/* main calls f and g, both call h, which calls itself: h's time is shared out. */
static void call_tree_shares_out(void **state)
{
    static const uint64_t words[6][8] = {
        { 1, 1, 1000, 100, 0, 0, 1, 1000 }, { 1, 1, 600, 0, 0, 0, 1, 600 },
        { 1, 1, 300, 0, 0, 0, 1, 300 },     { 1, 1, 600, 400, 0, 0, 1, 600 },
        { 1, 1, 300, 100, 0, 0, 1, 300 },   { 8, 4, 400, 400, 0, 0, 0, 0 },
    };
    const char    *path = scratch_path("tree");
    struct synth  *s = synth_new(path, NULL);
    uint32_t       m = frame_of(s, "main", 1), f = frame_of(s, "f", 2), g = frame_of(s, "g", 3);
    uint32_t       h = frame_of(s, "h", 4);
    const uint32_t pairs[6][2] = { { m, 0 }, { f, m }, { g, m }, { h, f }, { h, g }, { h, h } };

    (void)state;
    for (size_t i = 0; i < 6; i++)
        synth_tally(s, SND_TALLY_CALLS, pairs[i][0], pairs[i][1], words[i], 8);
    synth_close(s, true);
    struct sonde_trace     *trace = scratch_open(path);
    struct sonde_functions *functions = functions_of(trace);
    struct sonde_call_tree *tree;
    static const struct {
        uint32_t depth;
        int64_t  total_ns, self_ns;
    } expected[] = { { 0, 1000, 0 },  { 1, 1000, 100 }, { 2, 600, 0 },
                     { 3, 600, 600 }, { 2, 300, 0 },    { 3, 300, 300 } };

    assert_int_equal(sonde_call_tree_new(functions, &tree, NULL), SONDE_OK);
    assert_int_equal(sonde_call_tree_count(tree), 6);
    for (size_t i = 0; i < 6; i++) {
        const struct sonde_call_node *node = sonde_call_tree_node(tree, i);
        assert_int_equal(node->depth, expected[i].depth);
        assert_int_equal(node->total_ns, expected[i].total_ns);
        assert_int_equal(node->self_ns, expected[i].self_ns);
    }
    sonde_call_tree_free(tree);
    sonde_functions_free(functions);
    sonde_trace_close(trace);
}

/* Nothing was called from outside, as where the recording began inside: the longest is the root. */
static void call_tree_without_a_root(void **state)
{
    static const uint64_t by_g[8] = { 3, 3, 600, 100, 0, 0, 3, 600 };
    static const uint64_t by_f[8] = { 2, 2, 900, 400, 0, 0, 2, 900 };
    static const uint64_t by_h[8] = { 1, 1, 500, 500, 0, 0, 1, 500 };
    const char           *path = scratch_path("rootless");
    struct synth         *s = synth_new(path, NULL);
    uint32_t              f = frame_of(s, "f", 2), g = frame_of(s, "g", 3), h = frame_of(s, "h", 4);

    (void)state;
    synth_tally(s, SND_TALLY_CALLS, f, g, by_g, 8);
    synth_tally(s, SND_TALLY_CALLS, g, f, by_f, 8);
    synth_tally(s, SND_TALLY_CALLS, h, g, by_h, 8);
    synth_close(s, true);
    struct sonde_trace           *trace = scratch_open(path);
    struct sonde_functions       *functions = functions_of(trace);
    struct sonde_call_tree       *tree;
    const struct sonde_call_node *node;
    uint32_t                      of_g;

    find(functions, "g", &of_g);
    assert_int_equal(sonde_call_tree_new(functions, &tree, NULL), SONDE_OK);
    assert_int_equal(sonde_call_tree_count(tree), 4); /* all, g, and f and h that it calls */
    node = sonde_call_tree_node(tree, 1);
    assert_int_equal(node->function, of_g);
    assert_int_equal(node->depth, 1);
    assert_int_equal(node->calls, 2);
    assert_int_equal(node->total_ns, 900);
    assert_int_equal(sonde_call_tree_node(tree, 2)->depth, 2);
    assert_int_equal(sonde_call_tree_node(tree, 3)->depth, 2);
    sonde_call_tree_free(tree);
    sonde_functions_free(functions);
    sonde_trace_close(trace);
}

/* Times that no clock told: together they are past what is held. */
/* The same if it is the first of all, or the last, or has taken no more time than the others. */
static void the_longest_is_the_root_wherever_it_stands(void **state)
{
    (void)state;
    for (unsigned longest = 0; longest < 4; longest++) {
        char          path[256], name[8];
        uint32_t      frames[3];
        struct synth *s;
        snprintf(path, sizeof path, "%s%u", scratch_path("longest"), longest);
        s = synth_new(path, NULL);
        for (uint32_t i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "f%u", i);
            frames[i] = frame_of(s, name, 2 + i);
        }
        for (uint32_t i = 0; i < 3; i++) {
            const uint64_t ns = i == longest ? 900 : 100, words[8] = { 1, 1, ns, ns, 0, 0, 1, ns };
            synth_tally(s, SND_TALLY_CALLS, frames[i], frames[(i + 1) % 3], words, 8);
        }
        synth_close(s, true);
        struct sonde_trace     *trace = scratch_open(path);
        struct sonde_functions *functions = functions_of(trace);
        struct sonde_call_tree *tree;
        snprintf(name, sizeof name, "f%u", longest % 3);
        assert_int_equal(sonde_call_tree_new(functions, &tree, NULL), SONDE_OK);
        uint32_t root = sonde_call_tree_node(tree, 1)->function;
        if (longest < 3)
            assert_true(text_is(sonde_functions_row(functions, root)->name, name));
        else
            assert_int_equal(root, 0);
        sonde_call_tree_free(tree);
        sonde_functions_free(functions);
        sonde_trace_close(trace);
    }
}

static void call_tree_of_eternities(void **state)
{
    const uint64_t words[8] = { 1, 1, INT64_MAX, INT64_MAX, 0, 0, 1, INT64_MAX };
    const char    *path = scratch_path("eternities");
    struct synth  *s = synth_new(path, NULL);

    (void)state;
    for (uint32_t i = 1; i <= 16; i++)
        synth_tally(s, SND_TALLY_CALLS, frame_of(s, "f", i), 0, words, 8);
    synth_close(s, true);
    struct sonde_trace     *trace = scratch_open(path);
    struct sonde_functions *functions = functions_of(trace);
    struct sonde_call_tree *tree;

    assert_int_equal(sonde_call_tree_new(functions, &tree, NULL), SONDE_OK);
    assert_int_equal(sonde_call_tree_count(tree), 17);
    assert_true(sonde_call_tree_node(tree, 0)->total_ns == INT64_MAX);
    for (size_t i = 1; i < 17; i++)
        assert_true(sonde_call_tree_node(tree, i)->total_ns > 0);
    sonde_call_tree_free(tree);
    sonde_functions_free(functions);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_counted_as_cprofile_counts),
        cmocka_unit_test(threads_resumptions_and_operators),
        cmocka_unit_test(ends_out_of_order),
        cmocka_unit_test(deep_ends_out_of_order),
        cmocka_unit_test(tallies_are_added_up),
        cmocka_unit_test(tallies_go_before_ranges),
        cmocka_unit_test(call_tree_shares_out),
        cmocka_unit_test(call_tree_without_a_root),
        cmocka_unit_test(the_longest_is_the_root_wherever_it_stands),
        cmocka_unit_test(call_tree_of_eternities),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
