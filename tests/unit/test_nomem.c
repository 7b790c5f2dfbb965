/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the reading side fails once: the right status, no leak, no crash. Of the largest uses, one of so many,
 * and the first of each place that allocates (unit/allocation_places.h).
 * Linked with --wrap for malloc, calloc and realloc.
 */
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

#include "allocation_places.h"
#include "base/data/crc32c.h"
#include "cases.h"
#include "failing_memory.h"
#include "format/layout.h"
#include "model/gpu/gpu.h"
#include "model/gpu/kernels.h"
#include "model/diff/diff.h"
#include "model/ranks/host_clocks.h"
#include "model/ranks/rank_times.h"
#include "read/reader.h"
#include "scratch.h"
#include "sonde/bench.h"
#include "sonde/export.h"
#include "sonde/graph.h"
#include "sonde/layers.h"
#include "sonde/tensorlines.h"
#include "turns.h"

static const char *write_trace(void)
{
    struct synth_options options = { .grain = 4096 };
    const char          *path = scratch_path("trace");
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0), u = synth_thread(s, NULL, 0);
    uint32_t             file = synth_string(s, "f.c");
    uint32_t             stack = synth_stack(s, 0, synth_frame(s, file, file, 1));

    synth_meta(s, "key", "value");
    synth_meta(s, "model", "{\"name\": \"n\", \"device\": \"cpu\"}");
    synth_meta(s, "module net.a", "{\"class\": \"Linear\"}");
    synth_meta(s, "model.io net.a", "{\"in\": \"[[1]]\", \"out\": \"[[2]]\"}");
    synth_meta(s, "model.graph", "{\"batch\": 1, \"tracer\": \"torch.fx\"}");
    synth_meta(s, "model.node 1", "{\"name\": \"x\", \"in\": \"[[1]]\"}");
    synth_meta(s, "model.lines 1",
               "{\"name\": \"f.c\", \"file\": \"f.c\", \"first\": 1, "
               "\"lines\": [\"a\", \"b\"]}");
    synth_meta(s, "layers", "model_name=m\nbatch_size=1\nlayers=1\nenvironment.a=b");
    synth_meta(s, "layer 1", "name=a\nin=torch.float32 [3] 12\nout=torch.float32 [] 4");
    synth_span(s, t, 80, synth_string(s, "layer 1"), 5);
    synth_begin(s, t, 90, synth_string(s, "model.forward batch=1"), 0);
    synth_end(s, t, 95);
    synth_begin(s, t, 96, synth_string(s, "model.pass batch=1"), 0);
    for (unsigned i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "name %u", i);
        synth_begin(s, t, 100 + i * 10, synth_string(s, name), synth_shapes(s, "1,2;3"));
        synth_attr(s, t, SND_ATTR_STACK, stack);
        synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, i & 1 ? "net.a" : "net.b.0|Conv2d"));
        synth_attr(s, t, SND_ATTR_SEQUENCE, i);
        synth_attr(s, t, SND_ATTR_KEY, 1000 + i);
        synth_alloc(s, t, 101 + i * 10, i, i, 5);
        synth_step(s, u, 102 + i * 10, i);
        synth_link(s, u, 103 + i * 10, SND_LINK_FLOW, false, i);
    }
    uint32_t line = synth_frame_in(s, file, 7, file, 8, false);
    for (unsigned i = 0; i < 20; i++) {
        static const uint64_t words[8] = { 1, 1, 10, 5, 0, 0, 1, 10 };
        line = synth_frame_in(s, file, 7, file, 8 + i, false);
        stack = synth_stack(s, stack, line);
        synth_tally(s, SND_TALLY_LINE, line, 0, words, 2);
        synth_sample(s, u, 890, stack, 1 << 8 | 3, t, 100);
    }
    synth_free(s, u, 900, 0, 0, 0);
    synth_free(s, u, 900, 1, 1, 0);
    synth_close(s, true);
    return path;
}

