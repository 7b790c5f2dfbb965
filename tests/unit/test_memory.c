/* SPDX-License-Identifier: Apache-2.0 */
/* model/memory/memory_peaks.c: peaks, and what holds memory at a moment. */
#include "format/layout.h"
#include "scratch.h"

#define CPU SND_DEVICE(0, 0xffff)
#define CUDA1 SND_DEVICE(1, 1)

static struct sonde_memory *build(struct sonde_trace *trace)
{
    struct sonde_memory *memory;

    assert_int_equal(sonde_memory_new(trace, &memory, NULL), SONDE_OK);
    return memory;
}

static const struct sonde_memory_holder *find_holder(const struct sonde_memory *memory,
                                                     uint32_t device, const char *name)
{
    for (size_t i = 0; i < sonde_memory_holder_count(memory); i++) {
        const struct sonde_memory_holder *h = sonde_memory_holder(memory, i);
        if (h->device == device && text_is(h->name, name))
            return h;
    }
    fail_msg("no holder %s", name);
    return NULL;
}

/* The peak is reached between two threads, and neither alone has it. */
static void peaks_are_exact_over_threads(void **state)
{
    struct synth *s = synth_new(scratch_path("peak"), NULL);
    uint32_t      t = synth_thread(s, "t", 0), u = synth_thread(s, "u", 0);
    uint32_t      load = synth_string(s, "load"), work = synth_string(s, "work");

    (void)state;
    synth_free(s, t, 1, CPU, 0x99, 50); /* taken before */
    synth_begin(s, t, 5, load, 0);
    synth_alloc(s, t, 10, CPU, 0x1, 1000);
    synth_alloc(s, t, 12, CUDA1, 0x1, 77);
    synth_end(s, t, 15);
    synth_begin(s, u, 16, work, 0);
    synth_alloc(s, u, 20, CPU, 0x2, 500); /* 1500: the peak */
    synth_free(s, u, 30, CPU, 0x1, 0);    /* taken by the other thread, size not told */
    synth_end(s, u, 31);
    synth_alloc(s, t, 40, CPU, 0x3, 900); /* 1400 */
    synth_alloc(s, t, 50, CPU, 0x2, 100); /* an address again, its free unseen: 1000 */
    synth_close(s, true);
    struct sonde_trace  *trace = scratch_open(scratch_path("peak"));
    struct sonde_memory *m = build(trace);
    assert_int_equal(sonde_memory_device_count(m), 2);
    const struct sonde_memory_device *cpu = sonde_memory_device(m, 0);
    assert_int_equal(cpu->type, 0);
    assert_int_equal(cpu->index, SONDE_NONE);
    assert_int_equal(cpu->peak_bytes, 1500);
    assert_int_equal(cpu->peak_time_ns, 20);
    assert_int_equal(cpu->allocs, 4);
    assert_int_equal(cpu->frees, 2);
    assert_int_equal(cpu->allocated_bytes, 2500);
    assert_int_equal(cpu->freed_bytes, 1050);
    assert_int_equal(cpu->unmatched_frees, 1);
    assert_int_equal(cpu->unmatched_free_bytes, 50);
    assert_int_equal(cpu->end_bytes, 1000);
    assert_int_equal(cpu->end_count, 2);
    assert_int_equal(sonde_memory_device(m, 1)->index, 1);
    assert_int_equal(sonde_memory_device(m, 1)->peak_bytes, 77);
    assert_int_equal(find_holder(m, 0, "load")->peak_bytes, 1000);
    assert_int_equal(find_holder(m, 0, "work")->peak_bytes, 500);
    assert_int_equal(find_holder(m, 0, "(no range)")->peak_bytes, 0);
    assert_int_equal(find_holder(m, 0, "(no range)")->end_bytes, 1000);
    assert_int_equal(find_holder(m, 0, "(no range)")->end_count, 2);
    assert_int_equal(find_holder(m, 1, "load")->end_bytes, 77);
    assert_true(text_is(sonde_memory_holder(m, 0)->name, "load")); /* the largest first */
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

/* Two calls in one function, whose lines differ: each holds its own, and by its own line. */
static void holders_have_the_line_of_the_call(void **state)
{
    struct synth *s = synth_new(scratch_path("lines"), NULL);
    uint32_t      t = synth_thread(s, "t", 0), file = synth_string(s, "train.py");
    uint32_t      make = synth_string(s, "make_batch"), name = synth_string(s, "aten::empty");
    uint32_t      main = synth_frame_in(s, synth_string(s, "main"), 10, file, 14, false);
    uint32_t      outer = synth_stack(s, 0, main);
    const char   *stacks[] = { "train.py(3): make_batch\ntrain.py(14): main",
                               "train.py(5): make_batch\ntrain.py(14): main" };

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t stack = synth_stack(s, outer, synth_frame_in(s, make, 1, file, 3 + 2 * i, false));
        uint32_t call = synth_call(s, &(struct snd_call_record){ .name = name, .stack = stack });
        synth_call_range(s, t, 10 + 100 * i, call, 0);
        synth_alloc(s, t, 20 + 100 * i, CPU, 0x1000 * (i + 1), 200 - 100 * i);
        synth_end(s, t, 60 + 100 * i);
    }
    synth_close(s, true);
    struct sonde_trace  *trace = scratch_open(scratch_path("lines"));
    struct sonde_memory *m;
    assert_int_equal(sonde_memory_new_by(trace, SONDE_GROUP_STACK, 0, &m, NULL), SONDE_OK);
    assert_int_equal(sonde_memory_holder_count(m), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(text_is(sonde_memory_holder(m, i)->stack, stacks[i]));
        assert_int_equal(sonde_memory_holder(m, i)->peak_bytes, 200 - 100 * i);
    }
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

/* Ten thousand allocations become at most 1,024 points; the highest and lowest are among them. */
static void the_course_is_thinned(void **state)
{
    struct synth_options options = { .chunk_bytes = 1 << 20 };
    struct synth        *s = synth_new(scratch_path("course"), &options);
    uint32_t             t = synth_thread(s, "t", 0);
    int64_t              most = 0, last = INT64_MIN;
    bool                 ends_at_zero = false;

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t size = i == 7777 ? 1000000 : 10 + i % 17;
        synth_alloc(s, t, i * 10, CPU, i + 1, size);
        synth_free(s, t, i * 10 + 5, CPU, i + 1, size);
    }
    synth_close(s, true);
    struct sonde_trace  *trace = scratch_open(scratch_path("course"));
    struct sonde_memory *m = build(trace);
    assert_int_equal(sonde_memory_device(m, 0)->peak_bytes, 1000000);
    assert_true(sonde_memory_point_count(m) <= 1024);
    assert_true(sonde_memory_point_count(m) >= 256);
    for (size_t i = 0; i < sonde_memory_point_count(m); i++) {
        const struct sonde_memory_point *p = sonde_memory_point(m, i);
        most = p->bytes > most ? p->bytes : most;
        assert_true(p->time_ns >= last);
        last = p->time_ns;
        ends_at_zero = p->bytes == 0;
    }
    assert_int_equal(most, 1000000);
    assert_true(ends_at_zero);
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

/* Equal addresses of two processes are two pieces of memory. */
static void processes_have_their_own_addresses(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = { .pid = 10 + i };
        struct synth        *s = synth_new(scratch_path(i ? "two.11" : "two"), &options);
        uint32_t             t = synth_thread(s, "t", 0);
        synth_alloc(s, t, 10 + i, CPU, 0x1, 100);
        synth_close(s, true);
    }
    struct sonde_trace  *trace = scratch_open(scratch_path("two"));
    struct sonde_memory *m = build(trace);
    assert_int_equal(sonde_memory_device(m, 0)->peak_bytes, 200);
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

/* An operator of torch, recorded by its call record, in one that has a module. */
static void operators_are_in_the_module_around_them(void **state)
{
    struct synth *s = synth_new(scratch_path("module"), NULL);
    uint32_t      t = synth_thread(s, "t", 0);
    uint32_t      linear = synth_string(s, "aten::linear"), empty = synth_string(s, "aten::empty");
    uint32_t      calls[] = {
             synth_call(s, &(struct snd_call_record){ .name = linear,
                                                      .module = synth_string(s, "net.0|Linear"),
                                                      .scope = 1 }),
             synth_call(s, &(struct snd_call_record){ .name = empty, .scope = 1 }),
    };
    struct sonde_memory *m;

    (void)state;
    synth_call_range(s, t, 10, calls[0], 0);
    synth_call_range(s, t, 20, calls[1], 0);
    synth_alloc(s, t, 30, CPU, 0x1, 1000);
    synth_end(s, t, 40);
    synth_end(s, t, 50);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("module"));
    assert_int_equal(sonde_memory_new_by(trace, SONDE_GROUP_MODULE, 0, &m, NULL), SONDE_OK);
    assert_true(text_is(find_holder(m, 0, "aten::empty")->module, "net.0"));
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

/* What the backward pass holds is of the module whose forward operator had the sequence number. */
static void the_backward_pass_is_in_the_module_of_its_forward(void **state)
{
    struct synth *s = synth_new(scratch_path("backward"), NULL);
    uint32_t      t = synth_thread(s, "t", 0), u = synth_thread(s, "pt_autograd_0", 0);
    uint32_t      calls[] = {
             synth_call(s, &(struct snd_call_record){ .name = synth_string(s, "aten::linear"),
                                                      .module = synth_string(s, "net.0|Linear"),
                                                      .scope = SND_SCOPE_FUNCTION + 1,
                                                      .flags = SND_CALL_SEQUENCE }),
             synth_call(s, &(struct snd_call_record){ .name = synth_string(s, "AddmmBackward0"),
                                                      .scope = SND_SCOPE_BACKWARD + 1,
                                                      .flags = SND_CALL_SEQUENCE,
                                                      .fwd_thread = 1 }),
             synth_call(s, &(struct snd_call_record){ .name = synth_string(s, "aten::mm"), .scope = 1 }),
    };
    struct sonde_memory *m;

    (void)state;
    synth_meta(s, "torch.thread 4242", "1");
    synth_attr(s, t, SND_ATTR_CALLS_SEQUENCE, 7);
    synth_call_range(s, t, 10, calls[0], 5);
    synth_attr(s, u, SND_ATTR_CALLS_SEQUENCE, 7);
    synth_call_range(s, u, 20, calls[1], 0);
    synth_call_range(s, u, 30, calls[2], 0);
    synth_alloc(s, u, 35, CPU, 0x1, 1000);
    synth_end(s, u, 40);
    synth_end(s, u, 50);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("backward"));
    assert_int_equal(sonde_memory_new_by(trace, SONDE_GROUP_MODULE, 0, &m, NULL), SONDE_OK);
    assert_true(text_is(find_holder(m, 0, "aten::mm")->module, "net.0"));
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

static void no_memory_is_no_device(void **state)
{
    (void)state;
    synth_close(synth_new(scratch_path("none"), NULL), true);
    struct sonde_trace  *trace = scratch_open(scratch_path("none"));
    struct sonde_memory *m = build(trace);
    assert_int_equal(sonde_memory_device_count(m), 0);
    assert_null(sonde_memory_device(m, 0));
    assert_int_equal(sonde_memory_point_count(m), 0);
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

/* The allocator's sum comes after some blocks, as after a warm-up: it holds for those before, too. */
static void the_allocator_s_sum_tells_what_was_before(void **state)
{
    struct synth *s = synth_new(scratch_path("sum"), NULL);
    uint32_t      t = synth_thread(s, "t", 0);
    uint32_t      allocated = synth_string(s, "device.allocated cuda:1");
    uint32_t      reserved = synth_string(s, "device.reserved cuda:1");

    (void)state;
    synth_counter(s, t, 5, reserved, 8192);
    synth_alloc(s, t, 10, CUDA1, 0x1, 500);  /* 4500: the peak */
    synth_free(s, t, 20, CUDA1, 0x99, 1000); /* from before */
    synth_alloc(s, t, 30, CUDA1, 0x2, 400);
    synth_counter(s, t, 30, allocated, 3900);
    synth_counter(s, t, 35, reserved, 10000);
    synth_alloc(s, t, 40, CUDA1, 0x3, 100);
    synth_counter(s, t, 41, allocated, 4000); /* as expected: nothing changes */
    synth_close(s, true);
    struct sonde_trace               *trace = scratch_open(scratch_path("sum"));
    struct sonde_memory              *m = build(trace);
    const struct sonde_memory_device *d = sonde_memory_device(m, 0);
    assert_int_equal(d->before_bytes, 4000);
    assert_int_equal(d->peak_bytes, 4500);
    assert_int_equal(d->peak_time_ns, 10);
    assert_int_equal(d->reserved_at_peak_bytes, 8192);
    assert_int_equal(d->reserved_peak_bytes, 10000);
    assert_int_equal(d->end_bytes, 4000);
    assert_int_equal(find_holder(m, 0, "(before the recording)")->peak_bytes, 4000);
    assert_int_equal(find_holder(m, 0, "(before the recording)")->end_bytes, 3000);
    assert_int_equal(find_holder(m, 0, "(no range)")->peak_bytes, 500);
    assert_int_equal(find_holder(m, 0, "(no range)")->end_bytes, 1000);
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

/* Blocks taken and freed while the recording was paused are not in it, but in the sum. */
static void a_pause_is_made_good(void **state)
{
    struct synth *s = synth_new(scratch_path("pause"), NULL);
    uint32_t      t = synth_thread(s, "t", 0);
    uint32_t      allocated = synth_string(s, "device.allocated cuda:1");

    (void)state;
    synth_alloc(s, t, 10, CUDA1, 0x1, 500);
    synth_counter(s, t, 10, allocated, 500);
    synth_alloc(s, t, 90, CUDA1, 0x2, 100);
    synth_counter(s, t, 90, allocated, 2600); /* 2000 were taken meanwhile */
    synth_close(s, true);
    struct sonde_trace               *trace = scratch_open(scratch_path("pause"));
    struct sonde_memory              *m = build(trace);
    const struct sonde_memory_device *d = sonde_memory_device(m, 0);
    assert_int_equal(d->before_bytes, 0);
    assert_int_equal(d->peak_bytes, 2600);
    assert_int_equal(d->end_bytes, 2600);
    sonde_memory_free(m);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_are_exact_over_threads),
        cmocka_unit_test(holders_have_the_line_of_the_call),
        cmocka_unit_test(the_allocator_s_sum_tells_what_was_before),
        cmocka_unit_test(a_pause_is_made_good),
        cmocka_unit_test(the_course_is_thinned),
        cmocka_unit_test(processes_have_their_own_addresses),
        cmocka_unit_test(operators_are_in_the_module_around_them),
        cmocka_unit_test(the_backward_pass_is_in_the_module_of_its_forward),
        cmocka_unit_test(no_memory_is_no_device),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
