/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpu/gpu.c: how a GPU's time is divided, and what the host did while it waited. */
#include "model/gpu/gpu.h"

#include "scratch.h"
#include "sonde/export.h"

#define CUDA0 SND_DEVICE(1, 0)
#define CUDA1 SND_DEVICE(1, 1)

struct made {
    struct synth *s;
    uint32_t      host, other, queue, second, kernel, copy;
};

static struct made make(const char *path)
{
    struct made m = { .s = synth_new(path, NULL) };

    m.host = synth_thread(m.s, "main", 0);
    m.other = synth_thread(m.s, "other", 0);
    m.queue = synth_queue(m.s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    m.second = synth_queue(m.s, &(struct snd_queue_record){ CUDA1, 2, 7, 0 });
    m.kernel = synth_work(m.s, &(struct snd_work_record){ .name = synth_string(m.s, "gemm"),
                                                          .kind = SND_WORK_KERNEL });
    m.copy = synth_work(m.s, &(struct snd_work_record){ .name = synth_string(m.s, "copy"),
                                                        .kind = SND_WORK_COPY,
                                                        .bytes = 64 });
    return m;
}

static void begin(const struct made *m, uint32_t thread, uint64_t ns, const char *name)
{
    synth_begin(m->s, thread, ns, synth_string(m->s, name), 0);
}

static void call(const struct made *m, uint32_t thread, uint64_t from, uint64_t to,
                 const char *name, uint32_t correlation)
{
    begin(m, thread, from, name);
    synth_attr(m->s, thread, SND_ATTR_API, correlation);
    synth_end(m->s, thread, to);
}

static void ran(const struct made *m, uint64_t from, uint64_t to, uint32_t work, uint32_t queue,
                uint32_t correlation)
{
    synth_device(m->s, m->other, from, work, queue, to - from, correlation, 0);
}

static struct snd_gpu *build(struct sonde_trace *trace)
{
    struct snd_gpu *g;