/* Twenty functions, each calling the next: counted, or as ranges. */
static const char *write_calls(bool counted)
{
    const char   *path = scratch_path(counted ? "counted" : "ranges");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), file = synth_string(s, "f.py");

    for (uint32_t i = 1; i <= 20; i++) {
        static const uint64_t words[8] = { 1, 1, 1000, 5, 0, 0, 1, 1000 };
        uint32_t              frame = synth_frame_in(s, file, i, file, i, false);
        if (counted)
            synth_tally(s, SND_TALLY_CALLS, frame, i - 1, words, 8);
        synth_begin(s, t, 100 + i, file, 0);
        synth_attr(s, t, SND_ATTR_FRAME, frame);
    }
    for (uint32_t i = 0; i < 20; i++)
        synth_end(s, t, 1000 + i);
    synth_close(s, true);
    return path;
}

/* Kernels that the host launches late, from ranges of many names. */
static const char *write_gpu(void)
{
    const char   *path = scratch_path("gpu");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      queue = synth_queue(s, &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 7, 0 });
    uint32_t      launch = synth_string(s, "cudaLaunchKernel");
    uint32_t      file = synth_string(s, "f.py");

    for (uint32_t i = 1; i <= 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "name %u", i);
        uint32_t work = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, name),
                                                                 .kind = i & 1 ? SND_WORK_KERNEL
                                                                               : SND_WORK_COPY });
        synth_step(s, t, i * 1000, i);
        synth_begin(s, t, i * 1000 + 1, synth_string(s, name), synth_shapes(s, "1,2;3"));
        synth_attr(s, t, SND_ATTR_STACK, synth_stack(s, 0, synth_frame(s, file, file, i)));
        synth_attr(s, t, SND_ATTR_SEQUENCE, i);
        synth_begin(s, t, i * 1000 + 500, launch, 0);
        synth_attr(s, t, SND_ATTR_API, i);
        synth_end(s, t, i * 1000 + 510);
        synth_end(s, t, i * 1000 + 520);
        synth_device(s, t, i * 1000 + 600, work, queue, 50, i, 0);
    }
    synth_close(s, true);
    return path;
}

/* Records of every type, some of them and some names in the lane chunk, where the tables had no room. */
static const char *write_records(void)
{
    static const struct synth_options    late = { .flags = SND_FILE_LATE | SND_FILE_OWN_NAMES };
    static const struct snd_symbol_entry inlined[2] = { { 1, 2, 3, 4 }, { 2, 2, 5, 6 } };
    static const struct snd_call_record  call = { .name = 1, .scope = 1 };
    static const struct snd_queue_record queue = { SND_DEVICE(1, 0), 1, 7, 0 };
    static const struct snd_fact_member  none = { 0 };
    const char                          *path = scratch_path("records");
    struct synth                        *s = synth_new(path, &late);
    uint32_t                             t = synth_thread(s, "main", 0);
    uint32_t                             file = synth_string(s, "lib.so");

    synth_string(s, "inner");
    for (uint32_t i = 0; i < 40; i++) { /* more than arrays have room for at first */
        uint64_t words[4] = { SND_EV_RECORD_SHORT,
                              SND_PAIR(SND_LATE_ID | i, 8) | (uint64_t)SND_REC_STRING << 56,
                              4 | (uint64_t)('a' + i) << 32, 0 };
        uint64_t name[8] = { SND_EV_NAME, SND_PAIR(i, 8), 'a' + i };
        uint32_t frame = synth_address(s, file, 0, i);
        synth_symbol(s, frame, inlined, 2);
        synth_stack(s, i, frame);
        synth_call(s, &call);
        synth_queue(s, &queue);
        synth_work(s, &(struct snd_work_record){ .name = 1, .kind = SND_WORK_KERNEL });
        synth_fact(s, 1, i, i, &none, 0);
        synth_event(s, t, 10, words, 4);
        synth_event(s, t, 10, name, 8);
    }
    synth_close(s, true);
    return path;
}

