/* SPDX-License-Identifier: Apache-2.0 */
/* export/chrome*.c: Chrome's trace format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/layout.h"
#include "sonde/export.h"
#include "synth.h"

#define RANGES 400

/* A made-up run: range i lies in parents[i], -1 for none. Many begin at the same nanosecond. */
struct made {
    struct synth *synth;
    uint32_t      thread;
    uint64_t      now_ns, random;
    bool          zero_lengths;
    int           count;
    int           parents[RANGES];
};

static uint64_t draw(struct made *made, uint64_t below)
{
    made->random = made->random * 6364136223846793005u + 1442695040888963407u;
    return (made->random >> 33) % below;
}

static void make_range(struct made *made, int parent, int depth)
{
    char     name[16];
    int      own = made->count;
    uint64_t start = made->now_ns;

    if (own >= RANGES)
        return;
    made->parents[made->count++] = parent;
    snprintf(name, sizeof name, "r%d", own);
    synth_begin(made->synth, made->thread, start, synth_string(made->synth, name), 0);
    for (uint64_t i = draw(made, 4); i > 0 && depth < 12; i--) {
        made->now_ns += draw(made, 2);
        make_range(made, own, depth + 1);
    }
    if (!made->zero_lengths && made->now_ns == start)
        made->now_ns++;
    synth_end(made->synth, made->thread, made->now_ns);
}

static void make(struct made *made, const char *path, uint64_t seed, bool zero_lengths)
{
    memset(made, 0, sizeof *made);
    made->synth = synth_new(path, NULL);
    made->thread = synth_thread(made->synth, "main", 0);
    made->random = seed;
    made->zero_lengths = zero_lengths;
    while (made->count < RANGES) {
        make_range(made, -1, 0);
        made->now_ns += draw(made, 3);
    }
    synth_close(made->synth, true);
}

struct event {
    int     range;
    int64_t start, end;
    int     place; /* in the file */
};

static int by_start_then_place(const void *left, const void *right)
{
    const struct event *x = left, *y = right;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->place - y->place;
}

static int64_t read_us(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    long long   us, ns;

    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(key), "%lld.%3lld", &us, &ns), 2);
    return us * 1000 + ns;
}

