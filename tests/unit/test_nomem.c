/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the reading side fails once: the right status, no leak, no crash.
 * Linked with --wrap for malloc, calloc and realloc.
 */
#include "format/layout.h"
#include "read/reader.h"
#include "scratch.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static long left = -1; /* allocations until one fails; negative: none does */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

static const char *make_trace(void)
{
    struct synth_options options = { .grain = 4096 };
    const char          *path = scratch_path("trace");
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0), u = synth_thread(s, NULL, 0);
    uint32_t             file = synth_string(s, "f.c");
    uint32_t             stack = synth_stack(s, 0, synth_frame(s, file, file, 1));

    synth_meta(s, "key", "value");
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
static const char *make_calls(bool counted)
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

/* One thing done with an open trace. */
typedef enum sonde_status use_fn(struct sonde_trace *trace);

static enum sonde_status use_averages(struct sonde_trace *trace)
{
    struct sonde_averages_options options = { .groups = 63 };
    struct sonde_averages        *averages;
    enum sonde_status             status = sonde_averages_new(trace, &options, &averages, NULL);

    if (status == SONDE_OK)
        sonde_averages_free(averages);
    else
        assert_null(averages);
    return status;
}

static enum sonde_status use_tree(struct sonde_trace *trace)
{
    struct sonde_tree *tree;
    enum sonde_status  status = sonde_tree_new(trace, true, &tree, NULL);

    sonde_tree_free(tree);
    return status;
}

static enum sonde_status use_memory(struct sonde_trace *trace)
{
    struct sonde_memory *memory;
    enum sonde_status    status = sonde_memory_new(trace, &memory, NULL);

    sonde_memory_free(memory);
    return status;
}

static enum sonde_status use_summary(struct sonde_trace *trace)
{
    struct sonde_summary *summary;
    enum sonde_status     status = sonde_summary_new(trace, &summary, NULL);

    sonde_summary_free(summary);
    return status;
}

static bool pass(const struct sonde_event *event, void *user)
{
    (void)event, (void)user;
    return true;
}

static enum sonde_status use_events(struct sonde_trace *trace)
{
    struct sonde_events *events;
    enum sonde_status    status = sonde_events_new(trace, NULL, &events, NULL);

    assert_int_equal(events == NULL, status != SONDE_OK);
    sonde_events_free(events);
    return status;
}

static enum sonde_status use_modules(struct sonde_trace *trace)
{
    struct sonde_modules *modules;
    enum sonde_status     status = sonde_modules_new(trace, SONDE_FLOPS_FULL, &modules, NULL);

    assert_int_equal(modules == NULL, status != SONDE_OK);
    sonde_modules_free(modules);
    return status;
}

static enum sonde_status use_timeline(struct sonde_trace *trace)
{
    struct sonde_timeline *timeline;
    enum sonde_status      status = sonde_timeline_new(trace, 0, SONDE_NONE, &timeline, NULL);

    assert_int_equal(timeline == NULL, status != SONDE_OK);
    sonde_timeline_free(timeline);
    return status;
}

static enum sonde_status use_functions(struct sonde_trace *trace)
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

static enum sonde_status use_lines(struct sonde_trace *trace)
{
    struct sonde_lines *lines;
    enum sonde_status   status = sonde_lines_new(trace, SONDE_LINES_TIME, &lines, NULL);

    assert_int_equal(lines == NULL, status != SONDE_OK);
    if (status == SONDE_OK)
        assert_int_equal(sonde_lines_function_count(lines), 1);
    sonde_lines_free(lines);
    return status;
}

static enum sonde_status use_samples(struct sonde_trace *trace)
{
    struct sonde_samples *samples;
    enum sonde_status     status = sonde_samples_new(trace, true, &samples, NULL);

    assert_int_equal(samples == NULL, status != SONDE_OK);
    if (status == SONDE_OK)
        assert_int_equal(sonde_samples_thread_count(samples), 1);
    sonde_samples_free(samples);
    return status;
}

static enum sonde_status use_merge(struct sonde_trace *trace)
{
    return sonde_trace_walk(trace, SONDE_BY_TIME, pass, NULL, NULL);
}

static void check_use(const char *path, use_fn *use)
{
    long                tried = 0;
    enum sonde_status   status;
    struct sonde_trace *trace = scratch_open(path);

    do {
        left = tried++;
        status = use(trace);
        bool reached = left < 0;
        left = -1;
        assert_int_equal(status, reached ? SONDE_E_NOMEM : SONDE_OK);
    } while (status != SONDE_OK);
    assert_true(tried > 2);
    sonde_trace_close(trace);
}

static void models_survive(void **state)
{
    static use_fn *const uses[] = {
        use_averages, use_tree,     use_memory, use_summary, use_events,
        use_modules,  use_timeline, use_merge,  use_lines,   use_samples
    };
    const char *path = make_trace();

    (void)state;
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        check_use(path, uses[i]);
    check_use(make_calls(true), use_functions);
    check_use(make_calls(false), use_functions);
}

static void opening_survives(void **state)
{
    struct sonde_trace *trace;
    enum sonde_status   status;
    const char         *path = make_trace();
    size_t              size;
    uint8_t            *bytes = scratch_load(path, &size);
    long                tried = 0;

    (void)state;
    do {
        left = tried++;
        status = snd_trace_open_memory(bytes, size, &trace, NULL);
        bool reached = left < 0;
        left = -1;
        assert_int_equal(status, reached ? SONDE_E_NOMEM : SONDE_OK);
        assert_int_equal(trace == NULL, status != SONDE_OK);
        sonde_trace_close(trace);
    } while (status != SONDE_OK);
    assert_true(tried > 10);
    free(bytes);
}

static void packing_survives(void **state)
{
    char              path[256], packed[256];
    long              tried = 0;
    enum sonde_status status;

    (void)state;
    snprintf(path, sizeof path, "%s", make_trace());
    snprintf(packed, sizeof packed, "%s", scratch_path("packed"));
    if (sonde_pack(path, packed, 1, NULL) == SONDE_E_UNSUPPORTED)
        return;
    do {
        left = tried++;
        status = sonde_pack(path, packed, 1, NULL);
        bool reached = left < 0;
        left = -1;
        if (!reached)
            assert_int_equal(status, SONDE_OK);
        else if (status != SONDE_OK)
            assert_int_equal(status, SONDE_E_NOMEM);
    } while (status != SONDE_OK || tried < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_survives),
        cmocka_unit_test(models_survive),
        cmocka_unit_test(packing_survives),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