/* Blocks that two functions allocated, one of which calls the other. */
static const char *write_heap(void)
{
    const char    *path = scratch_path("heap");
    struct synth  *s = synth_new(path, NULL);
    const uint64_t own[SND_HEAP_WORDS] = { [SND_HEAP_ALLOCATIONS] = 3,
                                           [SND_HEAP_BYTES] = 300,
                                           [SND_HEAP_PEAK_NUMBER] = 1,
                                           [SND_HEAP_PEAK_BYTES] = 300,
                                           [SND_HEAP_PEAK_BLOCKS] = 3 };
    const uint64_t all[SND_HEAP_PROCESS_WORDS] = { [SND_HEAP_PROCESS_ALLOCATIONS] = 6,
                                                   [SND_HEAP_PROCESS_LIVE] = 600,
                                                   [SND_HEAP_PROCESS_PEAK] = 600,
                                                   [SND_HEAP_PROCESS_PEAKS] = 1 };
    uint32_t       file = synth_string(s, "f.c"), stack = 0;

    for (uint32_t i = 1; i <= 2; i++) {
        stack = synth_stack(s, stack, synth_frame_in(s, file, i, file, i, false));
        synth_tally(s, SND_TALLY_HEAP, stack, 0, own, SND_HEAP_WORDS);
    }
    synth_tally(s, SND_TALLY_HEAP_PROCESS, 0, 0, all, SND_HEAP_PROCESS_WORDS);
    synth_close(s, true);
    return path;
}

/* Two ranks, each with a GPU and steps. */
static const char *write_job(void)
{
    const char *folder = scratch_path("job");

    assert_int_equal(mkdir(folder, 0700), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = { .pid = 100 + i, .rank = i, .world_size = 2 };
        struct synth        *s = synth_new(scratch_path(i ? "job/1" : "job/0"), &options);
        uint32_t             t = synth_thread(s, "main", 0), name = synth_string(s, "aten::mm");
        uint32_t queue = synth_queue(s, &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 7, 0 });
        uint32_t work =
            synth_work(s, &(struct snd_work_record){ .name = name, .kind = SND_WORK_KERNEL });
        for (uint64_t step = 0; step < 3; step++) {
            synth_step(s, t, 1000 * step, step);
            synth_begin(s, t, 1000 * step + 10, name, 0);
            synth_end(s, t, 1000 * step + 90);
            synth_device(s, t, 1000 * step + 100, work, queue, 50, 0, 0);
        }
        synth_close(s, true);
    }
    return folder;
}

/* Two ranks on hosts of their own, whose clocks their collectives tell. */
static const char *write_hosts(void)
{
    const char *folder = scratch_path("hosts");

    assert_int_equal(mkdir(folder, 0700), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = {
            .pid = 100 + i, .rank = i, .world_size = 2, .host = i ? "b" : "a", .boot_id = 1 + i
        };
        char          said[256];
        struct synth *s = synth_new(scratch_path(i ? "hosts/1" : "hosts/0"), &options);
        uint32_t      t = synth_thread(s, "main", 0);
        snprintf(said, sizeof said, "{\"rank\": %u, \"world_size\": 2, \"job\": \"j\"}", i);
        uint32_t queue = synth_queue(s, &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 7, 0 });
        uint32_t work =
            synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "ncclDevKernel"),
                                                     .kind = SND_WORK_KERNEL });
        synth_meta(s, "job.rank", said);
        snprintf(said, sizeof said,
                 "{\"Collective name\": \"allreduce\", \"Group size\": 2, \"In msg nelems\": 10, "
                 "\"Out msg nelems\": 10, \"Process Group Name\": \"0\", \"Rank\": %u, "
                 "\"dtype\": \"Float\"}",
                 i);
        for (uint64_t n = 0; n < 40; n++) {
            synth_begin(s, t, 1000000 * n + 500 * i, synth_string(s, "c10d::call"), 0);
            synth_attr(s, t, SND_ATTR_SCOPE, 1);
            synth_attr(s, t, SND_ATTR_COLLECTIVE, synth_string(s, said));
            synth_attr(s, t, SND_ATTR_COLLECTIVE_SEQUENCE, n + 1);
            synth_begin(s, t, 1000000 * n + 500 * i + 1, synth_string(s, "cudaLaunchKernel"), 0);
            synth_attr(s, t, SND_ATTR_API, (uint32_t)n + 1);
            synth_end(s, t, 1000000 * n + 500 * i + 2);
            synth_end(s, t, 1000000 * n + 2000);
            synth_device(s, t, 1000000 * n + 2100, work, queue, 900 + 10 * i, (uint32_t)n + 1, 0);
        }
        synth_close(s, true);
    }
    return folder;
}

/* ------------------------------------------------------------------ failing */

