/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and their averages: nesting, folding, gaps, memory, groups. */
#include "format/layout.h"
#include "model/ops/averages.h"
#include "model/ranges/assembly.h"
#include "scratch.h"

#define CPU SND_DEVICE(0, 0xffff)
#define CUDA SND_DEVICE(1, 0)

static struct sonde_averages *average(struct sonde_trace *trace, unsigned groups)
{
    struct sonde_averages_options options = { .struct_size = sizeof options, .groups = groups };
    struct sonde_averages        *averages;

    assert_int_equal(sonde_averages_new(trace, &options, &averages, NULL), SONDE_OK);
    return averages;
}

static void check_row(const struct sonde_averages *averages, const char *name, uint64_t count,
                      int64_t total_ns, int64_t self_ns)
{
    const struct sonde_average *row = find_average(averages, name);

    assert_int_equal(row->count, count);
    assert_int_equal(row->total_ns, total_ns);
    assert_int_equal(row->self_ns, self_ns);
}

/* The first key of a range is its key, and 0 is none. */
static void keys_are_given_once(void **state)
{
    struct synth *s = synth_new(scratch_path("keys"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_begin(s, t, 100, synth_string(s, "a"), 0);
    synth_attr(s, t, SND_ATTR_KEY, 0);
    synth_attr(s, t, SND_ATTR_KEY, 1);
    synth_attr(s, t, SND_ATTR_KEY, 6);
    synth_attr(s, t, SND_ATTR_KEY, 0);
    synth_end_key(s, t, 150, 0);
    synth_end_key(s, t, 200, 6);
    synth_end_key(s, t, 300, 1);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("keys"));
    struct sonde_averages *r = average(trace, 0);
    check_row(r, "a", 1, 200, 200);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

static void self_and_total(void **state)
{
    struct synth *s = synth_new(scratch_path("nested"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      a = synth_string(s, "a"), b = synth_string(s, "b"), c = synth_string(s, "c");

    (void)state;
    synth_begin(s, t, 100, a, 0);
    synth_begin(s, t, 110, b, 0);
    synth_begin(s, t, 120, c, 0);
    synth_end(s, t, 150);
    synth_end(s, t, 160);
    synth_begin(s, t, 170, b, 0);
    synth_end(s, t, 190);
    synth_end(s, t, 200);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("nested"));
    struct sonde_averages *r = average(trace, 0);
    assert_int_equal(sonde_averages_count(r), 3);
    check_row(r, "a", 1, 100, 30);
    check_row(r, "b", 2, 70, 40);
    check_row(r, "c", 1, 30, 30);
    assert_int_equal(find_average(r, "b")->min_ns, 20);
    assert_int_equal(find_average(r, "b")->max_ns, 50);
    assert_true(text_is(sonde_averages_row(r, 0)->name, "a")); /* as they began */
    assert_true(text_is(sonde_averages_row(r, 2)->name, "c"));
    assert_int_equal(sonde_averages_totals(r)->self_ns, 100);
    assert_int_equal(sonde_averages_totals(r)->events, 8);
    assert_int_equal(sonde_averages_totals(r)->ranges, 4);
    assert_null(sonde_averages_row(r, 3));
    sonde_averages_free(r);
    struct sonde_averages_options top = { .struct_size = sizeof top, .top_level = true };
    assert_int_equal(sonde_averages_new(trace, &top, &r, NULL), SONDE_OK);
    assert_int_equal(sonde_averages_count(r), 1);
    check_row(r, "a", 1, 100, 30);
    assert_int_equal(sonde_averages_totals(r)->self_ns, 100); /* shares stay of the whole */
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

/* A range that a framework made. */
static void begin_op(struct synth *s, uint32_t t, uint64_t ns, uint32_t name)
{
    synth_begin(s, t, ns, name, 0);
    synth_attr(s, t, SND_ATTR_SCOPE, SONDE_SCOPE_FUNCTION + 1);
}

/* Recursion of a program's own ranges: each call counts, in every list. */
static void ranges_of_a_program_do_not_fold(void **state)
{
    struct synth *s = synth_new(scratch_path("recursion"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      f = synth_string(s, "f");

    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        synth_begin(s, t, i * 10, f, 0);
    for (uint64_t i = 0; i < 10; i++)
        synth_end(s, t, 100 + i * 10);
    synth_begin(s, t, 300, f, 0); /* a program's own around a framework's: two things */
    begin_op(s, t, 310, f);
    synth_end(s, t, 320);
    synth_end(s, t, 330);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("recursion"));
    struct sonde_averages *r = average(trace, 0);
    check_row(r, "f", 12, 10 + 30 + 50 + 70 + 90 + 110 + 130 + 150 + 170 + 190 + 30 + 10, 220);
    sonde_averages_free(r);
    struct sonde_tree *tree;
    assert_int_equal(sonde_tree_new(trace, false, &tree, NULL), SONDE_OK);
    uint64_t calls = 0;
    for (size_t i = 1; i < sonde_tree_count(tree); i++)
        calls += sonde_tree_node(tree, i)->count;
    assert_int_equal(calls, 12);
    sonde_tree_free(tree);
    struct sonde_events *events;
    assert_int_equal(sonde_events_new(trace, NULL, &events, NULL), SONDE_OK);
    assert_int_equal(sonde_events_columns(events)->count, 12);
    sonde_events_free(events);
    sonde_trace_close(trace);
}

static void only_children_of_the_same_name_fold(void **state)
{
    struct synth *s = synth_new(scratch_path("fold"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      f = synth_string(s, "f"), g = synth_string(s, "g");

    (void)state;
    begin_op(s, t, 0, f); /* f > f > f > g becomes f > g */
    begin_op(s, t, 10, f);
    begin_op(s, t, 20, f);
    synth_attr(s, t, SND_ATTR_FLOPS, 5); /* kept: the outer ones have none */
    synth_begin(s, t, 30, g, 0);
    synth_end(s, t, 40);
    synth_end(s, t, 50);
    synth_end(s, t, 60);
    synth_end(s, t, 70);
    struct synth *other = synth_new(scratch_path("fold2"), NULL);
    uint32_t      u = synth_thread(other, "main", 0);
    f = synth_string(other, "f");
    begin_op(other, u, 0, f); /* two children: neither folds */
    begin_op(other, u, 10, f);
    synth_end(other, u, 20);
    begin_op(other, u, 30, f);
    synth_end(other, u, 50);
    synth_end(other, u, 60);
    synth_close(s, true);
    synth_close(other, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("fold"));
    struct sonde_averages *r = average(trace, 0);
    check_row(r, "f", 1, 70, 60);
    check_row(r, "g", 1, 10, 10);
    assert_true(find_average(r, "f")->flops == 5);
    assert_int_equal(sonde_averages_totals(r)->self_ns, 70);
    sonde_averages_free(r);
    sonde_trace_close(trace);
    trace = scratch_open(scratch_path("fold2"));
    r = average(trace, 0);
    check_row(r, "f", 3, 90, 60); /* recursion: every range counts its own total */
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

static void gaps_close_what_they_cover(void **state)
{
    struct synth         *s = synth_new(scratch_path("gap"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    uint32_t              a = synth_string(s, "a"), b = synth_string(s, "b");
    struct sonde_summary *summary;

    (void)state;
    synth_end(s, t, 5); /* open before the trace began */
    synth_begin(s, t, 10, a, 0);
    synth_begin(s, t, 20, b, 0);
    synth_gap(s, t, 30, 4, 1); /* b ends here */
    synth_end(s, t, 40);       /* a */
    synth_begin(s, t, 50, a, 0);
    synth_begin(s, t, 60, b, 0);
    synth_gap(s, t, 70, 0, SND_GAP_ALL);
    synth_begin(s, t, 80, a, 0); /* never ends */
    synth_mark(s, t, 90, a, 0);
    synth_thread_done(s, t, 100, 4);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("gap"));
    struct sonde_averages *r = average(trace, 0);
    check_row(r, "a", 3, 30 + 20 + 20, 20 + 10 + 20);
    check_row(r, "b", 2, 20, 20);
    sonde_averages_free(r);
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    assert_int_equal(ledger_count(summary, "unfinished_ranges"), 4);
    assert_int_equal(ledger_count(summary, "ends_without_begin"), 1);
    assert_int_equal(ledger_count(summary, "lost_events"), 4);
    sonde_summary_free(summary);
    sonde_trace_close(trace);
}

enum { SHARERS = 5, SHARED_RANGES = 400, SHARED_DEPTH = 6 };

/* What a range is to have, by the rule itself: each allocation is given to each thread's range. */
struct expected {
    int64_t cpu, device;
    bool    is_named;
};
struct sharer {
    uint32_t thread, open[SHARED_DEPTH], depth;
};

static void note_expected(struct expected *ranges, const struct sharer *sharers, uint32_t by,
                          bool is_cpu, int64_t bytes)
{
    for (uint32_t i = 0; i < SHARERS; i++) {
        uint32_t depth = sharers[i].depth;
        while (i != by && depth > 0 && !ranges[sharers[i].open[depth - 1]].is_named)
            depth--;
        while (depth-- > 0) /* and to all that it lies in */
            *(is_cpu ? &ranges[sharers[i].open[depth]].cpu
                     : &ranges[sharers[i].open[depth]].device) += bytes;
    }
}

/* Threads that open, close and take memory in no order. */
static void memory_is_shared_with_named_ranges(void **state)
{
    struct expected ranges[SHARED_RANGES] = { 0 };
    struct sharer   sharers[SHARERS] = { 0 };
    struct synth   *s = synth_new(scratch_path("shared"), NULL);
    uint64_t        ns = 100, random = 1;
    uint32_t        count = 0;
    char            name[16];

    (void)state;
    for (uint32_t i = 0; i < SHARERS; i++) {
        snprintf(name, sizeof name, "thread %u", i);
        sharers[i].thread = synth_thread(s, name, 0);
    }
    while (count < SHARED_RANGES) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t       by = (uint32_t)(random >> 33) % SHARERS, what = (uint32_t)(random >> 60);
        struct sharer *one = &sharers[by];
        ns += 10;
        if (what < 5 && one->depth < SHARED_DEPTH) {
            snprintf(name, sizeof name, "range %u", count);
            synth_begin(s, one->thread, ns, synth_string(s, name), 0);
            ranges[count].is_named = what < 3;
            synth_attr(s, one->thread, SND_ATTR_SCOPE,
                       (what < 3 ? SONDE_SCOPE_USER : SONDE_SCOPE_FUNCTION) + 1);
            one->open[one->depth++] = count++;
        } else if (what < 9 && one->depth > 0) {
            synth_end(s, one->thread, ns);
            one->depth--;
        } else if (what >= 9) {
            int64_t bytes = (int64_t)(random >> 40 & 0xfff) + 1;
            synth_alloc(s, one->thread, ns, what < 13 ? CPU : CUDA, 4096 + ns * 64,
                        (uint64_t)bytes);
            note_expected(ranges, sharers, by, what < 13, bytes);
        }
    }
    synth_close(s, true); /* with ranges that are still open */
    struct sonde_trace    *trace = scratch_open(scratch_path("shared"));
    struct sonde_averages *r = average(trace, 0);
    for (uint32_t i = 0; i < SHARED_RANGES; i++) {
        snprintf(name, sizeof name, "range %u", i);
        const struct sonde_average *row = find_average(r, name);
        assert_int_equal(row->cpu_bytes, ranges[i].cpu);
        assert_int_equal(row->device_bytes, ranges[i].device);
    }
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

static void memory_is_net_and_by_thread(void **state)
{
    struct synth *s = synth_new(scratch_path("net"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      a = synth_string(s, "a"), b = synth_string(s, "b");

    (void)state;
    synth_begin(s, t, 10, a, 0);
    synth_alloc(s, t, 11, CPU, 0x1, 100);
    synth_begin(s, t, 20, b, 0);
    synth_alloc(s, t, 21, CPU, 0x2, 1000);
    synth_alloc(s, t, 22, CUDA, 0x2, 7);
    synth_free(s, t, 23, CPU, 0x1, 100);
    synth_alloc(s, u, 24, CPU, 0x3, 5); /* another thread, outside any range */
    synth_end(s, t, 30);
    synth_end(s, t, 40);
    synth_close(s, true);
    struct sonde_trace         *trace = scratch_open(scratch_path("net"));
    struct sonde_averages      *r = average(trace, 0);
    const struct sonde_average *row = find_average(r, "a");
    assert_int_equal(row->cpu_bytes, 1000);
    assert_int_equal(row->self_cpu_bytes, 100);
    assert_int_equal(row->device_bytes, 7);
    assert_int_equal(row->self_device_bytes, 0);
    row = find_average(r, "b");
    assert_int_equal(row->cpu_bytes, 900);
    assert_int_equal(row->self_device_bytes, 7);
    row = find_average(r, "[memory]");
    assert_int_equal(row->count, 1);
    assert_int_equal(row->cpu_bytes, 5);
    assert_true(sonde_averages_totals(r)->has_memory);
    assert_true(sonde_averages_totals(r)->has_device_memory);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

/* A free that does not tell its size has the size of what it gives back, whoever took it. */
static void frees_without_a_size(void **state)
{
    struct synth *s = synth_new(scratch_path("unsized"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      a = synth_string(s, "a");

    (void)state;
    synth_alloc(s, u, 5, CPU, 0x1, 64);
    synth_begin(s, t, 10, a, 0);
    synth_free(s, t, 11, CPU, 0x1, 0);
    synth_free(s, t, 12, CPU, 0x999, 0); /* taken before: unknown */
    synth_end(s, t, 20);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("unsized"));
    struct sonde_averages *r = average(trace, 0);
    assert_int_equal(find_average(r, "a")->cpu_bytes, -64);
    assert_int_equal(find_average(r, "[memory]")->cpu_bytes, 64);
    assert_int_equal(find_average(r, "a")->count, 1);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

static void groups_divide(void **state)
{
    struct synth *s = synth_new(scratch_path("groups"), NULL);
    uint32_t      t[2] = { synth_thread(s, "t0", 0), synth_thread(s, "t1", 0) };
    uint32_t      op = synth_string(s, "op"), file = synth_string(s, "m.py");
    uint32_t      shapes[3] = { synth_shapes(s, "2,3"), synth_shapes(s, "4;#"), 0 };
    uint32_t      same = synth_shapes(s, "2,3"); /* another id, the same text */
    uint32_t      stack = synth_stack(s, 0, synth_frame(s, op, file, 12));
    uint32_t      module = synth_string(s, "net.fc");

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        synth_begin(s, t[i & 1], i * 100, op, i % 3 == 0 && i > 5 ? same : shapes[i % 3]);
        if (i % 4 == 0)
            synth_attr(s, t[i & 1], SND_ATTR_STACK, stack);
        if (i % 6 == 0)
            synth_attr(s, t[i & 1], SND_ATTR_MODULE, module);
        synth_end(s, t[i & 1], i * 100 + 10);
    }
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("groups"));
    struct sonde_averages *r = average(trace, SONDE_GROUP_SHAPE);
    assert_int_equal(sonde_averages_count(r), 3);
    assert_true(text_is(sonde_averages_row(r, 0)->shapes, "[[2, 3]]"));
    assert_true(text_is(sonde_averages_row(r, 1)->shapes, "[[4], []]"));
    assert_true(text_is(sonde_averages_row(r, 2)->shapes, ""));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(sonde_averages_row(r, i)->count, 4);
    assert_int_equal(sonde_averages_row(r, 0)->thread, SONDE_NONE);
    sonde_averages_free(r);
    r = average(trace, SONDE_GROUP_THREAD);
    assert_int_equal(sonde_averages_count(r), 2);
    assert_int_equal(sonde_averages_row(r, 1)->thread, 1);
    assert_int_equal(sonde_averages_row(r, 1)->count, 6);
    sonde_averages_free(r);
    r = average(trace, SONDE_GROUP_STACK);
    assert_int_equal(sonde_averages_count(r), 2);
    assert_true(text_is(sonde_averages_row(r, 0)->stack, "m.py(12): op"));
    assert_int_equal(sonde_averages_row(r, 0)->count, 3);
    sonde_averages_free(r);
    r = average(trace, SONDE_GROUP_MODULE | SONDE_GROUP_PROCESS);
    assert_int_equal(sonde_averages_count(r), 2);
    assert_true(text_is(sonde_averages_row(r, 0)->module, "net.fc"));
    assert_int_equal(sonde_averages_row(r, 0)->process, 0);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

/* A range that ends before what lies in it: no time or byte is lost, none counts twice. */
static void ends_out_of_order(void **state)
{
    struct synth *s = synth_new(scratch_path("order"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      a = synth_string(s, "a"), b = synth_string(s, "b"), c = synth_string(s, "c");
    struct sonde_summary *summary;

    (void)state;
    synth_begin(s, t, 100, a, 0);
    synth_begin(s, t, 110, b, 0);
    synth_alloc(s, t, 112, CPU, 0x1, 10);
    synth_begin(s, t, 120, c, 0);
    synth_alloc(s, t, 125, CPU, 0x2, 1000);
    synth_end_at(s, t, 150, 1); /* b: 40; c ends after it and so does not lie in it */
    synth_alloc(s, t, 160, CPU, 0x3, 500);
    synth_end(s, t, 180); /* c: 60 */
    synth_end(s, t, 200); /* a: 100, less b and c, which both lie in it */
    synth_begin(s, t, 300, a, 0);
    synth_begin(s, t, 310, b, 0);
    synth_end_at(s, t, 320, 1); /* the outermost */
    synth_end(s, t, 340);
    synth_end_at(s, t, 350, 5); /* of nothing */
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("order"));
    struct sonde_averages *r = average(trace, 0);
    check_row(r, "a", 2, 100 + 20, 0 + 20); /* torch's relation: what overlaps is no child */
    check_row(r, "b", 2, 40 + 30, 40 + 30);
    check_row(r, "c", 1, 60, 60);
    assert_int_equal(sonde_averages_totals(r)->self_ns, 150);
    assert_int_equal(find_average(r, "a")->cpu_bytes, 1510); /* memory is by time: once */
    assert_int_equal(find_average(r, "a")->self_cpu_bytes, 1510 - 1010 - 1500);
    assert_int_equal(find_average(r, "b")->cpu_bytes, 1010);
    assert_int_equal(find_average(r, "b")->self_cpu_bytes, 1010);
    assert_int_equal(find_average(r, "c")->self_cpu_bytes, 1500);
    assert_false(find_average(r, "a")->has_parent);
    assert_true(find_average(r, "c")->has_parent);
    sonde_averages_free(r);
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    assert_int_equal(sonde_summary_thread(summary, 0)->busy_ns, 140);
    assert_int_equal(ledger_count(summary, "ends_without_begin"), 1);
    assert_int_equal(ledger_count(summary, "unfinished_ranges"), 0);
    sonde_summary_free(summary);
    sonde_trace_close(trace);
}

/* Another thread ends a range, and its chunk is read first. */
static void ends_by_key(void **state)
{
    struct synth         *s = synth_new(scratch_path("keys"), NULL);
    uint32_t              loop = synth_thread(s, "loop", 0), t = synth_thread(s, "main", 0);
    uint32_t              a = synth_string(s, "a"), b = synth_string(s, "b");
    struct sonde_summary *summary;
    struct sonde_tree    *tree;

    (void)state;
    synth_mark(s, loop, 10, a, 0); /* its chunk is the first */
    for (unsigned i = 0; i < 3; i++) {
        synth_begin(s, t, 100 + i * 100, a, 0);
        synth_attr(s, t, SND_ATTR_KEY, 7 + i);
        synth_end_key(s, loop, 150 + i * 100, 7 + i);
        synth_begin(s, t, 160 + i * 100, b, 0); /* after it, not in it */
        synth_end(s, t, 170 + i * 100);
    }
    synth_end_key(s, loop, 900, 4711);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("keys"));
    struct sonde_averages *r = average(trace, 0);
    check_row(r, "a", 3, 150, 0); /* asynchronous: no time of its own */
    check_row(r, "b", 3, 30, 30);
    assert_true(find_average(r, "a")->is_async);
    assert_false(find_average(r, "b")->is_async);
    sonde_averages_free(r);
    assert_int_equal(trace->walks, 1); /* that a range ends by a key is known before the walk */
    sonde_trace_close(trace);
    trace = scratch_open(scratch_path("keys")); /* each model meets it for itself */
    assert_int_equal(sonde_tree_new(trace, false, &tree, NULL), SONDE_OK);
    assert_int_equal(sonde_tree_count(tree), 3);
    sonde_tree_free(tree);
    sonde_trace_close(trace);
    trace = scratch_open(scratch_path("keys"));
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    assert_int_equal(sonde_summary_totals(summary)->ranges, 6);
    assert_int_equal(sonde_summary_totals(summary)->marks, 1);
    assert_int_equal(sonde_summary_thread(summary, 1)->busy_ns, 30);
    assert_int_equal(sonde_summary_thread(summary, 1)->waiting_ns, 150);
    assert_int_equal(ledger_count(summary, "ends_without_begin"), 1);
    assert_int_equal(ledger_count(summary, "unfinished_ranges"), 0);
    sonde_summary_free(summary);
    sonde_trace_close(trace);
}

/* A span stands for a begin and an end, also across another's. */
static void spans_are_ranges(void **state)
{
    struct synth *s = synth_new(scratch_path("spans"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      a = synth_string(s, "a"), b = synth_string(s, "b");

    (void)state;
    synth_span(s, t, 100, a, 0); /* something was recorded in it: an end follows */
    synth_span(s, t, 110, b, 30);
    synth_span(s, u, 120, b, 5);
    synth_end(s, t, 200);
    synth_span(s, t, 300, a, 0); /* never ended */
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("spans"));
    struct sonde_averages *r = average(trace, 0);
    check_row(r, "a", 2, 100, 70);
    check_row(r, "b", 2, 35, 35);
    assert_int_equal(sonde_averages_totals(r)->events, 7);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

static void steps_are_one_row(void **state)
{
    struct synth *s = synth_new(scratch_path("steps"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%u", i);
        synth_begin(s, t, i * 100, synth_string(s, name), 0);
        synth_end(s, t, i * 100 + 50);
    }
    synth_begin(s, t, 1000, synth_string(s, "ProfilerStep#x"), 0); /* not one of them */
    synth_end(s, t, 1001);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("steps"));
    struct sonde_averages *r = average(trace, 0);
    assert_int_equal(sonde_averages_count(r), 2);
    check_row(r, "ProfilerStep*", 5, 250, 250);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

/* Deeper than any program: the rest is counted, not stacked. */
static void depth_is_bounded(void **state)
{
    struct synth_options options = { .chunk_bytes = 1 << 20 };
    struct synth        *s = synth_new(scratch_path("deep"), &options);
    uint32_t t = synth_thread(s, "main", 0), a = synth_string(s, "a"), b = synth_string(s, "b");
    struct sonde_summary *summary;

    (void)state;
    for (uint64_t i = 0; i < SND_DEPTH_MAX + 100; i++)
        synth_begin(s, t, i, i & 1 ? a : b, 0);
    synth_span(s, t, 900000, a, 10); /* one that has nothing inside, too */
    for (uint64_t i = 0; i < SND_DEPTH_MAX + 100; i++)
        synth_end(s, t, 1000000 + i);
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("deep"));
    struct sonde_averages *r = average(trace, 0);
    assert_int_equal(sonde_averages_totals(r)->ranges, SND_DEPTH_MAX);
    sonde_averages_free(r);
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    assert_int_equal(ledger_count(summary, "too_deep"), 101);
    assert_int_equal(ledger_count(summary, "unfinished_ranges"), 0);
    assert_int_equal(ledger_count(summary, "ends_without_begin"), 0);
    sonde_summary_free(summary);
    sonde_trace_close(trace);
}

/* Rows by value, and as objects that stay. */
static void rows_by_value_and_as_objects(void **state)
{
    struct synth *s = synth_new(scratch_path("get"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        synth_begin(s, t, 100 * i, synth_string(s, i == 1 ? "b" : "a"), 0);
        synth_attr(s, t, SND_ATTR_FLOPS, 5);
        synth_alloc(s, t, 100 * i + 1, CPU, i + 1, 64);
        synth_end(s, t, 100 * i + 50);
    }
    synth_close(s, true);
    struct sonde_trace         *trace = scratch_open(scratch_path("get"));
    struct sonde_averages      *r = average(trace, SONDE_GROUP_THREAD);
    const struct sonde_average *a = sonde_averages_row(r, 0), *b = sonde_averages_row(r, 1);
    struct sonde_average        copy = sonde_averages_get(r, 0);
    assert_true(text_is(a->name, "a") && text_is(b->name, "b"));
    assert_ptr_equal(sonde_averages_row(r, 0), a);
    assert_ptr_equal(copy.name.bytes, a->name.bytes);
    assert_int_equal(copy.count, 2);
    assert_int_equal(a->count, 2);
    assert_int_equal(copy.thread, 0);
    assert_int_equal(copy.cpu_bytes, 128);
    assert_true(copy.flops == 10 && a->flops == 10 && b->flops == 5);
    assert_int_equal(sonde_averages_get(r, 2).count, 0); /* there is none */
    assert_null(sonde_averages_row(r, 2));
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

/* Whatever a range has of what few have, and if it is 1: it is added. */
static void each_of_what_few_have_is_kept(void **state)
{
    static const struct snd_average_more mores[] = {
        { .cpu_bytes = 1 },    { .self_cpu_bytes = 1 },
        { .device_bytes = 1 }, { .self_device_bytes = 1 },
        { .device_ns = 1 },    { .self_device_ns = 1 },
        { .flops = 1 },        { .macs = 1 },
        { .moved_bytes = 1 },
    };
    static const struct snd_average_more nothing;

    (void)state;
    for (size_t i = 0; i < sizeof mores / sizeof mores[0]; i++) {
        struct sonde_averages   a = { 0 };
        struct snd_average_row  row = { 0 };
        struct snd_average_more twice;
        assert_true(snd_average_add_more(&a, &row, &nothing));
        assert_int_equal(a.more_count, 0); /* most rows have none, and take no room for it */
        assert_true(snd_average_add_more(&a, &row, &mores[i]));
        assert_true(snd_average_add_more(&a, &row, &mores[i]));
        assert_int_equal(a.more_count, 1);
        assert_int_equal(row.more, 1);
        twice = (struct snd_average_more){
            2 * mores[i].cpu_bytes,    2 * mores[i].self_cpu_bytes,
            2 * mores[i].device_bytes, 2 * mores[i].self_device_bytes,
            2 * mores[i].device_ns,    2 * mores[i].self_device_ns,
            2 * mores[i].flops,        2 * mores[i].macs,
            2 * mores[i].moved_bytes,
        };
        assert_memory_equal(&a.mores[0], &twice, sizeof twice);
        free(a.mores);
    }
}

/* Of works that begin and end together, on streams of their own, the first has the first row. */
static void works_that_run_together_are_in_order(void **state)
{
    struct synth *s = synth_new(scratch_path("together"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), works[2];

    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        works[i] = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, i ? "b" : "a"),
                                                            .kind = SND_WORK_KERNEL });
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t queue = synth_queue(s,
                                     &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 7 + i, 0 });
        synth_device(s, t, 100, works[i % 2], queue, 50, 0, 0);
    }
    synth_close(s, true);
    struct sonde_trace    *trace = scratch_open(scratch_path("together"));
    struct sonde_averages *r = average(trace, 0);
    assert_int_equal(sonde_averages_count(r), 2);
    assert_true(text_is(sonde_averages_row(r, 0)->name, "a"));
    assert_true(text_is(sonde_averages_row(r, 1)->name, "b"));
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_by_value_and_as_objects),
        cmocka_unit_test(self_and_total),
        cmocka_unit_test(keys_are_given_once),
        cmocka_unit_test(only_children_of_the_same_name_fold),
        cmocka_unit_test(ranges_of_a_program_do_not_fold),
        cmocka_unit_test(gaps_close_what_they_cover),
        cmocka_unit_test(memory_is_shared_with_named_ranges),
        cmocka_unit_test(memory_is_net_and_by_thread),
        cmocka_unit_test(frees_without_a_size),
        cmocka_unit_test(groups_divide),
        cmocka_unit_test(ends_out_of_order),
        cmocka_unit_test(ends_by_key),
        cmocka_unit_test(spans_are_ranges),
        cmocka_unit_test(steps_are_one_row),
        cmocka_unit_test(works_that_run_together_are_in_order),
        cmocka_unit_test(each_of_what_few_have_is_kept),
        cmocka_unit_test(depth_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
