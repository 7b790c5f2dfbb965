/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA probe, with a stand-in for CUPTI: what becomes of its records and callbacks, what is said when
 * it refuses, and that what was played back of a real GPU comes out whole.
 */
#include <dlfcn.h>
#include <inttypes.h>

#include "format/layout.h"
#include "gpu/standin.h"
#include "probes/cuda/cuda.h"
#include "probes/cuda/cupti.h"
#include "read/walk/device_work.h"
#include "read/said/trace_facts.h"
#include "read/reader.h"
#include "recorded.h"

enum { LAUNCH = 211, COPY = 41, GET_DEVICE = 17, DRIVER_LAUNCH = 307 };
#define KERNEL "_Z4gemmPfi"

static const struct sonde_cuda_options plain = { .struct_size = sizeof plain };
static const struct sonde_cuda_options light = { .struct_size = sizeof light, .light = true };

static void launch(uint32_t correlation, uint32_t stream)
{
    standin_call(CUPTI_RUNTIME_API, LAUNCH, CUPTI_ENTER, correlation);
    standin_call(CUPTI_DRIVER_API, DRIVER_LAUNCH, CUPTI_ENTER, correlation);
    uint64_t start = standin_time() + 2000;
    standin_kernel(KERNEL, start, start + 5000, correlation, stream, 0);
    standin_call(CUPTI_DRIVER_API, DRIVER_LAUNCH, CUPTI_EXIT, correlation);
    standin_call(CUPTI_RUNTIME_API, LAUNCH, CUPTI_EXIT, correlation);
    while (standin_time() < start + 6000)
        ;
}

static void begin_as(const char *name, const struct sonde_cuda_options *how)
{
    struct sonde_options options = recorded_options(name);

    recorded_start(&options);
    if (sonde_cuda_start(how) != 0)
        fail_msg("%s", sonde_cuda_error());
}

static void begin(const char *name)
{
    begin_as(name, &plain);
}

/* Ends it, and reads what there is. */
static struct sonde_trace *end(const struct snd_devices **devices)
{
    struct sonde_trace *trace;
    char                path[PATH_MAX];

    sonde_cuda_stop();
    recorded_stop();
    sonde_trace_path(path, sizeof path);
    assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
    assert_int_equal(snd_trace_devices_by_time(trace, devices, NULL), SONDE_OK);
    return trace;
}

static uint64_t tallied(const struct sonde_trace *trace, unsigned word)
{
    struct sonde_tally_row row;
    uint64_t               sum = 0;

    for (uint32_t n = 0; sonde_trace_tally(trace, 0, n, &row); n++)
        sum += row.kind == SONDE_TALLY_GPU ? row.words[word] : 0;
    return sum;
}

static bool is_named(const struct sonde_trace *trace, uint32_t id, const char *name)
{
    struct sonde_text text = sonde_trace_string(trace, 0, id);

    return text.length == strlen(name) && memcmp(text.bytes, name, text.length) == 0;
}

struct counted {
    const struct sonde_trace *trace;
    uint32_t                  name;
    uint32_t                  launches, copies, apis;
};

static bool count_event(const struct sonde_event *event, void *user)
{
    struct counted *counted = user;

    if (event->kind == SONDE_EVENT_BEGIN)
        counted->name = event->begin.name;
    if (event->kind == SONDE_EVENT_ATTR && event->attr.key == SND_ATTR_API) {
        counted->apis++;
        counted->launches += is_named(counted->trace, counted->name, "cudaLaunchKernel");
        counted->copies += is_named(counted->trace, counted->name, "cudaMemcpyAsync");
    }
    return true;
}

static struct counted count_calls(struct sonde_trace *trace)
{
    struct counted counted = { .trace = trace };

    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_THREAD, count_event, &counted, NULL),
                     SONDE_OK);
    return counted;
}

/* ------------------------------------------------------------------------ works */