static size_t read_events(const char *path, struct event *events)
{
    struct sonde_trace *trace;
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    size_t              count = 0;
    char               *save = NULL;

    assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
    assert_int_equal(sonde_export(trace, "chrome", NULL, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    for (char *line = strtok_r(text.bytes, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *name = strstr(line, "\"name\":\"r");
        if (!strstr(line, "\"ph\":\"X\""))
            continue;
        assert_non_null(name);
        assert_true(count < RANGES);
        struct event *event = &events[count];
        event->range = atoi(name + 9);
        event->start = read_us(line, "\"ts\":");
        event->end = event->start + read_us(line, "\"dur\":");
        event->place = (int)count++;
    }
    sonde_buffer_release(&text);
    return count;
}

/* As viewers do it: in the order of starts, then of the file; what has ended holds no more. */
static void nests_as_recorded(void **state)
{
    char path[] = "/tmp/sonde-test-XXXXXX";
    int  fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static struct made  made;
        static struct event events[RANGES];
        int                 open[32], depth = 0, ties = 0;
        int64_t             ends[32];

        make(&made, path, seed, false);
        assert_int_equal(read_events(path, events), RANGES);
        qsort(events, RANGES, sizeof events[0], by_start_then_place);
        for (int i = 0; i < RANGES; i++) {
            while (depth > 0 && ends[depth - 1] <= events[i].start)
                depth--;
            assert_int_equal(depth > 0 ? open[depth - 1] : -1, made.parents[events[i].range]);
            assert_true(depth == 0 || events[i].end <= ends[depth - 1]);
            ties += i > 0 && events[i].start == events[i - 1].start;
            open[depth] = events[i].range;
            ends[depth++] = events[i].end;
        }
        assert_true(ties > 10); /* the test tests what it is there for */
    }
    unlink(path);
}

/* Ranges of no length lie within their parents, and after those that start with them. */
static void no_length_lies_in_its_parent(void **state)
{
    char path[] = "/tmp/sonde-test-XXXXXX";
    int  fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static struct made  made;
        static struct event events[RANGES];
        const struct event *of[RANGES];

        make(&made, path, seed, true);
        assert_int_equal(read_events(path, events), RANGES);
        for (int i = 0; i < RANGES; i++)
            of[events[i].range] = &events[i];
        for (int i = 0; i < RANGES; i++) {
            if (made.parents[i] < 0)
                continue;
            const struct event *own = of[i], *parent = of[made.parents[i]];
            assert_true(own->start >= parent->start && own->end <= parent->end);
            assert_true(own->start > parent->start || own->place > parent->place);
        }
    }
    unlink(path);
}

/* What torch's allocator tells of a device is written with its blocks; any other counter is one. */
static void counters_of_devices(void **state)
{
    static const struct {
        const char *name;
        bool        is_memory;
    } counters[] = {
        { "device.allocated cuda:0", true },
        { "device.reserved cuda:7", true },
        { "device.allocated cuda:65534", true },
        { "device.allocated cuda:65535", false },
        { "device.allocated cuda:65536", false },
        { "device.allocated cuda:", false },
        { "device.allocated", false },
        { "other", false },
    };
    char path[] = "/tmp/sonde-test-XXXXXX", quoted[64];
    int  fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    synth_meta(s, "torch.probe", "1");
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
        synth_counter(s, t, 10 * i + 1, synth_string(s, counters[i].name), 5);
    synth_close(s, true);
    struct sonde_trace *trace;
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
    unlink(path);
    assert_int_equal(sonde_export(trace, "chrome", NULL, &sink, NULL), SONDE_OK);
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        snprintf(quoted, sizeof quoted, "\"name\":\"%s\"", counters[i].name);
        if ((strstr(text.bytes, quoted) == NULL) != counters[i].is_memory)
            fail_msg("%s: %s", counters[i].name, text.bytes);
    }
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

/* A free has the size that it was recorded with, or that of what was allocated there. */
static void sizes_of_frees(void **state)
{
    static const struct {
        uint64_t    freed;
        const char *shown;
    } cases[] = { { 0, "\"Bytes\":-10," }, { 1, "\"Bytes\":-1," }, { 10, "\"Bytes\":-10," } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char                path[] = "/tmp/sonde-test-XXXXXX";
        struct sonde_trace *trace;
        struct sonde_buffer text = { 0 };
        struct sonde_sink   sink = sonde_sink_buffer(&text);
        close(mkstemp(path));
        struct synth *s = synth_new(path, NULL);
        uint32_t      t = synth_thread(s, "main", 0);
        synth_alloc(s, t, 10, SND_DEVICE(0, 0xffff), 0x10, 10);
        synth_free(s, t, 20, SND_DEVICE(0, 0xffff), 0x10, cases[i].freed);
        synth_close(s, true);
        assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
        unlink(path);
        assert_int_equal(sonde_export(trace, "chrome", NULL, &sink, NULL), SONDE_OK);
        if (!strstr(text.bytes, "\"Bytes\":10,") || !strstr(text.bytes, cases[i].shown))
            fail_msg("%zu: %s", i, text.bytes);
        sonde_buffer_release(&text);
        sonde_trace_close(trace);
    }
}

static int count_of(const char *text, const char *words)
{
    int count = 0;

    for (; (text = strstr(text, words)); text++)
        count++;
    return count;
}

/* A member that the caller gives stands once, as given, whether torch made the trace or not. */
static void given_members_replace_our_own(void **state)
{
    static const char *const given[] = {
        "host_name", "mine", "distributedInfo", "{\"rank\": 5}", "with_flops", "7", NULL
    };

    (void)state;
    for (int form = 0; form < 4; form++) {
        bool                        torch = form & 1, gives = form & 2;
        struct synth_options        how = { .host = "theirs", .rank = 1, .world_size = 2 };
        struct sonde_export_options options = SONDE_EXPORT_OPTIONS_INIT;
        char                        path[] = "/tmp/sonde-test-XXXXXX";
        int                         fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        struct synth *s = synth_new(path, &how);
        synth_mark(s, synth_thread(s, "main", 0), 10, synth_string(s, "here"), 0);
        if (torch) {
            synth_meta(s, "torch.probe", "1");
            synth_meta(s, "torch.options", "{\"with_flops\": true}");
        }
        synth_close(s, true);
        struct sonde_trace *trace;
        struct sonde_buffer text = { 0 };
        struct sonde_sink   sink = sonde_sink_buffer(&text);
        options.metadata = gives ? given : NULL;
        assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
        unlink(path);
        assert_int_equal(sonde_export(trace, "chrome", &options, &sink, NULL), SONDE_OK);
        assert_int_equal(count_of(text.bytes, "\"distributedInfo\""), 1);
        assert_int_equal(count_of(text.bytes, "\"host_name\""), 1);
        assert_int_equal(count_of(text.bytes, "\"with_flops\":1"), torch && !gives ? 1 : 0);
        assert_int_equal(count_of(text.bytes, "\"host_name\":\"mine\""), gives ? 1 : 0);
        assert_int_equal(count_of(text.bytes, "\"with_flops\":7"), gives ? 1 : 0);
        sonde_buffer_release(&text);
        sonde_trace_close(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests_as_recorded),
        cmocka_unit_test(no_length_lies_in_its_parent),
        cmocka_unit_test(counters_of_devices),
        cmocka_unit_test(sizes_of_frees),
        cmocka_unit_test(given_members_replace_our_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