/* Something done whose allocations may fail. */
typedef enum sonde_status use_fn(void *on);

/* Does it with allocation number `nth` failing; *reached: there were that many. */
static enum sonde_status attempt(use_fn *use, void *on, long nth, bool *reached)
{
    allocations_left = nth;
    enum sonde_status status = use(on);
    *reached = allocations_left < 0;
    allocations_left = -1;
    return status;
}

/* Does it until no allocation is left to fail, and says how often that was. */
static long fail_each(use_fn *use, void *on)
{
    long              tried = 0;
    bool              reached;
    enum sonde_status status;

    do {
        status = attempt(use, on, tried++, &reached);
        assert_int_equal(status, reached ? SONDE_E_NOMEM : SONDE_OK);
    } while (status != SONDE_OK);
    return tried;
}

/* ------------------------------------------------------- what a trace is used for */

/* use_WHAT(trace), with what sonde_WHAT_new() wants beyond it; there is a `made` if it succeeds. */
#define USE(what, ...)                                                        \
    static enum sonde_status use_##what(void *trace)                          \
    {                                                                         \
        struct sonde_##what *made;                                            \
        enum sonde_status    status = sonde_##what##_new(trace, __VA_ARGS__); \
        assert_int_equal(made == NULL, status != SONDE_OK);                   \
        sonde_##what##_free(made);                                            \
        return status;                                                        \
    }

USE(averages,
    &(struct sonde_averages_options){ sizeof(struct sonde_averages_options), .groups = 63 }, &made,
    NULL)
USE(bench, &made, NULL)
USE(graph, &made, NULL)
USE(events, NULL, &made, NULL)
USE(layers, &made, NULL)
USE(memory, &made, NULL)
USE(modules, SONDE_FLOPS_FULL, &made, NULL)
USE(summary, &made, NULL)
USE(tensor_lines, &made, NULL)
USE(timeline, 0, SONDE_NONE, &made, NULL)
USE(tree, true, &made, NULL)

static enum sonde_status use_functions(void *trace)
{
    struct sonde_functions *functions;
    struct sonde_call_tree *tree = NULL;
    enum sonde_status       status = sonde_functions_new(trace, &functions, NULL);

    assert_int_equal(functions == NULL, status != SONDE_OK);
    if (status == SONDE_OK) {
        assert_int_equal(sonde_functions_count(functions), 20);
        status = sonde_call_tree_new(functions, &tree, NULL);
        assert_int_equal(tree == NULL, status != SONDE_OK);
    }
    sonde_call_tree_free(tree);
    sonde_functions_free(functions);
    return status;
}

static enum sonde_status use_lines(void *trace)
{
    struct sonde_lines *lines;
    enum sonde_status   status = sonde_lines_new(trace, SONDE_LINES_TIME, &lines, NULL);

    assert_int_equal(lines == NULL, status != SONDE_OK);
    if (status == SONDE_OK)
        assert_int_equal(sonde_lines_function_count(lines), 1);
    sonde_lines_free(lines);
    return status;
}

static enum sonde_status use_samples(void *trace)
{
    struct sonde_samples *samples;
    enum sonde_status     status =
        sonde_samples_new(trace,
                          &(struct sonde_samples_options){ sizeof(struct sonde_samples_options),
                                                           .hide_imports = true },
                          &samples, NULL);

    assert_int_equal(samples == NULL, status != SONDE_OK);
    if (status == SONDE_OK)
        assert_int_equal(sonde_samples_thread_count(samples), 1);
    sonde_samples_free(samples);
    return status;
}

static enum sonde_status use_sample_functions(void *trace)
{
    const struct sonde_samples_options options = { .struct_size = sizeof options,
                                                   .by = SONDE_SAMPLES_MERGED,
                                                   .fold_recursion = true };
    struct sonde_samples              *samples, *merged = NULL;
    struct sonde_sample_functions     *functions = NULL;
    enum sonde_status                  status = sonde_samples_new(trace, NULL, &samples, NULL);

    if (status == SONDE_OK)
        status = sonde_samples_merge(samples, &options, &merged, NULL);
    sonde_samples_free(samples);
    if (status == SONDE_OK)
        status = sonde_sample_functions_new(merged, &functions, NULL);
    assert_int_equal(functions == NULL, status != SONDE_OK);
    if (status == SONDE_OK)
        assert_true(functions->count > 0);
    sonde_sample_functions_free(functions);
    sonde_samples_free(merged);
    return status;
}