static void kernels_have_their_call(void **state)
{
    const struct snd_devices *devices;
    /* As C++'s own library says it, where there is one. */
    const char *name = dlopen("libstdc++.so.6", RTLD_LAZY) ? "gemm(float*, int)" : KERNEL;

    (void)state;
    begin("kernels.sonde");
    for (uint32_t i = 1; i <= 20; i++)
        launch(1000 + i, 7 + i % 2);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(devices->count, 20);
    for (uint32_t i = 0; i < 20; i++) {
        const struct snd_device_item  *item = &devices->items[devices->by_time[i]];
        const struct snd_work_record  *work = snd_device_work(trace, item);
        const struct snd_queue_record *queue = snd_device_queue(trace, item);
        assert_int_equal(item->correlation, 1001 + i);
        assert_in_range(item->duration_ns, 4900, 5100);
        assert_int_equal(work->kind, SND_WORK_KERNEL);
        assert_true(is_named(trace, work->name, name));
        assert_int_equal(work->grid[0], 4);
        assert_int_equal(work->block[0], 128);
        assert_int_equal(work->registers, 16);
        assert_int_equal(work->shared_dynamic, 1024);
        assert_int_equal(queue->device, SND_DEVICE(1, 0));
        assert_int_equal(queue->stream, 7 + (i + 1) % 2);
    }
    struct counted counted = count_calls(trace);
    assert_int_equal(counted.apis, 20); /* that of the driver is inside: not once more */
    assert_int_equal(counted.launches, 20);
    assert_int_equal(tallied(trace, SND_GPU_RECORDS), 20);
    assert_int_equal(tallied(trace, SND_GPU_EARLY), 0);
    assert_int_equal(tallied(trace, SND_GPU_UNASKED), 0);
    sonde_trace_close(trace);
}

static uint64_t lane_bytes(const struct sonde_trace *trace)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < trace->processes[0].lane_count; i++)
        bytes += trace->processes[0].lanes[i].used - sizeof(struct snd_chunk_header);
    return bytes;
}

/* A call and a kernel: three words each. */
static void what_they_take(void **state)
{
    enum { MANY = 100 };
    const struct snd_devices *devices;
    uint64_t                  bytes[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin(i == 0 ? "few.sonde" : "many.sonde");
        for (uint32_t k = 1; k <= MANY * (i + 1); k++)
            launch(2000 + 1000 * i + k, 7);
        struct sonde_trace *trace = end(&devices);
        assert_int_equal(devices->count, MANY * (i + 1));
        assert_int_equal(count_calls(trace).apis, MANY * (i + 1));
        bytes[i] = lane_bytes(trace);
        sonde_trace_close(trace);
    }
#if defined(__x86_64__)
    assert_int_equal(bytes[1] - bytes[0], MANY * (24 + 24));
#else /* a slow counter: a call that takes no tick at all has its end in an event of its own */
    assert_in_range(bytes[1] - bytes[0], MANY * (24 + 16), MANY * (24 + 32));
#endif
}

static void copies_and_nodes(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    begin("copies.sonde");
    standin_call(CUPTI_RUNTIME_API, COPY, CUPTI_ENTER, 5);
    uint64_t start = standin_time() + 1000;
    standin_copy(1, 4096, start, start + 800, 5);
    standin_kernel(KERNEL, start + 1000, start + 2000, 5, 7, UINT64_C(1) << 40);
    standin_call(CUPTI_RUNTIME_API, COPY, CUPTI_EXIT, 5);
    standin_call(CUPTI_RUNTIME_API, GET_DEVICE, CUPTI_ENTER, 6); /* one that is left out */
    standin_call(CUPTI_RUNTIME_API, GET_DEVICE, CUPTI_EXIT, 6);
    struct sonde_trace           *trace = end(&devices);
    const struct snd_device_item *items = devices->items;
    assert_int_equal(devices->count, 2);
    const struct snd_work_record *copy = snd_device_work(trace, &items[0]);
    assert_int_equal(copy->kind, SND_WORK_COPY);
    assert_int_equal(copy->bytes, 4096);
    assert_true(is_named(trace, copy->name, "Memcpy HtoD (Pinned -> Device)"));
    assert_int_equal(items[1].node, UINT64_C(1) << 40);
    assert_int_equal(count_calls(trace).apis, 1);
    sonde_trace_close(trace);
}

/* A driver's own launch has no call of the runtime around it. */
static void launches_of_the_driver(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    begin("driver.sonde");
    standin_call(CUPTI_DRIVER_API, DRIVER_LAUNCH, CUPTI_ENTER, 9);
    uint64_t start = standin_time() + 1000;
    standin_kernel(KERNEL, start, start + 100, 9, 7, 0);
    standin_call(CUPTI_DRIVER_API, DRIVER_LAUNCH, CUPTI_EXIT, 9);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(devices->count, 1);
    assert_int_equal(count_calls(trace).apis, 1);
    sonde_trace_close(trace);
}

