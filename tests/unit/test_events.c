/* SPDX-License-Identifier: Apache-2.0 */
/* The list of events: torch's order, folding, families, and its table. */
#include "format/layout.h"
#include "model/events/event_rows.h"
#include "model/torch_stacks.h"
#include "scratch.h"
#include "sonde/export.h"

#define CPU SND_DEVICE(0, 0xffff)

static struct sonde_events *list(struct sonde_trace *trace)
{
    struct sonde_events *events;

    assert_int_equal(sonde_events_new(trace, NULL, &events, NULL), SONDE_OK);
    return events;
}

static bool name_is(const struct sonde_events *events, size_t row, const char *name)
{
    return text_is(sonde_events_text(events, sonde_events_columns(events)->name[row]), name);
}

/* Of two that begin together the longer one comes first; threads are merged by time. */
static void in_torchs_order(void **state)
{
    struct synth *s = synth_new(scratch_path("order"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);

    (void)state;
    synth_begin(s, t, 100, synth_string(s, "outer"), 0);
    synth_begin(s, t, 100, synth_string(s, "inner"), 0);
    synth_end(s, t, 150);
    synth_end(s, t, 200);
    synth_begin(s, u, 100, synth_string(s, "longest"), 0);
    synth_end(s, u, 300);
    synth_begin(s, t, 250, synth_string(s, "last"), 0);
    synth_end(s, t, 260);
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("order"));
    struct sonde_events               *events = list(trace);
    const struct sonde_events_columns *c = sonde_events_columns(events);
    assert_int_equal(c->count, 4);
    assert_true(name_is(events, 0, "longest"));
    assert_true(name_is(events, 1, "outer"));
    assert_true(name_is(events, 2, "inner"));
    assert_true(name_is(events, 3, "last"));
    assert_int_equal(c->parent[2], 1);
    assert_int_equal(c->parent[0], -1);
    assert_int_equal(c->self_ns[1], 50);
    assert_int_equal(c->thread[0], 1);
    assert_int_equal(c->start_ns[2], 100);
    assert_int_equal(c->end_ns[2], 150);
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* What torch's lists leave out, fold and rename; its families are by time. */
static void torchs_rules(void **state)
{
    struct synth *s = synth_new(scratch_path("rules"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      add = synth_string(s, "aten::add");

    (void)state;
    synth_meta(s, "torch.thread 4242", "17");
    synth_begin(s, t, 0, synth_string(s, "ProfilerStep#3"), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 8);
    synth_begin(s, t, 10, add, 0);
    synth_attr(s, t, SND_ATTR_SEQUENCE, 5);
    synth_attr(s, t, SND_ATTR_SCOPE, 1);
    synth_begin(s, t, 20, add, 0); /* folds */
    synth_attr(s, t, SND_ATTR_SCOPE, 1);
    synth_begin(s, t, 30, synth_string(s, "aten::is_leaf"), 0); /* left out */
    synth_alloc(s, t, 31, CPU, 0x1, 10);
    synth_end(s, t, 40);
    synth_begin(s, t, 40, synth_string(s, "aten::empty"), 0);
    synth_end(s, t, 45);
    synth_end(s, t, 50);
    synth_end(s, t, 60);
    synth_begin(s, t, 70, synth_string(s, "autograd::engine::evaluate_function: AddBackward0"), 0);
    synth_begin(s, t, 71, synth_string(s, "AddBackward0"), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 2);
    synth_attr(s, t, SND_ATTR_SEQUENCE, 5);
    synth_attr(s, t, SND_ATTR_FWD_THREAD, 17);
    synth_end(s, t, 75);
    synth_end(s, t, 80);
    synth_end(s, t, 100);
    synth_free(s, t, 110, CPU, 0x1, 0);
    synth_free(s, t, 120, CPU, 0x2, 0); /* unknown */
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("rules"));
    struct sonde_events               *events = list(trace);
    const struct sonde_events_columns *c = sonde_events_columns(events);
    assert_int_equal(c->count, 6);
    assert_true(name_is(events, 0, "ProfilerStep*"));
    assert_true(text_is(sonde_events_text(events, c->trace_name[0]), "ProfilerStep#3"));
    assert_int_equal(c->flags[0], SONDE_EVENT_IS_USER);
    assert_int_equal(c->scope[0], SONDE_SCOPE_USER);
    assert_true(name_is(events, 1, "aten::add"));
    assert_int_equal(c->self_ns[1], 50 - 5);
    assert_int_equal(c->self_cpu_bytes[1], 10);
    assert_int_equal(c->sequence[1], 5);
    assert_int_equal(c->fwd_thread[1], 0);
    assert_int_equal(c->torch_thread[1], 17);
    assert_true(name_is(events, 2, "aten::empty"));
    assert_int_equal(c->parent[2], 1); /* the folded one's child is the other's */
    assert_true(name_is(events, 3, "autograd::engine::evaluate_function: AddBackward0"));
    assert_int_equal(c->sequence[3], 5); /* borrowed from the function that it runs */
    assert_int_equal(c->fwd_thread[3], 17);
    assert_int_equal(c->scope[4], SONDE_SCOPE_BACKWARD);
    assert_true(name_is(events, 5, "[memory]"));
    assert_int_equal(c->flags[5], SONDE_EVENT_IS_MEMORY);
    assert_int_equal(c->cpu_bytes[5], -10);
    assert_int_equal(c->trace_name[5], 0);
    assert_true(text_is(sonde_events_text(events, 0), ""));
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* What folds gives the other what it lacks, and takes nothing from it. */
static void folded_work(void **state)
{
    struct synth *s = synth_new(scratch_path("folded"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), mm = synth_string(s, "aten::mm");

    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        synth_begin(s, t, 100 * i, mm, i ? 0 : synth_shapes(s, "3,4;4,5"));
        synth_attr(s, t, SND_ATTR_SCOPE, 1);
        synth_begin(s, t, 100 * i + 10, mm, synth_shapes(s, "2,2;2,2"));
        synth_attr(s, t, SND_ATTR_SCOPE, 1);
        synth_end(s, t, 100 * i + 20);
        synth_end(s, t, 100 * i + 30);
    }
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("folded"));
    struct sonde_events               *events = list(trace);
    const struct sonde_events_columns *c = sonde_events_columns(events);

    assert_int_equal(c->count, 2);
    assert_true(c->flops[0] == 2 * 3 * 4 * 5);
    assert_true(c->flops[1] == 2 * 2 * 2 * 2);
    assert_int_equal(c->self_ns[1], 30);
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* What a range that waits for others held counts among its parent's: the last one is not the only one. */
static void only_children_fold(void **state)
{
    (void)state;
    for (int others = 0; others < 2; others++) {
        struct synth          *s = synth_new(scratch_path("children"), NULL);
        uint32_t               t = synth_thread(s, "main", 0), add = synth_string(s, "aten::add");
        struct sonde_averages *averages;
        synth_begin(s, t, 0, add, 0);
        synth_attr(s, t, SND_ATTR_SCOPE, 1);
        if (others) {
            synth_begin(s, t, 10, synth_string(s, "first"), 0);
            synth_end(s, t, 20);
            synth_begin(s, t, 30, synth_string(s, "waits"), 0);
            synth_attr(s, t, SND_ATTR_ASYNC, 1);
            synth_begin(s, t, 40, synth_string(s, "inside"), 0);
            synth_end(s, t, 50);
            synth_end(s, t, 60);
        }
        synth_begin(s, t, 70, add, 0);
        synth_attr(s, t, SND_ATTR_SCOPE, 1);
        synth_end(s, t, 80);
        synth_end(s, t, 100);
        synth_close(s, true);
        struct sonde_trace  *trace = scratch_open(scratch_path("children"));
        struct sonde_events *events = list(trace);
        assert_int_equal(sonde_events_columns(events)->count, others ? 5 : 1);
        assert_int_equal(sonde_averages_new(trace, NULL, &averages, NULL), SONDE_OK);
        assert_int_equal(find_average(averages, "aten::add")->count, others ? 2 : 1);
        sonde_averages_free(averages);
        sonde_events_free(events);
        sonde_trace_close(trace);
    }
}

/* A range that ends around an open one is not its parent; one that another thread ends has none. */
static void ends_out_of_order(void **state)
{
    struct synth *s = synth_new(scratch_path("ends"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);

    (void)state;
    synth_begin(s, t, 0, synth_string(s, "a"), 0);
    synth_begin(s, t, 10, synth_string(s, "b"), 0);
    synth_begin(s, t, 20, synth_string(s, "c"), 0);
    synth_end(s, t, 30);
    synth_end_at(s, t, 40, 1); /* a */
    synth_begin(s, t, 45, synth_string(s, "d"), 0);
    synth_end(s, t, 46);
    synth_end(s, t, 50); /* b */
    synth_begin(s, t, 100, synth_string(s, "async"), 0);
    synth_attr(s, t, SND_ATTR_KEY, 77);
    synth_begin(s, t, 110, synth_string(s, "e"), 0);
    synth_end_key(s, u, 120, 77);
    synth_end(s, t, 130);
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("ends"));
    struct sonde_events               *events = list(trace);
    const struct sonde_events_columns *c = sonde_events_columns(events);
    assert_int_equal(c->count, 6);
    assert_true(name_is(events, 1, "b"));
    assert_int_equal(c->parent[1], -1);
    assert_int_equal(c->self_ns[0], 40); /* a */
    assert_int_equal(c->parent[2], 1);   /* c lies in b */
    assert_int_equal(c->parent[3], 1);   /* so does d */
    assert_true(name_is(events, 4, "async"));
    assert_int_equal(c->flags[4], SONDE_EVENT_IS_ASYNC);
    assert_int_equal(c->self_ns[4], 0);
    assert_int_equal(c->end_ns[4] - c->start_ns[4], 20);
    assert_int_equal(c->parent[5], -1); /* e */
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* A backward range was called from where its forward operator was. */
static void stacks_of_backward_ranges(void **state)
{
    struct synth       *s = synth_new(scratch_path("stacks"), NULL);
    uint32_t            t = synth_thread(s, "main", 0), u = synth_thread(s, "backward", 0);
    uint32_t            file = synth_string(s, "net.py"), forward = synth_string(s, "forward");
    uint32_t            stack = synth_stack(s, 0, synth_frame(s, forward, file, 7));
    uint32_t            inner = synth_stack(s, stack, synth_frame(s, forward, file, 8));
    struct sonde_buffer text = { 0 };

    (void)state;
    synth_meta(s, "torch.thread 4242", "1");
    synth_begin(s, t, 0, synth_string(s, "aten::linear"), 0);
    synth_attr(s, t, SND_ATTR_SEQUENCE, 4);
    synth_attr(s, t, SND_ATTR_STACK, stack);
    synth_begin(s, t, 1, synth_string(s, "aten::addmm"), 0);
    synth_attr(s, t, SND_ATTR_SEQUENCE, 4);
    synth_attr(s, t, SND_ATTR_STACK, inner); /* the outermost one's counts */
    synth_begin(s, t, 1, synth_string(s, "cudaLaunchKernel"), 0);
    synth_attr(s, t, SND_ATTR_API, 1);
    synth_end(s, t, 2);
    synth_end(s, t, 2);
    synth_end(s, t, 3000);
    synth_begin(s, u, 5000, synth_string(s, "AddmmBackward0"), 0);
    synth_attr(s, u, SND_ATTR_SCOPE, 2);
    synth_attr(s, u, SND_ATTR_SEQUENCE, 4);
    synth_attr(s, u, SND_ATTR_FWD_THREAD, 1);
    synth_begin(s, u, 6000, synth_string(s, "aten::mm"), 0);
    synth_begin(s, u, 7000, synth_string(s, "cuLaunchKernel"), 0);
    synth_attr(s, u, SND_ATTR_API, 2);
    synth_end(s, u, 9000);
    synth_end(s, u, 9000);
    synth_end(s, u, 10000);
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("stacks"));
    struct sonde_events               *events = list(trace);
    const struct sonde_events_columns *c = sonde_events_columns(events);
    assert_int_equal(c->stack[0], stack);
    assert_int_equal(c->stack[1], inner);
    assert_int_equal(c->stack[2], inner); /* a call of CUDA: its operator's */
    assert_int_equal(c->stack[3], stack);
    assert_int_equal(c->stack[4], stack);
    assert_int_equal(c->stack[5], stack); /* the forward operator's as well */
    struct sonde_sink sink = sonde_sink_buffer(&text);
    assert_int_equal(sonde_events_stacks(trace, events, "self_cpu_time_total", &sink, NULL),
                     SONDE_OK);
    assert_string_equal(text.bytes, "net.py(7):_forward 2\nnet.py(7):_forward 2\n"
                                    "net.py(7):_forward 1\nnet.py(7):_forward 2\n");
    assert_int_equal(sonde_events_stacks(trace, events, "time", &sink, NULL), SONDE_E_ARGUMENT);
    sonde_buffer_release(&text);
    sonde_events_free(events);

    struct sonde_averages_options options = { .struct_size = sizeof options,
                                              .groups = SONDE_GROUP_STACK,
                                              .stack_depth = 1 };
    struct sonde_averages        *r;
    assert_int_equal(sonde_averages_new(trace, &options, &r, NULL), SONDE_OK);
    assert_true(text_is(find_average(r, "aten::mm")->stack, "net.py(7): forward"));
    assert_true(text_is(find_average(r, "cuLaunchKernel")->stack, "net.py(7): forward"));
    assert_true(text_is(find_average(r, "cudaLaunchKernel")->stack, "net.py(8): forward"));
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

/* torch's table of events, and of averages with its own sense of top level. */
static void tables(void **state)
{
    struct synth               *s = synth_new(scratch_path("table"), NULL);
    uint32_t                    t = synth_thread(s, "main", 0);
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_averages      *averages;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);

    (void)state;
    synth_begin(s, t, 0, synth_string(s, "a"), synth_shapes(s, "2,3"));
    synth_begin(s, t, 1000, synth_string(s, "b"), 0);
    synth_end(s, t, 3000);
    synth_end(s, t, 4000);
    synth_begin(s, t, 5000, synth_string(s, "b"), 0);
    synth_end(s, t, 6000);
    synth_close(s, true);
    struct sonde_trace  *trace = scratch_open(scratch_path("table"));
    struct sonde_events *events = list(trace);
    options.sort = "cpu_time_total";
    assert_int_equal(sonde_events_table(trace, events, &options, 0, &sink, NULL), SONDE_OK);
    assert_non_null(
        strstr(text.bytes, "   a        40.00%       2.000us        80.00%       4.000us"));
    assert_non_null(strstr(text.bytes, "[[2, 3]]"));
    assert_non_null(strstr(text.bytes, "Self CPU time total: 5.000us"));
    assert_null(strstr(text.bytes, "CPU Mem"));
    text.length = 0;
    assert_int_equal(sonde_averages_new(trace, NULL, &averages, NULL), SONDE_OK);
    options.top_level = true; /* the first b lies in a: torch does not show its row */
    assert_int_equal(sonde_averages_table(trace, averages, &options, SONDE_TABLE_MEMORY, &sink,
                                          NULL),
                     SONDE_OK);
    assert_non_null(strstr(text.bytes, "\n    a  "));
    assert_null(strstr(text.bytes, "\n    b  "));
    assert_non_null(strstr(text.bytes, "Self CPU Mem"));
    assert_non_null(strstr(text.bytes, "This report only display top-level ops statistics"));
    sonde_averages_free(averages);
    sonde_events_free(events);
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

/* The name in the first row of a table that is sorted by `key`. */
static void check_first(const struct sonde_trace *trace, const struct sonde_events *events,
                        const char *key, const char *name)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    char                        first[64] = "";

    options.sort = key;
    options.rows = 1;
    assert_int_equal(sonde_events_table(trace, events, &options,
                                        SONDE_TABLE_MEMORY | SONDE_TABLE_FLOPS, &sink, NULL),
                     SONDE_OK);
    assert_non_null(strstr(text.bytes, "Self CUDA time total: 153.000us"));
    const char *at = text.bytes;
    for (int line = 0; at && line < 3; line++)
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
    assert_non_null(at);
    sscanf(at, "%63s", first);
    if (strcmp(first, name) != 0)
        fail_msg("first by %s: %s, not %s:\n%s", key, first, name, text.bytes);
    sonde_buffer_release(&text);
}

/* One row is first in each column of the table: no column stands for another, and none is empty. */
static void every_column_of_the_table(void **state)
{
    static const struct {
        const char *key, *first;
    } columns[] = {
        { "cpu_time_total", "outer" },
        { "self_cpu_time_total", "busy" },
        { "cpu_memory_usage", "outer" },
        { "self_cpu_memory_usage", "taker" },
        { "device_memory_usage", "outer" },
        { "self_device_memory_usage", "taker" },
        { "device_time_total", "outer" },
        { "self_device_time_total", "launcher" },
        { "flops", "counted" },
        { "macs", "multiplied" },
        { "moved_bytes", "moved" },
        { "is_user_annotation", "annotation" },
        { "scope", "annotation" },
        { "is_async", "awaited" },
    };
    struct synth *s = synth_new(scratch_path("columns"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      file = synth_string(s, "net.py");
    uint32_t      queue = synth_queue(s, &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 7, 0 });
    uint32_t kernel = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "kernel"),
                                                               .kind = SND_WORK_KERNEL });
    static const struct {
        const char *name;
        uint8_t     attribute;
        uint64_t    value;
    } single[] = {
        { "counted", SND_ATTR_FLOPS, 90000000 }, { "multiplied", SND_ATTR_MACS, 5000000 },
        { "moved", SND_ATTR_BYTES, 7000000 },    { "annotation", SND_ATTR_SCOPE, 8 },
        { "awaited", SND_ATTR_ASYNC, 1 },
    };

    (void)state;
    synth_begin(s, t, 0, synth_string(s, "outer"), 0);
    synth_begin(s, t, 100, synth_string(s, "taker"), 0);
    synth_alloc(s, t, 200, CPU, 0x10, 1000);
    synth_alloc(s, t, 300, SND_DEVICE(1, 0), 0x20, 500);
    synth_end(s, t, 1000);
    synth_alloc(s, t, 1100, CPU, 0x30, 1);
    synth_alloc(s, t, 1200, SND_DEVICE(1, 0), 0x40, 1);
    synth_begin(s, t, 2000, synth_string(s, "launcher"), 0);
    for (uint64_t i = 0; i < 3; i++) { /* the launcher has two of them, and then ends */
        synth_begin(s, t, 2100 + 300 * i, synth_string(s, "cudaLaunchKernel"), 0);
        synth_attr(s, t, SND_ATTR_API, 1 + i);
        synth_end(s, t, 2200 + 300 * i);
        if (i == 1)
            synth_end(s, t, 2600);
    }
    synth_begin(s, t, 4000, synth_string(s, "busy"), 0);
    synth_end(s, t, 18000);
    synth_end(s, t, 20000);
    for (uint64_t i = 0; i < 3; i++)
        synth_device(s, t, 5000 + 100000 * i, kernel, queue, 50000 + 1000 * i, (uint32_t)(1 + i),
                     0);
    for (uint64_t i = 0; i < sizeof single / sizeof single[0]; i++) {
        synth_begin(s, t, 400000 + 100 * i, synth_string(s, single[i].name), 0);
        synth_attr(s, t, single[i].attribute, single[i].value);
        synth_end(s, t, 400050 + 100 * i);
    }
    synth_begin(s, t, 500000, synth_string(s, "shaped"), synth_shapes(s, "2,3"));
    synth_end(s, t, 500010);
    synth_begin(s, t, 500100, synth_string(s, "called"), 0);
    synth_attr(s, t, SND_ATTR_STACK, synth_stack(s, 0, synth_frame(s, file, file, 7)));
    synth_end(s, t, 500110);
    synth_begin(s, t, 500200, synth_string(s, "overloaded"), 0);
    synth_attr(s, t, SND_ATTR_OVERLOAD, synth_string(s, "Tensor"));
    synth_end(s, t, 500210);
    synth_close(s, true);
    struct sonde_trace  *trace = scratch_open(scratch_path("columns"));
    struct sonde_events *events = list(trace);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        check_first(trace, events, columns[i].key, columns[i].first);
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    assert_int_equal(sonde_events_table(trace, events, NULL, 0, &sink, NULL), SONDE_OK);
    assert_non_null(strstr(text.bytes, "  [[2, 3]]  "));
    assert_non_null(strstr(text.bytes, "  net.py(7): net.py  "));
    assert_non_null(strstr(text.bytes, "  Tensor  "));
    sonde_buffer_release(&text);
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* Calls come when they return; they have each other as parents, and take nothing from a range. */
static void python_functions(void **state)
{
    struct synth *s = synth_new(scratch_path("functions"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      file = synth_string(s, "/lib/prog.py");
    uint32_t      f = synth_frame_in(s, synth_string(s, "f"), 3, file, 3, false);
    uint32_t      g = synth_frame_in(s, synth_string(s, "nn.Module: Linear_12"), 0, 0, 0, false);

    (void)state;
    synth_meta(s, "python.prefixes", "[\"/lib/\"]");
    synth_begin(s, t, 110, synth_string(s, "range"), 0); /* begins in a call, and outlives it */
    synth_function(s, t, 150, g, 0, 30, 2, 1);
    synth_function(s, t, 200, f, 0, 100, 1, 0);
    synth_end(s, t, 300);
    synth_function(s, t, 400, f, u, 350, 3, 9); /* of another thread, in one that is not there */
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("functions"));
    struct sonde_events               *events = list(trace);
    const struct sonde_events_columns *c = sonde_events_columns(events);
    assert_int_equal(c->count, 4);
    assert_true(name_is(events, 0, "prog.py(3): f"));
    assert_int_equal(c->thread[0], 1);
    assert_int_equal(c->start_ns[0], 50);
    assert_int_equal(c->parent[0], -1);
    assert_true(name_is(events, 1, "prog.py(3): f"));
    assert_int_equal(c->python_id[1], 1);
    assert_int_equal(c->self_ns[1], 70);
    assert_true(name_is(events, 2, "range"));
    assert_int_equal(c->self_ns[2], 190);
    assert_int_equal(c->parent[2], -1);
    assert_int_equal(c->flags[2] & SONDE_EVENT_IS_FUNCTION, 0);
    assert_true(name_is(events, 3, "nn.Module: Linear_12"));
    assert_int_equal(c->python_module[3], 12);
    assert_int_equal(c->python_parent[3], 1);
    assert_int_equal(c->parent[3], 1);
    assert_int_equal(c->flags[3], SONDE_EVENT_IS_FUNCTION);
    uint32_t texts = (uint32_t)sonde_events_text_count(events); /* functions' are the last */
    assert_int_equal(texts - 1, c->name[0] > c->name[3] ? c->name[0] : c->name[3]);
    assert_true(sonde_events_text(events, texts - 1).length > 0);
    assert_true(text_is(sonde_events_text(events, texts), ""));
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* torch numbers the modules of a class: what follows the name, if it can be such a number. */
static void numbers_of_modules(void **state)
{
    static const struct {
        const char *name;
        int32_t     number;
    } cases[] = {
        { "nn.Module: Linear_12", 12 },
        { "nn.Module: Linear_0", 0 },
        { "nn.Module: Conv2d_3", 3 },
        { "nn.Module: Linear", -1 },
        { "nn.Module: Linear_1a", -1 },
        { "nn.Module: L_999999999", 999999999 },
        { "nn.Module: L_1000000000", -1 },
        { "nn.Module: ", -1 },
        { "nn.Module: 7", 7 },
        { "nn.Modules: L_1", -1 },
        { "f_12", -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (snd_module_number((struct sonde_text){ cases[i].name, strlen(cases[i].name) }) !=
            cases[i].number)
            fail_msg("%s", cases[i].name);
}

#define CPU SND_DEVICE(0, 0xffff)
#define CUDA SND_DEVICE(1, 0)

static int64_t row_named(const struct sonde_events *events, const char *name)
{
    const struct sonde_events_columns *c = sonde_events_columns(events);

    for (uint32_t i = 0; i < c->count; i++)
        if (name_is(events, i, name))
            return i;
    fail_msg("no row %s", name);
    return -1;
}

static void check_memory(const struct sonde_events *events, const char *name, int64_t whole,
                         int64_t self, int64_t device, int64_t self_device)
{
    const struct sonde_events_columns *c = sonde_events_columns(events);
    int64_t                            row = row_named(events, name);

    assert_int_equal(c->cpu_bytes[row], whole);
    assert_int_equal(c->self_cpu_bytes[row], self);
    assert_int_equal(c->device_bytes[row], device);
    assert_int_equal(c->self_device_bytes[row], self_device);
}

/* What a function's outermost operators have is its own and its callers'; what lies in no operator is its self memory. */
static void memory_of_functions(void **state)
{
    struct synth *s = synth_new(scratch_path("function-memory"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      file = synth_string(s, "/lib/prog.py");
    uint32_t      outer = synth_frame_in(s, synth_string(s, "outer"), 3, file, 3, false);
    uint32_t      inner = synth_frame_in(s, synth_string(s, "inner"), 9, file, 9, false);

    (void)state;
    synth_meta(s, "python.prefixes", "[\"/lib/\"]");
    synth_begin(s, t, 250, synth_string(s, "aten::a"), 0);
    synth_alloc(s, t, 260, CPU, 0x1000, 64);
    synth_begin(s, t, 300, synth_string(s, "aten::b"), 0);
    synth_alloc(s, t, 310, CPU, 0x2000, 32);
    synth_alloc(s, t, 320, CUDA, 0x9000, 5);
    synth_end(s, t, 350);
    synth_end(s, t, 400);
    synth_alloc(s, t, 450, CPU, 0x3000, 16);
    synth_alloc(s, t, 460, CUDA, 0xa000, 7);
    synth_function(s, t, 600, inner, 0, 400, 2, 1);
    synth_begin(s, t, 601, synth_string(s, "aten::c"), 0);
    synth_alloc(s, t, 602, CPU, 0x4000, 2);
    synth_end(s, t, 650);
    synth_alloc(s, u, 700, CPU, 0x5000, 128); /* of another thread, which runs no function */
    synth_function(s, t, 1000, outer, 0, 900, 1, 0);
    synth_alloc(s, t, 1100, CPU, 0x6000, 4);
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("function-memory"));
    struct sonde_events               *events = list(trace);
    const struct sonde_events_columns *c = sonde_events_columns(events);
    check_memory(events, "aten::b", 32, 32, 5, 5);
    check_memory(events, "aten::a", 96, 64, 5, 0);
    check_memory(events, "aten::c", 2, 2, 0, 0);
    check_memory(events, "prog.py(9): inner", 96 + 16, 16, 5 + 7, 7);
    check_memory(events, "prog.py(3): outer", 96 + 16 + 2, 0, 5 + 7, 0);
    int64_t left =
        0; /* rows of memory that no function claims: the other thread's, and what came after */
    for (uint32_t i = 0; i < c->count; i++)
        left += c->flags[i] & SONDE_EVENT_IS_MEMORY ? c->cpu_bytes[i] : 0;
    assert_int_equal(left, 128 + 4);
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------ columns on demand */

/* clang-format off */
#define EVENT_COLUMNS(X)                                                                     \
    X(name) X(trace_name) X(overload) X(process) X(thread) X(torch_thread) X(start_ns)       \
    X(end_ns) X(self_ns) X(parent) X(shapes) X(strides) X(arguments) X(keywords) X(stack)    \
    X(module) X(sequence) X(fwd_thread) X(python_id) X(python_parent) X(python_module)       \
    X(scope) X(flags) X(flops) X(macs) X(moved_bytes) X(cpu_bytes) X(self_cpu_bytes)         \
    X(device_bytes) X(self_device_bytes)
/* clang-format on */

static void assert_equal_columns(const struct sonde_events *x, const struct sonde_events *y)
{
    const struct sonde_events_columns *a = sonde_events_columns(x), *b = sonde_events_columns(y);

    assert_int_equal(a->count, b->count);
#define COLUMN(column) assert_memory_equal(a->column, b->column, a->count * sizeof *a->column);
    EVENT_COLUMNS(COLUMN)
#undef COLUMN
}

/* A column is there once it was asked for, and is the same as when all are made at once. */
static void columns_on_demand(void **state)
{
    const struct sonde_events_options options = { .struct_size = sizeof options,
                                                  .on_demand = true };
    struct synth                     *s = synth_new(scratch_path("demand"), NULL);
    uint32_t                          t = synth_thread(s, "main", 0);
    struct sonde_events              *lazy;

    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        synth_begin(s, t, 100 * i, synth_string(s, i % 2 ? "a" : "b"), synth_shapes(s, "2,3"));
        synth_attr(s, t, SND_ATTR_FLOPS, i);
        synth_alloc(s, t, 100 * i + 10, CPU, i + 1, 64);
        synth_end(s, t, 100 * i + 50);
    }
    synth_close(s, true);
    struct sonde_trace  *trace = scratch_open(scratch_path("demand"));
    struct sonde_events *all = list(trace);
    assert_int_equal(sonde_events_new(trace, &options, &lazy, NULL), SONDE_OK);
    const struct sonde_events_columns *c = sonde_events_columns(lazy);
    assert_int_equal(c->count, 20);
    assert_null(c->name);
    assert_null(c->flops);
    assert_int_equal(sonde_events_fill(lazy, "flops", NULL), SONDE_OK);
    assert_null(c->name);
    assert_true(c->flops[19] == 19);
    const double *flops = c->flops;
    assert_int_equal(sonde_events_fill(lazy, "colour", NULL), SONDE_E_ARGUMENT);
    assert_int_equal(sonde_events_fill(lazy, NULL, NULL), SONDE_OK);
    assert_ptr_equal(c->flops, flops);
    assert_equal_columns(lazy, all);
    sonde_events_free(lazy);
    sonde_events_free(all);
    sonde_trace_close(trace);
}

/* A call, as one event or as two; attributes of CALL records as torch's probe writes them. */
static void add_call(struct synth *s, uint32_t t, uint64_t ns, uint32_t call, uint64_t took,
                     bool whole)
{
    synth_call_range(s, t, ns, call, whole ? took : 0);
    if (!whole)
        synth_end(s, t, ns + took);
}

static struct sonde_trace *make_calls(const char *name, bool whole)
{
    struct synth *s = synth_new(scratch_path(name), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      shapes = synth_shapes(s, "2,3;3,4");
    uint32_t      names[] = { synth_string(s, "aten::mm"), synth_string(s, "aten::add"),
                              synth_string(s, "aten::is_leaf"), synth_string(s, "AddBackward0"),
                              synth_string(s, "ProfilerStep#1") };
    uint32_t      calls[sizeof names / sizeof names[0] + 1];

    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        calls[i] = synth_call(s, &(struct snd_call_record){ .name = names[i],
                                                            .shapes = i < 2 ? shapes : 0,
                                                            .scope = i == 3 ? 2 : 1,
                                                            .module = i == 1 ? names[0] : 0,
                                                            .fwd_thread = i == 3 ? 7 : 0,
                                                            .flags = SND_CALL_SEQUENCE });
    calls[5] = synth_call(s,
                          &(struct snd_call_record){ .name = names[1], .flags = SND_CALL_ASYNC });
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t ns = 1000 * i;
        add_call(s, t, ns, calls[i], 40, whole); /* in nothing */
        synth_attr(s, t, SND_ATTR_CALLS_SEQUENCE, 5 + i);
        for (uint32_t k = 0; k < 6; k++) { /* each in each; of the same name they fold */
            synth_call_range(s, t, ns + 50 + 100 * k, calls[k], 0);
            add_call(s, t, ns + 60 + 100 * k, calls[i], 30, whole);
            add_call(s, u, ns + 65 + 100 * k, calls[i], 300, whole); /* beside it */
            if (k % 2)
                add_call(s, t, ns + 95 + 100 * k, calls[1], 2, whole);
            synth_end(s, t, ns + 100 + 100 * k);
        }
    }
    synth_close(s, true);
    return scratch_open(scratch_path(name));
}

/* Calls without anything inside are taken in one piece, and come to the same. */
static void calls_in_one_piece(void **state)
{
    struct sonde_trace *whole = make_calls("whole", true), *parts = make_calls("parts", false);

    (void)state;
    for (int flops = SONDE_FLOPS_FULL; flops <= SONDE_FLOPS_NONE; flops++) {
        const struct sonde_events_options options = { .struct_size = sizeof options,
                                                      .flops = (enum sonde_flops_mode)flops };
        struct sonde_events              *a, *b;
        assert_int_equal(sonde_events_new(whole, &options, &a, NULL), SONDE_OK);
        assert_int_equal(sonde_events_new(parts, &options, &b, NULL), SONDE_OK);
        assert_true(sonde_events_columns(a)->count > 60);
        assert_equal_columns(a, b);
        sonde_events_free(a);
        sonde_events_free(b);
    }
    sonde_trace_close(whole);
    sonde_trace_close(parts);
}

static struct sonde_buffer export_calls(const char *format, bool whole)
{
    struct sonde_trace *trace = make_calls("calls", whole); /* its name is in some of them */
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);

    assert_int_equal(sonde_export(trace, format, NULL, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return text;
}

/* Exports have ranges in the order of their ends, which those of two threads must keep. */
static void exports_of_calls_in_one_piece(void **state)
{
    static const char *const formats[] = { "chrome", "csv", "perfetto", "speedscope", "sqlite" };

    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct sonde_buffer whole = export_calls(formats[i], true);
        struct sonde_buffer parts = export_calls(formats[i], false);
        assert_int_equal(whole.length, parts.length);
        assert_memory_equal(whole.bytes, parts.bytes, whole.length);
        sonde_buffer_release(&whole);
        sonde_buffer_release(&parts);
    }
}

/* A packed trace has more rows than its bytes tell: what was written stays, and what follows is empty. */
static void rows_grow(void **state)
{
    struct synth         *s = synth_new(scratch_path("small"), NULL);
    struct snd_event_rows rows;

    (void)state;
    synth_thread(s, "main", 0);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("small"));
    assert_true(snd_rows_reserve(&rows, trace));
    uint32_t room = rows.room;
    assert_true(room > 16);
    for (uint32_t i = 0; i < room; i++) {
        rows.start_ns[i] = i + 1, rows.end_ns[i] = i + 2, rows.self_ns[i] = i + 3;
        rows.sequence[i] = i + 4, rows.parent[i] = (int32_t)i + 5, rows.thread[i] = i + 6;
        rows.kind[i] = i + 7, rows.extra[i] = i + 8;
    }
    rows.count = room;
    assert_true(snd_rows_grow(&rows));
    assert_int_equal(rows.room, 2 * room);
    assert_int_equal(rows.count, room);
    for (uint32_t i = 0; i < 2 * room; i++) {
        uint32_t n = i < room ? i : 0, there = i < room;
        assert_int_equal(rows.start_ns[i], there * (n + 1));
        assert_int_equal(rows.end_ns[i], there * (n + 2));
        assert_int_equal(rows.self_ns[i], there * (n + 3));
        assert_int_equal(rows.sequence[i], there * (n + 4));
        assert_int_equal(rows.parent[i], there * (n + 5));
        assert_int_equal(rows.thread[i], there * (n + 6));
        assert_int_equal(rows.kind[i], there * (n + 7));
        assert_int_equal(rows.extra[i], there * (n + 8));
    }
    snd_rows_release(&rows);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_torchs_order),
        cmocka_unit_test(rows_grow),
        cmocka_unit_test(python_functions),
        cmocka_unit_test(numbers_of_modules),
        cmocka_unit_test(memory_of_functions),
        cmocka_unit_test(torchs_rules),
        cmocka_unit_test(folded_work),
        cmocka_unit_test(only_children_fold),
        cmocka_unit_test(ends_out_of_order),
        cmocka_unit_test(stacks_of_backward_ranges),
        cmocka_unit_test(tables),
        cmocka_unit_test(every_column_of_the_table),
        cmocka_unit_test(columns_on_demand),
        cmocka_unit_test(calls_in_one_piece),
        cmocka_unit_test(exports_of_calls_in_one_piece),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