static enum sonde_status use_kernels(void *trace)
{
    const unsigned      groups = SONDE_GROUP_STACK | SONDE_GROUP_SHAPE | SONDE_GROUP_OPERATOR;
    struct snd_kernels *kernels;
    enum sonde_status   status = snd_kernels_new(trace, groups, 0, &kernels, NULL);

    assert_int_equal(kernels == NULL, status != SONDE_OK);
    if (status == SONDE_OK)
        assert_int_equal(kernels->count, 20);
    snd_kernels_free(kernels);
    return status;
}

static enum sonde_status use_ranks(void *trace)
{
    struct snd_rank_times *times;
    enum sonde_status      status = snd_rank_times_make(trace, true, &times, NULL);

    if (status == SONDE_OK) {
        assert_int_equal(times->step_count, 6);
        assert_int_equal(times->rows[0].compute_ns, 150);
        snd_rank_times_free(times);
    }
    return status;
}

static enum sonde_status use_hosts(void *path)
{
    struct sonde_trace    *trace;
    struct snd_rank_times *times;
    enum sonde_status      status = sonde_trace_open(path, &trace, NULL);

    if (status != SONDE_OK)
        return status;
    status = snd_host_clocks_align(trace, NULL);
    if (status == SONDE_OK)
        status = snd_rank_times_make(trace, true, &times, NULL);
    if (status == SONDE_OK) {
        assert_int_equal(trace->host_clocks->aligned, 2);
        assert_true(trace->processes[0].scale.bend_count + trace->processes[1].scale.bend_count >
                    0);
        snd_rank_times_free(times);
    }
    sonde_trace_close(trace);
    return status;
}

static enum sonde_status use_gpu(void *trace)
{
    struct snd_gpu   *gpu;
    enum sonde_status status = snd_gpu_new(trace, &gpu, NULL);

    assert_int_equal(gpu == NULL, status != SONDE_OK);
    if (status == SONDE_OK)
        assert_int_equal(gpu->step_count, 20);
    snd_gpu_free(gpu);
    return status;
}

static bool pass(const struct sonde_event *event, void *user)
{
    (void)event, (void)user;
    return true;
}

static enum sonde_status use_merge(void *trace)
{
    return sonde_trace_walk(trace, SONDE_BY_TIME, pass, NULL, NULL);
}

static enum sonde_status use_diff(void *trace)
{
    static const struct snd_diff_source *const ops = &snd_diff_sources[0];
    struct sonde_trace *const                  both[] = { trace, trace };
    struct snd_diff                           *diff;
    enum sonde_status status = snd_diff_new(both, 1, 1, ops, 0.02, &diff, NULL);

    assert_int_equal(diff == NULL, status != SONDE_OK);
    snd_diff_free(diff);
    return status;
}

static void check_use(const char *path, use_fn *use)
{
    struct sonde_trace *trace = scratch_open(path);

    assert_true(fail_each(use, trace) > 2);
    sonde_trace_close(trace);
}

static void models_survive(void **state)
{
    static use_fn *const uses[] = {
        use_averages,     use_tree,   use_memory, use_summary, use_events,           use_modules,
        use_timeline,     use_merge,  use_lines,  use_samples, use_sample_functions, use_bench,
        use_tensor_lines, use_layers, use_graph,  use_diff
    };
    static const char *const folding[] = {
        "fold", "memory", "async", "gpu", "gpu_overlap"
    }; /* without FLOPs, which are found again where they are not kept */
    const char *path = write_trace();

    (void)state;
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        check_use(path, uses[i]);
    check_use(write_calls(true), use_functions);
    check_use(write_calls(false), use_functions);
    check_use(write_gpu(), use_kernels);
    check_use(write_gpu(), use_gpu);
    check_use(write_job(), use_ranks);
    for (size_t i = 0; i < sizeof folding / sizeof folding[0]; i++) {
        const char *generated = scratch_path(folding[i]);
        assert_true(make_case(folding[i], generated, USUAL_N));
        check_use(generated, use_events);
        check_use(generated, use_averages);
        check_use(generated, use_tree);
        check_use(generated, use_modules);
    }
    assert_true(fail_each(use_hosts, (void *)write_hosts()) > 100);
}