static void losses_are_counted(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    begin("losses.sonde");
    launch(1, 7);
    uint64_t now = standin_time();
    standin_kernel(KERNEL, now + 1000, now + 2000, 99, 7, 0); /* no call asked for it */
    standin_kernel(KERNEL, 0, 0, 1, 7, 0);                    /* no times */
    standin_unknown();
    standin_set("dropped", 12);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(devices->count, 2);
    assert_int_equal(tallied(trace, SND_GPU_DROPPED), 13);
    assert_int_equal(tallied(trace, SND_GPU_UNKNOWN), 1);
    assert_int_equal(tallied(trace, SND_GPU_UNASKED), 1);
    sonde_trace_close(trace);
}

static void a_wrong_clock_is_noticed(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    begin("clock.sonde");
    launch(1, 7);
    usleep(1000); /* what begins before the first call is not of this recording */
    uint64_t now = standin_time();
    standin_call(CUPTI_RUNTIME_API, LAUNCH, CUPTI_ENTER, 2);
    standin_kernel(KERNEL, now - 5000, now, 2, 7, 0); /* 5 us before it was asked for */
    standin_call(CUPTI_RUNTIME_API, LAUNCH, CUPTI_EXIT, 2);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(tallied(trace, SND_GPU_EARLY), 1);
    assert_in_range(tallied(trace, SND_GPU_EARLY_NS), 4000, 60000000);
    sonde_trace_close(trace);
}

/* torch.profiler leaves CUPTI stamping records with the processor's counter. */
static void records_stamped_by_the_counter(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    if (!sonde_clock_is_counter())
        skip();
    begin("counter.sonde");
    standin_call(CUPTI_RUNTIME_API, LAUNCH, CUPTI_ENTER, 2);
    uint64_t now = sonde_clock();
    standin_kernel(KERNEL, now + 1000, now + 3000, 2, 7, 0);
    standin_call(CUPTI_RUNTIME_API, LAUNCH, CUPTI_EXIT, 2);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(devices->count, 1);
    assert_int_equal(tallied(trace, SND_GPU_EARLY), 0);
#if defined(__x86_64__)
    assert_in_range(devices->items[0].duration_ns, 100, 2100);
#else /* 2,000 ticks of a counter of 20 MHz to 1 GHz */
    assert_in_range(devices->items[0].duration_ns, 2000, 100000);
#endif
    sonde_trace_close(trace);
}

/* Work of before the recording, which CUPTI hands over late, is none of it. */
static void work_of_before_is_left_out(void **state)
{
    const struct sonde_cuda_options *const how[] = { &plain, &light };
    const struct snd_devices              *devices;

    (void)state;
    for (int i = 0; i < 2; i++) {
        begin_as("before.sonde", how[i]);
        sonde_pause();
        uint64_t before = standin_time();
        standin_kernel(KERNEL, before, before + 1000, 70, 7, 0);
        usleep(1000);
        sonde_resume();
        launch(71, 7);
        struct sonde_trace *trace = end(&devices);
        assert_int_equal(devices->count, 1);
        assert_int_equal(devices->items[0].correlation, 71);
        sonde_trace_close(trace);
    }
}

/* ------------------------------------------------------------------------- life */

/* Whoever ends a recording while the probe is on: what the GPU was given to do is in it. */
static void what_is_under_way_is_in_the_file(void **state)
{
    struct sonde_options      options = recorded_options("stop.sonde");
    const struct snd_devices *devices;
    struct sonde_trace       *trace;
    long                      waits = standin_get("waits");

    (void)state;
    recorded_start(&options);
    assert_int_equal(sonde_cuda_start(&plain), 0);
    launch(1, 7);
    sonde_pause();
    assert_int_equal(standin_get("waits"), waits + 1);
    sonde_resume();
    launch(2, 7);
    recorded_stop();
    assert_int_equal(standin_get("waits"), waits + 2);
    assert_int_equal(sonde_trace_open(options.path, &trace, NULL), SONDE_OK);
    assert_int_equal(snd_trace_devices_by_time(trace, &devices, NULL), SONDE_OK);
    assert_int_equal(devices->count, 2);
    sonde_trace_close(trace);
    sonde_cuda_stop();
    assert_int_equal(standin_get("subscriptions"), 0);
    assert_int_equal(standin_get("kinds"), 0);
}

