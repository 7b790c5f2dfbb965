/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpu/kernels.c: what GPUs ran, added up, and what launched it. */
#include "model/gpu/kernels.h"

#include <math.h>

#include "scratch.h"

#define CUDA0 SND_DEVICE(1, 0)

struct made {
    struct synth *s;
    uint32_t      host, worker, queue;
};

static struct made make(const char *path)
{
    struct made m = { .s = synth_new(path, NULL) };

    m.host = synth_thread(m.s, "main", 0);
    m.worker = synth_thread(m.s, "worker", 0);
    m.queue = synth_queue(m.s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    return m;
}

static uint32_t kernel(const struct made *m, const char *name, uint32_t grid)
{
    return synth_work(m->s, &(struct snd_work_record){ .name = synth_string(m->s, name),
                                                       .kind = SND_WORK_KERNEL,
                                                       .grid = { grid, 1, 1 },
                                                       .block = { 64, 1, 1 } });
}

static void begin(const struct made *m, uint64_t ns, const char *name)
{
    synth_begin(m->s, m->host, ns, synth_string(m->s, name), 0);
}

static void call(const struct made *m, uint64_t ns, uint32_t correlation)
{
    begin(m, ns, "cudaLaunchKernel");
    synth_attr(m->s, m->host, SND_ATTR_API, correlation);
    synth_end(m->s, m->host, ns + 5);
}

static void ran(const struct made *m, uint64_t from, uint64_t ns, uint32_t work,
                uint32_t correlation, uint64_t node)
{
    synth_device(m->s, m->worker, from, work, m->queue, ns, correlation, node);
}

static struct snd_kernels *build(struct sonde_trace *trace, unsigned groups)
{
    struct snd_kernels *k;