/* ----------------------------------------------------------------- its exports */

struct exported {
    struct sonde_trace *trace;
    const char         *format;
    struct sonde_error  err;
    uint32_t            crc; /* of what was written */
};

/* Allocates nothing: what fails is the export's own. */
static bool add_crc(void *user, const void *data, size_t length)
{
    uint32_t *crc = user;

    *crc = snd_crc32c(*crc, data, length);
    return true;
}

static enum sonde_status export_stream(void *on)
{
    struct exported  *e = on;
    struct sonde_sink sink = { add_crc, &e->crc };

    e->crc = 0;
    return sonde_export(e->trace, e->format, NULL, &sink, &e->err);
}

/* The data of a view, whose name is `format`. */
static enum sonde_status report(void *on)
{
    struct exported            *e = on;
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_sink           sink = { add_crc, &e->crc };

    e->crc = 0;
    options.view = e->format;
    options.format = SONDE_REPORT_JSON;
    return sonde_report(e->trace, &options, &sink, &e->err);
}

static uint32_t files_crc; /* the sum over all files: they come in no order */

static int add_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    size_t   size;
    uint8_t *bytes;

    (void)status;
    if (kind != FTW_F)
        return 0;
    bytes = scratch_load(path, &size);
    files_crc += snd_crc32c(snd_crc32c(0, path + place->base, strlen(path + place->base)), bytes,
                            size);
    free(bytes);
    return 0;
}

static enum sonde_status export_folder(void *on)
{
    struct exported  *e = on;
    enum sonde_status status = sonde_export_folder(e->trace, e->format, NULL,
                                                   scratch_path("folder"), &e->err);
    long              left = allocations_left; /* what follows is the test's */

    allocations_left = -1;
    files_crc = 0;
    if (status == SONDE_OK)
        assert_int_equal(nftw(scratch_path("folder"), add_file, 8, FTW_PHYS), 0);
    e->crc = files_crc;
    allocations_left = left;
    return status;
}

/* The export with an allocation failing: it says so, or writes the same without. Returns whether there were so many. */
static bool fail_one(struct exported *e, use_fn *use, long nth, uint32_t whole)
{
    bool reached;

    e->err.message[0] = '\0';
    enum sonde_status status = attempt(use, e, nth, &reached);
    bool said = status == SONDE_E_NOMEM && reached && strstr(e->err.message, "out of memory");
    if (!said && (status != SONDE_OK || e->crc != whole))
        fail_msg("%s, allocation %ld failed: status %d: %s", e->format, nth, (int)status,
                 e->err.message);
    return reached;
}

/* Which allocations of an export are the first of a place that no use before had. */
static void note_places(struct exported *e, use_fn *use)
{
    places.fresh_count = 0;
    places.made = 0;
    atomic_store(&places.on, true);
    assert_int_equal(use(e), SONDE_OK);
    atomic_store(&places.on, false);
}

/*
 * Each allocation of an export fails once, or one of each `stride` and the first of each place. Then it succeeds: nothing of
 * a failure is left in the trace.
 */
static void fail_export(const char *path, const char *format, use_fn *use, long stride)
{
    struct exported e = { .trace = scratch_open(path), .format = format };
    bool            reached = true;

    enum sonde_status status = use(&e);
    uint32_t          whole = e.crc;
    if (status != SONDE_OK) { /* the trace has nothing for it */
        assert_true(status == SONDE_E_STATE || status == SONDE_E_UNSUPPORTED);
        sonde_trace_close(e.trace);
        return;
    }
    for (long nth = 0; reached; nth += stride)
        reached = fail_one(&e, use, nth, whole);
    if (stride > 1) {
        note_places(&e, use);
        for (size_t i = 0; i < places.fresh_count; i += turns_one_of())
            fail_one(&e, use, places.fresh[i], whole);
    }
    assert_int_equal(use(&e), SONDE_OK);
    assert_int_equal(e.crc, whole);
    sonde_trace_close(e.trace);
}