static void record_cycles(const struct sonde_cuda_options *how)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    char                 folder[PATH_MAX + 8];

    snprintf(folder, sizeof folder, "%s/", recorded_path("cycles"));
    assert_int_equal(mkdir(folder, 0700), 0);
    options.path = folder;
    options.schedule = (struct sonde_schedule){ .wait = 1, .active = 2, .repeat = 2 };
    recorded_start(&options);
    assert_int_equal(sonde_cuda_start(how), 0);
    for (uint32_t step = 0; step < 6; step++) {
        launch(100 + step, 7);
        sonde_step();
    }
    sonde_cuda_stop();
    recorded_stop();
    struct sonde_trace       *trace;
    const struct snd_devices *devices;
    assert_int_equal(sonde_trace_open(folder, &trace, NULL), SONDE_OK);
    assert_int_equal(snd_trace_devices_by_time(trace, &devices, NULL), SONDE_OK);
    assert_int_equal(devices->count, 4);
    sonde_trace_close(trace);
    char command[PATH_MAX + 24];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void cycles_of_a_schedule(void **state)
{
    (void)state;
    record_cycles(&plain);
    record_cycles(&light);
}

static void nested_starts(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    begin("nested.sonde");
    assert_int_equal(sonde_cuda_start(&plain), 0);
    launch(1, 7);
    sonde_cuda_stop();
    assert_int_equal(standin_get("kinds"), 1);
    launch(2, 7);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(devices->count, 2);
    sonde_trace_close(trace);
}

/* -------------------------------------------------------------------- refusals */

static void refusals_are_said(void **state)
{
    static const struct {
        const char *what;
        long        result;
        const char *said;
    } refusals[] = {
        { "subscribe", CUPTI_E_MULTIPLE_SUBSCRIBERS, "another profiler has CUPTI" },
        { "enable", CUPTI_E_PRIVILEGES, "NVreg_RestrictProfilingToAdminUsers=0" },
        { "enable", CUPTI_E_MIG, "(MIG) cannot be profiled" },
        { "runtime", 15000, "is that of CUDA 13, too old for this process, which uses CUDA 15" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct sonde_options options = recorded_options("refused.sonde");
        recorded_start(&options);
        standin_set(refusals[i].what, refusals[i].result);
        assert_int_equal(sonde_cuda_start(&plain), -1);
        assert_non_null(strstr(sonde_cuda_error(), refusals[i].said));
        standin_set(refusals[i].what, 0);
        sonde_begin("goes on");
        sonde_end();
        recorded_stop();
        assert_int_equal(standin_get("subscriptions"), 0);
        assert_int_equal(standin_get("kinds"), 0);
    }
}

/* CUPTI is told that buffers are zeros: they are, when they come again as well. */
static void buffers_are_zeros(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    for (int cycle = 0; cycle < 3; cycle++) {
        begin("zeros.sonde");
        assert_int_equal(standin_get("zeroed"), 1);
        for (uint32_t i = 1; i <= 5; i++)
            launch(5000 + i, 7);
        sonde_trace_close(end(&devices));
        assert_int_equal(standin_get("zeroed"), 0); /* as whoever is next expects it */
    }
    assert_int_equal(standin_get("dirty"), 0);
}

/* The works of a GPU whose callbacks another profiler has. */
static void works_without_calls(void **state)
{
    const struct sonde_cuda_options shared = { .struct_size = sizeof shared, .share = true };
    struct sonde_options            options = recorded_options("shared.sonde");
    const struct snd_devices       *devices;

    (void)state;
    recorded_start(&options);
    standin_set("subscribe", CUPTI_E_MULTIPLE_SUBSCRIBERS);
    assert_int_equal(sonde_cuda_start(&shared), 1);
    assert_non_null(strstr(sonde_cuda_error(), "another profiler"));
    uint64_t now = standin_time();
    standin_kernel(KERNEL, now + 1000, now + 2000, 3, 7, 0);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(devices->count, 1);
    assert_int_equal(tallied(trace, SND_GPU_UNASKED), 1);
    sonde_trace_close(trace);
    standin_set("subscribe", 0);
}

/* ----------------------------------------------------------------------- light */

/* What is recorded of each work. */
struct seen {
    char     name[64];
    int64_t  duration_ns;
    uint64_t node;
    uint32_t kind, stream, correlation;
};

/* Plays a recording of a GPU; returns how many works there are of it. */
static uint32_t see_works(const char *file, const struct sonde_cuda_options *how, struct seen *seen,
                          uint32_t most, struct sonde_trace **trace)
{
    const struct snd_devices *devices;
    struct sonde_options      options = recorded_options("level.sonde");
    char                      path[PATH_MAX];
    uint32_t                  count = 0;

    snprintf(path, sizeof path, "%s/%s", getenv("SONDE_CUDA_DATA"), file);
    recorded_start(&options);
    assert_int_equal(standin_load(path), 0);
    assert_int_equal(sonde_cuda_start(how), 0);
    sonde_begin("a range");
    standin_play();
    sonde_end();
    *trace = end(&devices);
    for (uint32_t i = 0; i < devices->count; i++) {
        const struct snd_device_item  *item = &devices->items[devices->by_time[i]];
        const struct snd_queue_record *queue = snd_device_queue(*trace, item);
        if (!snd_work_counts(snd_device_work(*trace, item)))
            continue;
        assert_in_range(count, 0, most - 1);
        struct snd_text name = (*trace)->names.items[snd_device_name(*trace, item)];
        seen[count] = (struct seen){ .duration_ns = item->duration_ns,
                                     .node = item->node,
                                     .kind = snd_device_work(*trace, item)->kind,
                                     .stream = queue ? queue->stream : 0,
                                     .correlation = item->correlation };
        snprintf(seen[count++].name, sizeof seen->name, "%s", name.bytes);
    }
    return count;
}

/* All works of the full level, with nothing of the calls; the ledger says that they were not asked for. */
static void light_has_the_works_alone(void **state)
{
    static const char *const files[] = { "train.bin", "graph.bin" };
    static struct seen       full[256], less[256];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct sonde_trace   *trace;
        struct sonde_summary *summary;
        uint32_t              count = see_works(files[i], &plain, full, 256, &trace);
        assert_true(count_calls(trace).apis > 0);
        assert_false(snd_gpus_are_light(trace));
        sonde_trace_close(trace);
        long calls = standin_get("calls");
        assert_int_equal(see_works(files[i], &light, less, 256, &trace), count);
        assert_int_equal(standin_get("calls"), calls); /* none was even reported */
        for (uint32_t k = 0; k < count; k++) {
            assert_string_equal(less[k].name, full[k].name);
            assert_in_range(less[k].duration_ns, full[k].duration_ns - 50,
                            full[k].duration_ns + 50);
            assert_int_equal(less[k].node, full[k].node);
            assert_int_equal(less[k].kind, full[k].kind);
            assert_int_equal(less[k].stream, full[k].stream);
            assert_int_equal(less[k].correlation, full[k].correlation);
        }
        assert_int_equal(count_calls(trace).apis, 0);
        assert_true(snd_gpus_are_light(trace));
        assert_int_equal(tallied(trace, SND_GPU_UNASKED), 0);
        assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
        assert_int_equal(sonde_summary_totals(summary)->ranges, 1);
        assert_int_equal(sonde_summary_ledger_count(summary), 1);
        assert_string_equal(sonde_summary_ledger(summary, 0)->key, "unasked_gpu_calls");
        assert_true(sonde_summary_ledger(summary, 0)->is_note);
        sonde_summary_free(summary);
        sonde_trace_close(trace);
    }
    assert_int_equal(standin_get("subscriptions"), 0);
    assert_int_equal(standin_get("kinds"), 0);
}