    assert_int_equal(snd_gpu_new(trace, &g, NULL), SONDE_OK);
    return g;
}

static const struct snd_gpu_gap *find_gap(const struct snd_gpu *g, int64_t start_ns)
{
    for (uint32_t i = 0; i < g->gap_count; i++)
        if (g->gaps[i].start_ns == start_ns)
            return &g->gaps[i];
    fail_msg("no gap at %lld", (long long)start_ns);
    return NULL;
}

static bool is_in(const struct snd_gpu *g, const struct snd_gpu_gap *gap, const char *place)
{
    return text_is(snd_where_name(g->launches, &g->launches->places[gap->where]), place);
}

static bool calls(const struct snd_gpu *g, const struct snd_gpu_gap *gap, const char *name)
{
    return strcmp(g->trace->names.items[gap->call].bytes, name) == 0;
}

/* Launched before the GPU ran out of work, or after: to the nanosecond. */
static void the_launch_decides_whether_the_host_was_late(void **state)
{
    const char *path = scratch_path("late");
    struct made m = make(path);

    (void)state;
    begin(&m, m.host, 10, "early");
    call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
    call(&m, m.host, 200, 210, "cudaLaunchKernel", 2); /* begins as the first ends: in time */
    synth_end(m.s, m.host, 220);
    begin(&m, m.host, 230, "thinks");
    synth_end(m.s, m.host, 400);
    begin(&m, m.host, 400, "late");
    call(&m, m.host, 401, 410, "cudaLaunchKernel", 3);
    synth_end(m.s, m.host, 420);
    ran(&m, 150, 200, m.kernel, m.queue, 1);
    ran(&m, 205, 300, m.kernel, m.queue, 2);
    ran(&m, 420, 430, m.kernel, m.queue, 3);
    synth_close(m.s, true);
    struct sonde_trace *trace = scratch_open(path);
    struct snd_gpu     *g = build(trace);
    assert_int_equal(g->device_count, 1);
    assert_int_equal(g->gap_count, 2);
    const struct snd_gpu_gap *launch = find_gap(g, 200), *late = find_gap(g, 300);
    assert_int_equal(launch->reason, SND_IDLE_LAUNCH);
    assert_int_equal(launch->duration_ns, 5);
    assert_true(is_in(g, launch, "early"));
    assert_int_equal(late->reason, SND_IDLE_HOST);
    assert_int_equal(late->duration_ns, 120);
    assert_true(is_in(g, late, "thinks"));
    assert_int_equal(late->call, SONDE_NONE);
    assert_int_equal(g->devices[0].busy_ns, 155);
    assert_int_equal(g->devices[0].idle_ns[SND_IDLE_HOST], 120);
    assert_int_equal(g->devices[0].idle_ns[SND_IDLE_LAUNCH], 5);
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* A call of the API that is no synchronisation can be what the host was late with. */
static void a_slow_call_of_the_api_is_named(void **state)
{
    const char *path = scratch_path("slow");
    struct made m = make(path);

    (void)state;
    call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
    begin(&m, m.host, 120, "aten::empty");
    call(&m, m.host, 121, 900, "cudaMalloc", 2);
    synth_end(m.s, m.host, 901);
    call(&m, m.host, 905, 910, "cudaLaunchKernel", 3);
    ran(&m, 120, 200, m.kernel, m.queue, 1);
    ran(&m, 920, 930, m.kernel, m.queue, 3);
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    struct snd_gpu           *g = build(trace);
    const struct snd_gpu_gap *gap = find_gap(g, 200);
    assert_int_equal(gap->reason, SND_IDLE_HOST);
    assert_true(is_in(g, gap, "aten::empty"));
    assert_true(calls(g, gap, "cudaMalloc"));
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* It must have begun before the GPU ran dry, and on the thread that launches. */
static void synchronisation_is_a_wait_that_the_gap_began_in(void **state)
{
    const char *path = scratch_path("sync");
    struct made m = make(path);

    (void)state;
    call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
    begin(&m, m.host, 115, "aten::item");
    call(&m, m.host, 120, 205, "cudaStreamSynchronize", 2);
    synth_end(m.s, m.host, 206);
    call(&m, m.other, 150, 800, "cudaDeviceSynchronize", 3); /* another thread's */
    call(&m, m.host, 250, 260, "cudaLaunchKernel", 4);
    call(&m, m.host, 350, 360, "cudaDeviceSynchronize", 5); /* there is nothing to wait for */
    call(&m, m.host, 400, 410, "cudaLaunchKernel", 6);
    ran(&m, 130, 200, m.kernel, m.queue, 1);
    ran(&m, 270, 300, m.kernel, m.queue, 4);
    ran(&m, 420, 430, m.kernel, m.queue, 6);
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    struct snd_gpu           *g = build(trace);
    const struct snd_gpu_gap *wait = find_gap(g, 200);
    assert_int_equal(wait->reason, SND_IDLE_SYNC);
    assert_int_equal(wait->duration_ns, 5); /* it returned then */
    assert_true(is_in(g, wait, "aten::item"));
    assert_true(calls(g, wait, "cudaStreamSynchronize"));
    assert_int_equal(find_gap(g, 205)->reason, SND_IDLE_HOST);
    assert_int_equal(find_gap(g, 205)->duration_ns, 65);
    assert_int_equal(find_gap(g, 300)->reason, SND_IDLE_HOST);
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* One that returned when the GPU ran dry was over: from then on the host was late. */
static void a_wait_that_returns_as_the_gap_begins_is_over(void **state)
{
    for (uint64_t end = 199; end <= 201; end++) {
        const char *path = scratch_path("edge");
        struct made m = make(path);
        (void)state;
        call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
        call(&m, m.host, 120, end, "cudaStreamSynchronize", 2);
        call(&m, m.host, 250, 260, "cudaLaunchKernel", 4);
        ran(&m, 130, 200, m.kernel, m.queue, 1);
        ran(&m, 270, 300, m.kernel, m.queue, 4);
        synth_close(m.s, true);
        struct sonde_trace *trace = scratch_open(path);
        struct snd_gpu     *g = build(trace);
        assert_int_equal(find_gap(g, 200)->reason, end > 200 ? SND_IDLE_SYNC : SND_IDLE_HOST);
        assert_int_equal(find_gap(g, 200)->duration_ns, end > 200 ? 1 : 70);
        snd_gpu_free(g);
        sonde_trace_close(trace);
    }
}

/* The host imports modules, or loads data, after a wait that was over at once. */
static void what_follows_a_wait_is_the_hosts(void **state)
{
    const char *path = scratch_path("after");
    struct made m = make(path);
    uint32_t    file = synth_string(m.s, "train.py");
    uint32_t    train = synth_frame_in(m.s, synth_string(m.s, "train"), 30, file, 41, false);
    uint32_t    load = synth_frame_in(m.s, synth_string(m.s, "load"), 7, file, 9, false);
    uint32_t    other = synth_frame_in(m.s, synth_string(m.s, "other"), 50, file, 51, false);

    (void)state;
    call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
    begin(&m, m.host, 940, "aten::item"); /* 50 before the GPU ran out of work */
    call(&m, m.host, 950, 1010, "cudaStreamSynchronize", 2);
    synth_end(m.s, m.host, 1015);
    synth_function(m.s, m.host, 1100, other, 0, 60, 4, 1); /* most of the gap so far */
    synth_function(m.s, m.other, 3000, other, 0, 1900, 3,
                   0);                                      /* of a thread that launches nothing */
    synth_function(m.s, m.host, 4900, load, 0, 3850, 2, 1); /* over before the launch */
    call(&m, m.host, 5000, 5010, "cudaLaunchKernel", 3);
    begin(&m, m.host, 5020, "aten::item"); /* 480 before it */
    call(&m, m.host, 5030, 5515, "cudaStreamSynchronize", 4);
    call(&m, m.host, 5516, 5518, "cudaStreamSynchronize", 5); /* nothing is left to wait for */
    synth_end(m.s, m.host, 5520);
    begin(&m, m.host, 5522, "collate");
    synth_end(m.s, m.host, 5560);
    call(&m, m.host, 5570, 5575, "cudaLaunchKernel", 6);
    synth_function(m.s, m.host, 6000, train, 0, 5950, 1, 0);
    ran(&m, 120, 1000, m.kernel, m.queue, 1);
    ran(&m, 5020, 5510, m.kernel, m.queue, 3);
    ran(&m, 5580, 5600, m.kernel, m.queue, 6);
    synth_close(m.s, true);
    struct sonde_trace          *trace = scratch_open(path);
    struct snd_gpu              *g = build(trace);
    const struct snd_gpu_device *d = &g->devices[0];
    const struct snd_gpu_gap    *wait = find_gap(g, 1000), *late = find_gap(g, 1010);
    assert_int_equal(g->gap_count, 4);
    assert_int_equal(wait->reason, SND_IDLE_SYNC);
    assert_int_equal(wait->duration_ns, 10);
    assert_int_equal(wait->drained_ns, 50); /* as far as the host was ahead */
    assert_int_equal(late->reason, SND_IDLE_HOST);
    assert_int_equal(late->duration_ns, 4010);
    assert_int_equal(late->frame, load);
    assert_int_equal(late->drained_ns, 0);
    wait = find_gap(g, 5510);
    late = find_gap(g, 5515);
    assert_int_equal(wait->drained_ns, 55); /* all the time to the launch */
    assert_true(is_in(g, late, "collate"));
    assert_int_equal(late->duration_ns, 65);
    assert_int_equal(d->idle_ns[SND_IDLE_SYNC], 15);
    assert_int_equal(d->idle_ns[SND_IDLE_HOST], 4010 + 65);
    assert_int_equal(d->drained_ns, 50 + 55);
    assert_int_equal(d->idle_ns[SND_IDLE_SYNC] + d->idle_ns[SND_IDLE_HOST] + d->busy_ns,
                     d->last_ns - d->first_ns);
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* The host is late where it was after the wait, however much longer that took. */
static void a_long_wait_is_not_where_the_host_was_late(void **state)
{
    const char *path = scratch_path("longer");
    struct made m = make(path);

    (void)state;
    call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
    begin(&m, m.host, 940, "aten::item");
    call(&m, m.host, 950, 1060, "cudaStreamSynchronize", 2);
    synth_end(m.s, m.host, 1075);
    begin(&m, m.host, 1075, "load");
    synth_end(m.s, m.host, 1115);
    call(&m, m.host, 1120, 1125, "cudaLaunchKernel", 3);
    ran(&m, 120, 1000, m.kernel, m.queue, 1);
    ran(&m, 1130, 1200, m.kernel, m.queue, 3);
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    struct snd_gpu           *g = build(trace);
    const struct snd_gpu_gap *late = find_gap(g, 1060);
    assert_int_equal(find_gap(g, 1000)->duration_ns, 60);
    assert_int_equal(late->reason, SND_IDLE_HOST);
    assert_int_equal(late->duration_ns, 70);
    assert_true(is_in(g, late, "load"));
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* A copy for which the host waited is one that was over when its call returned. */
static void a_blocking_copy_is_a_synchronisation(void **state)
{
    const char *path = scratch_path("blocking");
    struct made m = make(path);

    (void)state;
    call(&m, m.host, 100, 190, "cudaMemcpyAsync", 1); /* copied by 180 */
    call(&m, m.host, 200, 210, "cudaLaunchKernel", 2);
    call(&m, m.host, 220, 230, "cudaMemcpyAsync", 3); /* returns before its copy begins */
    call(&m, m.host, 400, 410, "cudaLaunchKernel", 4);
    ran(&m, 120, 180, m.copy, m.queue, 1);
    ran(&m, 215, 240, m.kernel, m.queue, 2);
    ran(&m, 240, 300, m.copy, m.queue, 3);
    ran(&m, 420, 430, m.kernel, m.queue, 4);
    synth_close(m.s, true);
    struct sonde_trace *trace = scratch_open(path);
    struct snd_gpu     *g = build(trace);
    assert_int_equal(find_gap(g, 180)->reason, SND_IDLE_SYNC);
    assert_int_equal(find_gap(g, 300)->reason, SND_IDLE_HOST);
    assert_int_equal(g->devices[0].idle_ns[SND_IDLE_COPY], 120);
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* Streams overlap, kernels and copies too; nothing is counted twice and nothing is left over. */
static void the_span_is_divided_without_rest(void **state)
{
    const char *path = scratch_path("whole");
    struct made m = make(path);

    (void)state;
    call(&m, m.host, 10, 20, "cudaLaunchKernel", 1);
    call(&m, m.host, 30, 40, "cudaMemcpyAsync", 2);
    ran(&m, 100, 200, m.kernel, m.queue, 1);
    ran(&m, 150, 250, m.kernel, m.queue, 1);  /* beside it */
    ran(&m, 240, 300, m.copy, m.queue, 2);    /* 10 beside the kernel, 50 alone */
    ran(&m, 290, 310, m.copy, m.queue, 2);    /* and 10 more */
    ran(&m, 350, 360, m.kernel, m.queue, 77); /* launched before the recording */
    ran(&m, 500, 600, m.kernel, m.second, 1); /* another GPU's */
    synth_close(m.s, true);
    struct sonde_trace          *trace = scratch_open(path);
    struct snd_gpu              *g = build(trace);
    const struct snd_gpu_device *d = &g->devices[0];
    assert_int_equal(g->device_count, 2);
    assert_int_equal(d->last_ns - d->first_ns, 260);
    assert_int_equal(d->busy_ns, 220);
    assert_int_equal(d->kernel_ns, 160);
    assert_int_equal(d->copy_ns, 70);
    assert_int_equal(d->overlap_ns, 10);
    assert_int_equal(d->idle_ns[SND_IDLE_COPY], 60);
    assert_int_equal(d->idle_ns[SND_IDLE_UNKNOWN], 40);
    int64_t sum = d->kernel_ns;
    for (int i = 0; i < SND_IDLE_REASONS; i++)
        sum += d->idle_ns[i];
    assert_int_equal(sum, 260);
    assert_int_equal(g->devices[1].device, CUDA1);
    assert_int_equal(g->devices[1].busy_ns, 100);
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* ProfilerStep#N where there is one, whose end is known; else from STEP to STEP. */
static void steps_are_divided_by_what_the_gpu_did_in_them(void **state)
{
    const char *path = scratch_path("steps");
    struct made m = make(path);

    (void)state;
    synth_step(m.s, m.host, 5, 1); /* not shown: there are ranges */
    begin(&m, m.host, 10, "ProfilerStep#3");
    call(&m, m.host, 20, 30, "cudaLaunchKernel", 1);
    synth_end(m.s, m.host, 110);
    begin(&m, m.host, 120, "ProfilerStep#4");
    begin(&m, m.host, 121, "aten::mm");
    call(&m, m.host, 180, 190, "cudaLaunchKernel", 2);
    synth_end(m.s, m.host, 195);
    synth_end(m.s, m.host, 220);
    ran(&m, 50, 130, m.kernel, m.queue, 1);
    ran(&m, 200, 300, m.kernel, m.queue, 2);
    synth_close(m.s, true);
    struct sonde_trace *trace = scratch_open(path);
    struct snd_gpu     *g = build(trace);
    assert_int_equal(g->step_count, 2);
    assert_int_equal(g->steps[0].number, 3);
    assert_int_equal(g->steps[0].duration_ns, 100);
    assert_int_equal(g->steps[0].busy_ns, 60);
    assert_int_equal(g->steps[1].number, 4);
    assert_int_equal(g->steps[1].busy_ns, 10 + 20);
    assert_int_equal(g->steps[1].idle_ns[SND_IDLE_HOST], 70);
    assert_true(is_in(g, find_gap(g, 130), "aten::mm"));
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* Each device has its own gaps in a step, also the second, and in the second step. */
static void steps_have_the_gaps_of_each_device(void **state)
{
    static const struct {
        uint32_t device;
        int64_t  number, busy_ns, kernel_ns, host_ns, copy_ns;
    } expected[] = {
        { CUDA0, 1, 60, 60, 40, 0 },
        { CUDA0, 2, 50, 30, 50, 20 },
        { CUDA1, 1, 20, 20, 60, 0 },
        { CUDA1, 2, 30, 30, 70, 0 },
    };
    const char *path = scratch_path("devices");
    struct made m = make(path);

    (void)state;
    begin(&m, m.host, 100, "ProfilerStep#1");
    call(&m, m.host, 100, 101, "cudaLaunchKernel", 1);
    call(&m, m.host, 102, 103, "cudaLaunchKernel", 2);
    call(&m, m.host, 155, 156, "cudaLaunchKernel", 3);
    synth_end(m.s, m.host, 200);
    begin(&m, m.host, 200, "ProfilerStep#2");
    call(&m, m.host, 205, 206, "cudaLaunchKernel", 4);
    call(&m, m.host, 255, 256, "cudaLaunchKernel", 5);
    call(&m, m.host, 260, 261, "cudaMemcpyAsync", 6);
    call(&m, m.host, 265, 266, "cudaLaunchKernel", 7);
    synth_end(m.s, m.host, 300);
    ran(&m, 100, 150, m.kernel, m.queue, 1);
    ran(&m, 190, 210, m.kernel, m.queue, 3);
    ran(&m, 260, 280, m.copy, m.queue, 6);
    ran(&m, 280, 320, m.kernel, m.queue, 5);
    ran(&m, 120, 140, m.kernel, m.second, 2);
    ran(&m, 270, 310, m.kernel, m.second, 7);
    synth_close(m.s, true);
    struct sonde_trace *trace = scratch_open(path);
    struct snd_gpu     *g = build(trace);
    assert_int_equal(g->step_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct snd_gpu_step *row = NULL;
        for (uint32_t k = 0; k < 4; k++)
            if (g->devices[g->steps[k].device].device == expected[i].device &&
                g->steps[k].number == (uint64_t)expected[i].number)
                row = &g->steps[k];
        assert_non_null(row);
        assert_int_equal(row->start_ns, 100 * expected[i].number);
        assert_int_equal(row->duration_ns, 100);
        assert_int_equal(row->busy_ns, expected[i].busy_ns);
        assert_int_equal(row->kernel_ns, expected[i].kernel_ns);
        assert_int_equal(row->idle_ns[SND_IDLE_HOST], expected[i].host_ns);
        assert_int_equal(row->idle_ns[SND_IDLE_COPY], expected[i].copy_ns);
    }
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* Between operators there is no range: the innermost Python function around it is the place. */
static void python_functions_tell_where_the_host_was(void **state)
{
    const char *path = scratch_path("python");
    struct made m = make(path);
    uint32_t    file = synth_string(m.s, "train.py");
    uint32_t    load = synth_frame_in(m.s, synth_string(m.s, "load"), 7, file, 9, false);
    uint32_t    train = synth_frame_in(m.s, synth_string(m.s, "train"), 30, file, 41, false);
    uint32_t    short_one = synth_frame_in(m.s, synth_string(m.s, "next"), 3, file, 3, false);

    (void)state;
    call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
    synth_function(m.s, m.host, 320, short_one, 0, 20, 3, 2); /* within the gap only */
    call(&m, m.host, 400, 410, "cudaLaunchKernel", 2);
    synth_function(m.s, m.host, 450, load, 0, 300, 2, 1);
    synth_function(m.s, m.host, 500, train, 0, 450, 1, 0);
    ran(&m, 150, 200, m.kernel, m.queue, 1);
    ran(&m, 420, 430, m.kernel, m.queue, 2);
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    struct snd_gpu           *g = build(trace);
    const struct snd_gpu_gap *gap = find_gap(g, 200);
    assert_int_equal(gap->reason, SND_IDLE_HOST);
    assert_int_equal(gap->frame, load);
    assert_int_equal(g->causes[0].frame, load);
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

/* Calls, gaps, steps and the ledger below them, of a host that is late on one of two threads. */
static void the_view_walks_once(void **state)
{
    const char                 *path = scratch_path("once");
    struct made                 m = make(path);
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);

    (void)state;
    synth_step(m.s, m.host, 50, 1);
    call(&m, m.host, 100, 110, "cudaLaunchKernel", 1);
    begin(&m, m.other, 120, "elsewhere");
    begin(&m, m.host, 200, "thinks");
    synth_end(m.s, m.host, 400);
    call(&m, m.host, 410, 420, "cudaLaunchKernel", 2);
    synth_end(m.s, m.other, 500);
    synth_step(m.s, m.host, 600, 2);
    ran(&m, 150, 180, m.kernel, m.queue, 1);
    ran(&m, 430, 440, m.kernel, m.queue, 2);
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    const struct snd_devices *work;
    assert_int_equal(snd_trace_devices(trace, &work, NULL), SONDE_OK);
    uint32_t        before = trace->walks; /* what GPUs did is read once for all views */
    struct snd_gpu *g = build(trace);
    assert_int_equal(trace->walks, before + 1);
    assert_int_equal(g->gap_count, 1);
    assert_int_equal(g->gaps[0].reason, SND_IDLE_HOST);
    assert_true(is_in(g, &g->gaps[0], "thinks"));
    assert_int_equal(g->step_count, 2);
    snd_gpu_free(g);
    options.view = "gpu";
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    assert_int_equal(trace->walks, before + 2); /* with the ledger */
    options.view = "summary";
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    assert_int_equal(trace->walks, before + 3); /* with the advice */
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

static void a_trace_without_a_gpu_has_none(void **state)
{
    struct synth *s = synth_new(scratch_path("none"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_begin(s, t, 10, synth_string(s, "work"), 0);
    synth_end(s, t, 20);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("none"));
    struct snd_gpu     *g = build(trace);
    assert_int_equal(g->device_count, 0);
    assert_int_equal(trace->walks, 0);
    snd_gpu_free(g);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_launch_decides_whether_the_host_was_late),
        cmocka_unit_test(a_slow_call_of_the_api_is_named),
        cmocka_unit_test(synchronisation_is_a_wait_that_the_gap_began_in),
        cmocka_unit_test(a_wait_that_returns_as_the_gap_begins_is_over),
        cmocka_unit_test(steps_have_the_gaps_of_each_device),
        cmocka_unit_test(what_follows_a_wait_is_the_hosts),
        cmocka_unit_test(a_long_wait_is_not_where_the_host_was_late),
        cmocka_unit_test(a_blocking_copy_is_a_synchronisation),
        cmocka_unit_test(the_span_is_divided_without_rest),
        cmocka_unit_test(steps_are_divided_by_what_the_gpu_did_in_them),
        cmocka_unit_test(python_functions_tell_where_the_host_was),
        cmocka_unit_test(the_view_walks_once),
        cmocka_unit_test(a_trace_without_a_gpu_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