/* Of how many allocations one fails, so that a use of a trace is tried some hundred times at most; under sanitizers fewer. */
static long find_stride(const char *path, const char *format, use_fn *use)
{
    const long      most = 100 / turns_one_of(), many = LONG_MAX / 2;
    struct exported e = { .trace = scratch_open(path), .format = format };

    allocations_left = many;
    (void)use(&e);
    long made = many - allocations_left;
    allocations_left = -1;
    sonde_trace_close(e.trace);
    return made / most + 1;
}

static void exports_survive(void **state)
{
    const long                        usual = turns_one_of();
    const struct sonde_exporter_info *info;
    char                              paths[3][256];

    (void)state;
    snprintf(paths[0], sizeof paths[0], "%s", write_trace());
    snprintf(paths[1], sizeof paths[1], "%s", write_calls(true));
    snprintf(paths[2], sizeof paths[2], "%s", write_gpu());
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const char *path = paths[i];
        for (size_t n = 0; (info = sonde_exporter_info(n)) != NULL; n++) {
            long stride = strcmp(info->name, "html") == 0 ? 37 * usual
                                                          : usual; /* it makes thousands */
            if (sonde_exporter_is_folder(info->name))
                fail_export(path, info->name, export_folder, usual);
            else if (!info->missing)
                fail_export(path, info->name, export_stream, stride);
        }
    }
}

static void exports_of_all_kinds_survive(void **state)
{
    static const char *const          cases[] = { "gpu_memory", "op_details", "mixed",
                                                  "counters",   "links",      "async",
                                                  "job",        "steps",      "samples_children" };
    const struct sonde_exporter_info *info;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s", scratch_path(cases[i]));
        assert_true(make_case(cases[i], path, USUAL_N));
        for (size_t n = 0; (info = sonde_exporter_info(n)) != NULL; n++)
            if (!sonde_exporter_is_folder(info->name) && !info->missing &&
                strcmp(info->name, "html") != 0)
                fail_export(path, info->name, export_stream,
                            find_stride(path, info->name, export_stream));
    }
}

/* ------------------------------------------------- when several threads read it */

static enum sonde_status use_names(void *trace)
{
    struct sonde_averages_options options = SONDE_AVERAGES_OPTIONS_INIT;
    struct sonde_averages        *made;

    options.groups = SONDE_GROUP_SHAPE;
    enum sonde_status status = sonde_averages_new(trace, &options, &made, NULL);
    assert_int_equal(made == NULL, status != SONDE_OK);
    sonde_averages_free(made);
    return status;
}

static void threads_that_read_survive(void **state)
{
    const char   *path = scratch_path("threads");
    struct synth *s = synth_new(path, &(struct synth_options){ .grain = 4096 });

    (void)state;
    for (uint32_t t = 1; t <= 3; t++) {
        synth_thread(s, NULL, 0);
        for (uint32_t i = 0; i < 60; i++) {
            char name[16];
            snprintf(name, sizeof name, "aten::%u", i % 20);
            synth_begin(s, t, 100 * i, synth_string(s, name), synth_shapes(s, "1,2;3"));
            synth_span(s, t, 100 * i + 1, synth_string(s, "inner"), 5);
            synth_step(s, t, 100 * i + 10, i);
            synth_end(s, t, 100 * i + 20);
        }
    }
    synth_close(s, true);
    for (size_t i = 0; i < 2; i++) {
        struct sonde_trace *trace = scratch_open(path);
        trace->workers = 2;
        assert_true(fail_each(i == 0 ? use_names : use_summary, trace) > 30);
        assert_true(trace->divided > 0);
        sonde_trace_close(trace);
    }
}

/* ----------------------------------------------------------------- its views */