/* No call says which GPUs there are: all that have a context are waited for. */
static void light_waits_for_all_devices(void **state)
{
    const struct snd_devices *devices;

    (void)state;
    standin_set("devices", 2);
    begin_as("waits.sonde", &light);
    launch(1, 7);
    launch(2, 7);
    long                waits = standin_get("waits");
    struct sonde_trace *trace = end(&devices);
    assert_true(standin_get("waits") >= waits + 2);
    assert_int_equal(devices->count, 2);
    sonde_trace_close(trace);
    standin_set("devices", 1);
}

/* ... where another profiler has CUPTI's callbacks as well: none of them is missed. */
static void light_needs_no_callbacks(void **state)
{
    static const struct sonde_cuda_options shared = { .struct_size = sizeof shared,
                                                      .share = true,
                                                      .light = true };
    struct sonde_options                   options = recorded_options("alone.sonde");
    const struct snd_devices              *devices;

    (void)state;
    recorded_start(&options);
    standin_set("subscribe", CUPTI_E_MULTIPLE_SUBSCRIBERS);
    assert_int_equal(sonde_cuda_start(&shared), 0);
    launch(3, 7);
    struct sonde_trace *trace = end(&devices);
    assert_int_equal(devices->count, 1);
    assert_int_equal(tallied(trace, SND_GPU_UNASKED), 0);
    sonde_trace_close(trace);
    standin_set("subscribe", 0);
}

/* ------------------------------------------------------------------ recordings */