    assert_int_equal(snd_kernels_new(trace, groups, 0, &k, NULL), SONDE_OK);
    return k;
}

static const struct snd_kernel_row *find_row(const struct snd_kernels *k, const char *name,
                                             uint32_t nth)
{
    for (uint32_t i = 0; i < k->count; i++)
        if (text_is(k->rows[i].name, name) && nth-- == 0)
            return &k->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

/* Twenty launches, the first delayed by 1, the last by 20: half-way, and the 19th. */
static void delays_have_a_median_and_a_95th_percentile(void **state)
{
    const char *path = scratch_path("delays");
    struct made m = make(path);
    uint32_t    work = kernel(&m, "k", 4);

    (void)state;
    for (uint32_t i = 1; i <= 20; i++)
        call(&m, i * 100, i);
    for (uint32_t i = 20; i >= 1; i--)
        ran(&m, i * 100 + i, 2, work, i, 0);
    ran(&m, 5000, 7, work, 99, 0); /* its launch is not in the trace */
    synth_close(m.s, true);
    struct sonde_trace          *trace = scratch_open(path);
    struct snd_kernels          *k = build(trace, 0);
    const struct snd_kernel_row *row = find_row(k, "k", 0);
    assert_int_equal(k->count, 1);
    assert_int_equal(row->count, 21);
    assert_int_equal(row->total_ns, 47);
    assert_int_equal(row->min_ns, 2);
    assert_int_equal(row->max_ns, 7);
    assert_int_equal(row->delays, 20);
    assert_int_equal(row->delay_median_ns, 10);
    assert_int_equal(row->delay_p95_ns, 19);
    assert_true(isnan(row->occupancy)); /* the GPU is not described */
    snd_kernels_free(k);
    sonde_trace_close(trace);
}

/* The configuration and the place that took most time are shown; --group-by has each. */
static void the_longest_stands_for_all(void **state)
{
    const char *path = scratch_path("most");
    struct made m = make(path);
    uint32_t    small = kernel(&m, "k", 1), large = kernel(&m, "k", 100);

    (void)state;
    begin(&m, 100, "aten::mm");
    call(&m, 110, 1);
    call(&m, 120, 2);
    synth_end(m.s, m.host, 130);
    begin(&m, 200, "aten::add");
    call(&m, 210, 3);
    synth_end(m.s, m.host, 230);
    ran(&m, 300, 10, small, 1, 0);
    ran(&m, 320, 10, small, 2, 0);
    ran(&m, 340, 50, large, 3, 0);
    synth_close(m.s, true);
    struct sonde_trace          *trace = scratch_open(path);
    struct snd_kernels          *k = build(trace, 0);
    const struct snd_kernel_row *row = find_row(k, "k", 0);
    assert_int_equal(row->configurations, 2);
    assert_int_equal(row->work.grid[0], 100);
    assert_int_equal(row->operators, 2);
    assert_true(text_is(snd_where_name(k->launches, &row->where), "aten::add"));
    snd_kernels_free(k);
    for (unsigned group = SONDE_GROUP_OPERATOR; group <= SONDE_GROUP_GRID; group <<= 1) {
        k = build(trace, group);
        assert_int_equal(k->count, 2);
        assert_int_equal(find_row(k, "k", 0)->total_ns, 20);
        assert_int_equal(find_row(k, "k", 1)->total_ns, 50);
        snd_kernels_free(k);
    }
    sonde_trace_close(trace);
}

/* Nodes of a graph begin when the node before is done: only the first has a delay. */
static void a_graph_has_one_delay(void **state)
{
    const char *path = scratch_path("graph");
    struct made m = make(path);
    uint32_t    a = kernel(&m, "a", 1), b = kernel(&m, "b", 1);

    (void)state;
    call(&m, 100, 1);
    ran(&m, 130, 10, b, 1, 2);
    ran(&m, 110, 20, a, 1, 1);
    synth_close(m.s, true);
    struct sonde_trace *trace = scratch_open(path);
    struct snd_kernels *k = build(trace, 0);
    assert_int_equal(find_row(k, "a", 0)->delays, 1);
    assert_int_equal(find_row(k, "a", 0)->delay_median_ns, 10);
    assert_int_equal(find_row(k, "b", 0)->delays, 0);
    assert_int_equal(find_row(k, "b", 0)->graph_count, 1);
    snd_kernels_free(k);
    sonde_trace_close(trace);
}

/* What runs backward belongs to the module and line of its forward operator. */
static void backward_kernels_are_the_forward_module_s(void **state)
{
    const char *path = scratch_path("backward");
    struct made m = make(path);
    uint32_t    work = kernel(&m, "k", 1), file = synth_string(m.s, "net.py");
    uint32_t stack = synth_stack(m.s, 0, synth_frame(m.s, synth_string(m.s, "forward"), file, 12));
    struct sonde_buffer line = { 0 };

    (void)state;
    synth_meta(m.s, "torch.thread 4242", "1");
    begin(&m, 100, "aten::mm");
    synth_attr(m.s, m.host, SND_ATTR_SEQUENCE, 5);
    synth_attr(m.s, m.host, SND_ATTR_MODULE, synth_string(m.s, "Net.fc|Linear"));
    synth_attr(m.s, m.host, SND_ATTR_STACK, stack);
    synth_end(m.s, m.host, 150);
    begin(&m, 200, "MmBackward0");
    synth_attr(m.s, m.host, SND_ATTR_SCOPE, SND_SCOPE_BACKWARD + 1);
    synth_attr(m.s, m.host, SND_ATTR_SEQUENCE, 5);
    synth_attr(m.s, m.host, SND_ATTR_FWD_THREAD, 1);
    begin(&m, 210, "aten::mm");
    call(&m, 220, 1);
    synth_end(m.s, m.host, 230);
    begin(&m, 231, "triton_fused"); /* of compiled code */
    synth_attr(m.s, m.host, SND_ATTR_COMPILED, synth_string(m.s, "a.b|Fc.a.b"));
    call(&m, 233, 2);
    synth_end(m.s, m.host, 239);
    synth_end(m.s, m.host, 240);
    ran(&m, 300, 10, work, 1, 0);
    ran(&m, 310, 10, kernel(&m, "fused", 1), 2, 0);
    synth_close(m.s, true);
    struct sonde_trace          *trace = scratch_open(path);
    struct snd_kernels          *k = build(trace, 0);
    const struct snd_kernel_row *row = find_row(k, "k", 0);
    assert_true(text_is(snd_where_name(k->launches, &row->where), "aten::mm"));
    assert_true(text_is(snd_where_module(k->launches, &row->where), "Net.fc"));
    snd_where_line(k->launches, &row->where, &line);
    assert_string_equal(snd_buf_string(&line), "net.py(12): forward");
    row = find_row(k, "fused", 0);
    assert_true(text_is(snd_where_module(k->launches, &row->where), "Net.fc.a.b"));
    sonde_buffer_release(&line);
    snd_kernels_free(k);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_have_a_median_and_a_95th_percentile),
        cmocka_unit_test(the_longest_stands_for_all),
        cmocka_unit_test(a_graph_has_one_delay),
        cmocka_unit_test(backward_kernels_are_the_forward_module_s),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
