/* SPDX-License-Identifier: Apache-2.0 */
/* model/ops/tree.c: the call tree of ranges. */
#include "format/layout.h"
#include "scratch.h"

static struct sonde_trace *make_trace(void)
{
    const char   *path = scratch_path("tree");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, NULL, 0);
    uint32_t      a = synth_string(s, "a"), b = synth_string(s, "b"), c = synth_string(s, "c");

    for (unsigned i = 0; i < 2; i++) {
        uint64_t at = 1000 * i;
        synth_begin(s, t, at, a, 0);
        synth_begin(s, t, at + 10, b, 0); /* short */
        synth_attr(s, t, SND_ATTR_FLOPS, 100);
        synth_end(s, t, at + 20);
        synth_begin(s, t, at + 30, c, 0); /* long: comes first */
        synth_alloc(s, t, at + 40, SND_DEVICE(0, 0xffff), 0x10 + i, 8);
        synth_end(s, t, at + 90);
        synth_end(s, t, at + 100);
        synth_begin(s, u, at, c, 0);
        synth_end(s, u, at + 500);
    }
    synth_close(s, true);
    return scratch_open(path);
}

static void paths_are_merged(void **state)
{
    struct sonde_trace *trace = make_trace();
    struct sonde_tree  *tree;

    (void)state;
    assert_int_equal(sonde_tree_new(trace, false, &tree, NULL), SONDE_OK);
    assert_int_equal(sonde_tree_count(tree), 5); /* root, a, b, c below a, c */
    const struct sonde_node *root = sonde_tree_node(tree, 0);
    assert_int_equal(root->total_ns, 1200);
    assert_int_equal(root->count, 4); /* the sum of its children: a twice, c twice */
    assert_int_equal(root->cpu_bytes, 16);
    assert_true(root->flops == 200);
    const struct sonde_node *first = sonde_tree_node(tree, root->first_child);
    assert_true(text_is(first->name, "c")); /* the longest first */
    assert_int_equal(first->total_ns, 1000);
    assert_int_equal(first->first_child, 0);
    const struct sonde_node *a = sonde_tree_node(tree, first->next_sibling);
    assert_true(text_is(a->name, "a"));
    assert_int_equal(a->count, 2);
    assert_int_equal(a->depth, 1);
    assert_int_equal(a->total_ns, 200);
    assert_int_equal(a->self_ns, 200 - 20 - 120);
    assert_int_equal(a->cpu_bytes, 16);
    assert_true(a->flops == 200);
    assert_int_equal(a->next_sibling, 0);
    const struct sonde_node *c = sonde_tree_node(tree, a->first_child);
    assert_true(text_is(c->name, "c"));
    assert_int_equal(c->depth, 2);
    assert_true(text_is(sonde_tree_node(tree, c->next_sibling)->name, "b"));
    assert_ptr_equal(sonde_tree_node(tree, c->parent), a);
    assert_null(sonde_tree_node(tree, 5));
    sonde_tree_free(tree);
    sonde_trace_close(trace);
}

static void threads_are_the_first_level(void **state)
{
    struct sonde_trace *trace = make_trace();
    struct sonde_tree  *tree;

    (void)state;
    assert_int_equal(sonde_tree_new(trace, true, &tree, NULL), SONDE_OK);
    const struct sonde_node *first = sonde_tree_node(tree, sonde_tree_node(tree, 0)->first_child);
    assert_true(text_is(first->name, "thread 4243")); /* it has no name */
    assert_int_equal(first->total_ns, 1000);
    const struct sonde_node *second = sonde_tree_node(tree, first->next_sibling);
    assert_true(text_is(second->name, "main"));
    assert_int_equal(second->count, 2);
    assert_true(text_is(sonde_tree_node(tree, second->first_child)->name, "a"));
    sonde_tree_free(tree);
    sonde_trace_close(trace);
}

static void nothing_is_a_root(void **state)
{
    struct sonde_tree *tree;

    (void)state;
    synth_close(synth_new(scratch_path("empty"), NULL), true);
    struct sonde_trace *trace = scratch_open(scratch_path("empty"));
    assert_int_equal(sonde_tree_new(trace, true, &tree, NULL), SONDE_OK);
    assert_int_equal(sonde_tree_count(tree), 1);
    assert_int_equal(sonde_tree_node(tree, 0)->first_child, 0);
    sonde_tree_free(tree);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_merged),
        cmocka_unit_test(threads_are_the_first_level),
        cmocka_unit_test(nothing_is_a_root),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