static void recordings_come_out_whole(void **state)
{
    static const struct {
        const char *file;
        uint32_t    works, apis, nodes;
    } recordings[] = { { "train.bin", 58, 101, 0 }, { "graph.bin", 15, 7, 15 } };

    (void)state;
    for (size_t i = 0; i < sizeof recordings / sizeof recordings[0]; i++) {
        const struct snd_devices *devices;
        struct sonde_options      options = recorded_options("replay.sonde");
        char                      path[PATH_MAX];
        uint32_t                  nodes = 0, works = 0;
        snprintf(path, sizeof path, "%s/%s", getenv("SONDE_CUDA_DATA"), recordings[i].file);
        recorded_start(&options);
        assert_int_equal(standin_load(path), 0);
        assert_int_equal(sonde_cuda_start(&plain), 0);
        standin_play();
        struct sonde_trace *trace = end(&devices);
        for (uint32_t k = 0; k < devices->count; k++) {
            works += snd_work_counts(snd_device_work(trace, &devices->items[k]));
            nodes += devices->items[k].node != 0;
        }
        assert_int_equal(works, recordings[i].works);
        assert_int_equal(nodes, recordings[i].nodes);
        assert_int_equal(count_calls(trace).apis, recordings[i].apis);
        assert_int_equal(tallied(trace, SND_GPU_EARLY), 0);
        assert_int_equal(tallied(trace, SND_GPU_UNASKED), 0);
        assert_int_equal(tallied(trace, SND_GPU_UNKNOWN), 0);
        sonde_trace_close(trace);
        standin_set("shift", 0);
    }
}

/* The recording of a real GPU, every second call of which was made for another one. */
static void two_devices_are_told_apart(void **state)
{
    const struct snd_devices *devices;
    struct sonde_options      options = recorded_options("two.sonde");
    char                      path[PATH_MAX];
    uint32_t                  works[2] = { 0, 0 }, facts = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/train.bin", getenv("SONDE_CUDA_DATA"));
    recorded_start(&options);
    assert_int_equal(standin_load(path), 0);
    standin_set("devices", 2);
    assert_int_equal(sonde_cuda_start(&plain), 0);
    standin_play();
    long                waits = standin_get("waits");
    struct sonde_trace *trace = end(&devices);
    assert_true(standin_get("waits") - waits >= 2); /* for the work of each context */
    for (uint32_t i = 0; i < devices->count; i++) {
        const struct snd_device_item *item = &devices->items[i];
        if (!snd_work_counts(snd_device_work(trace, item)))
            continue;
        const struct snd_queue_record *queue = snd_device_queue(trace, item);
        uint32_t                       second = item->correlation % 2;
        assert_int_equal(queue->device, SND_DEVICE(1, second));
        assert_int_equal(queue->context, 1 + second);
        works[second]++;
    }
    assert_int_equal(works[0] + works[1], 58);
    assert_true(works[0] > 10 && works[1] > 10);
    const struct snd_tables *t = &trace->processes[0].tables;
    for (uint32_t i = 1; i < t->fact_count; i++)
        facts += t->facts[i].kind == SND_FACT_OF_DEVICE;
    assert_int_equal(facts, 2);
    assert_int_equal(tallied(trace, SND_GPU_UNASKED), 0);
    sonde_trace_close(trace);
    standin_set("devices", 1);
    standin_set("shift", 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_have_their_call),
        cmocka_unit_test(what_they_take),
        cmocka_unit_test(copies_and_nodes),
        cmocka_unit_test(launches_of_the_driver),
        cmocka_unit_test(losses_are_counted),
        cmocka_unit_test(a_wrong_clock_is_noticed),
        cmocka_unit_test(records_stamped_by_the_counter),
        cmocka_unit_test(work_of_before_is_left_out),
        cmocka_unit_test(what_is_under_way_is_in_the_file),
        cmocka_unit_test(cycles_of_a_schedule),
        cmocka_unit_test(nested_starts),
        cmocka_unit_test(refusals_are_said),
        cmocka_unit_test(buffers_are_zeros),
        cmocka_unit_test(works_without_calls),
        cmocka_unit_test(light_has_the_works_alone),
        cmocka_unit_test(light_waits_for_all_devices),
        cmocka_unit_test(light_needs_no_callbacks),
        cmocka_unit_test(recordings_come_out_whole),
        cmocka_unit_test(two_devices_are_told_apart),
    };
    Dl_info info;

    if (dladdr((void *)(uintptr_t)&standin_play, &info) == 0)
        return 1;
    setenv("SONDE_CUPTI", info.dli_fname, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