static void views_survive(void **state)
{
    const struct sonde_view_info *info;
    char                          paths[4][256];

    (void)state;
    snprintf(paths[0], sizeof paths[0], "%s", write_trace());
    snprintf(paths[1], sizeof paths[1], "%s", write_calls(true));
    snprintf(paths[2], sizeof paths[2], "%s", write_calls(false));
    snprintf(paths[3], sizeof paths[3], "%s", write_gpu());
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        for (size_t n = 0; (info = sonde_view_info(n)) != NULL; n++)
            if (strcmp(info->name, "asm") != 0) /* another program prints the most of it */
                fail_export(paths[i], info->name, report, 1);
    const char *heap = write_heap();
    for (size_t n = 0; (info = sonde_view_info(n)) != NULL; n++)
        if (strncmp(info->name, "heap", 4) == 0 || strcmp(info->name, "advice") == 0)
            fail_export(heap, info->name, report, 1);
    assert_true(make_case("range_counters", scratch_path("counted ranges"), USUAL_N));
    fail_export(scratch_path("counted ranges"), "range-counters", report, 1);
    char said[256]; /* facts: of layers, a graph, tensors, lines */
    snprintf(said, sizeof said, "%s", scratch_path("said"));
    assert_true(make_case("said", said, 7));
    for (size_t n = 0; (info = sonde_view_info(n)) != NULL; n++)
        if (strcmp(info->name, "asm") != 0)
            fail_export(said, info->name, report, find_stride(said, info->name, report));
}

/* A source that does not fit in memory is not shown: no trace of lines is among them. */
static void views_of_all_kinds_survive(void **state)
{
    static const char *const      cases[] = { "job",          "job_gpu",
                                              "mixed",        "native",
                                              "calls",        "gpu_memory",
                                              "gpu_idle",     "gpu_overlap",
                                              "stacks",       "op_details",
                                              "advice",       "tensors",
                                              "roofline",     "samples_children",
                                              "run_counters", "function_counters",
                                              "graph",        "losses" };
    const struct sonde_view_info *info;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[256];
        if (turns_leave_out(i, 4))
            continue;
        snprintf(path, sizeof path, "%s", scratch_path(cases[i]));
        assert_true(make_case(cases[i], path, USUAL_N));
        for (size_t n = 0; (info = sonde_view_info(n)) != NULL; n++)
            if (strcmp(info->name, "asm") != 0)
                fail_export(path, info->name, report, find_stride(path, info->name, report));
    }
}

/* ---------------------------------------------------------------- its file */

struct loaded {
    uint8_t *bytes;
    size_t   size;
};

static enum sonde_status open_loaded(void *on)
{
    const struct loaded *file = on;
    struct sonde_trace  *trace;
    enum sonde_status    status = snd_trace_open_memory(file->bytes, file->size, &trace, NULL);

    assert_int_equal(trace == NULL, status != SONDE_OK);
    sonde_trace_close(trace);
    return status;
}

/* One whose program did not end: how far it goes is looked for in its events. */
static const char *write_unclosed(void)
{
    const char   *path = scratch_path("unclosed");
    struct synth *s = synth_new(path, NULL);

    synth_begin(s, synth_thread(s, "main", 0), 100, synth_string(s, "range"), 0);
    synth_close(s, false);
    return path;
}

static void opening_survives(void **state)
{
    const char *const paths[] = { write_trace(), write_records(), write_unclosed() };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct loaded file;
        file.bytes = scratch_load(paths[i], &file.size);
        assert_true(fail_each(open_loaded, &file) > 10);
        free(file.bytes);
    }
}

struct paths {
    char from[256], to[256];
};

static enum sonde_status pack(void *on)
{
    const struct paths *paths = on;

    return sonde_pack(paths->from, paths->to, 1, NULL);
}

/* Some of its allocations it can do without. */
static void packing_survives(void **state)
{
    struct paths      paths;
    long              tried = 0;
    bool              reached;
    enum sonde_status status;

    (void)state;
    snprintf(paths.from, sizeof paths.from, "%s", write_trace());
    snprintf(paths.to, sizeof paths.to, "%s", scratch_path("packed"));
    if (pack(&paths) == SONDE_E_UNSUPPORTED)
        return;
    do {
        status = attempt(pack, &paths, tried++, &reached);
        if (status != SONDE_OK)
            assert_int_equal(status, reached ? SONDE_E_NOMEM : SONDE_OK);
    } while (status != SONDE_OK || tried < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives),
        cmocka_unit_test(models_survive),
        cmocka_unit_test(packing_survives),
        cmocka_unit_test(exports_survive),
        cmocka_unit_test(threads_that_read_survive),
        cmocka_unit_test(views_survive),
        cmocka_unit_test(views_of_all_kinds_survive),
        cmocka_unit_test(exports_of_all_kinds_survive),
    };

    allocation_seen = look_at_place;
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
