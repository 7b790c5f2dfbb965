/* SPDX-License-Identifier: Apache-2.0 */
/* model/highlights/advice_samples.c, advice_operators.c and advice_memory.c: what is said of a program, and from how much on. */
#include "format/layout.h"
#include "model/highlights/advisor.h"
#include "scratch.h"
#include "sonde/export.h"

enum { RUNS = 3, WAITS = 0, WAITS_FOR_LOCK = 4, MS = 1000000 };

struct place {
    const char *function, *file;
    uint32_t    line;
    bool        native;
};
#define OWN                               \
    {                                     \
        "work", "/home/me/x.py", 5, false \
    }
#define CALLER                             \
    {                                      \
        "main", "/home/me/x.py", 90, false \
    }
#define LIBRARY "/py/lib/python3.11"

/* A stack, outermost first, that was seen `count` times, for so long. */
struct seen {
    struct place places[4];
    uint32_t     state, count, ms, thread; /* thread 0: the program's main one */
};

static struct sonde_buffer report_advice(const char *path)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct sonde_error          err = { 0 };
    struct sonde_trace         *trace = scratch_open(path);

    options.view = "advice";
    options.format = SONDE_REPORT_CSV;
    if (sonde_report(trace, &options, &sink, &err) != SONDE_OK)
        fail_msg("%s", err.message);
    sonde_trace_close(trace);
    return text;
}

/* The samples one after the other, or, if `beside`, those of each thread beside the others'. */
static void expect(const struct seen *seen, size_t count, bool beside, const char *said,
                   bool is_said)
{
    const char   *path = scratch_path("advice");
    struct synth *s = synth_new(path, NULL);
    uint32_t      sampler = synth_thread(s, "sonde", 0), threads[4];
    uint64_t      ns = 1000;

    for (uint32_t i = 0; i < 4; i++)
        threads[i] = synth_thread_of(s, "t", 4242 + i, 0);
    synth_meta(s, "python.sample.hz", "1000");
    synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    synth_meta(s, "machine.cpus", "2");
    for (size_t i = 0; i < count; i++) {
        uint32_t stack = 0, native = 0;
        for (size_t k = 0; k < 4 && seen[i].places[k].function; k++) {
            const struct place *p = &seen[i].places[k];
            stack = synth_stack(s, stack,
                                synth_frame_in(s, synth_string(s, p->function), 1,
                                               synth_string(s, p->file), p->line, p->native));
            native |= p->native ? 8 : 0;
        }
        if (!beside || i == 0)
            ns += (uint64_t)seen[i].ms * MS;
        synth_sample(s, sampler, ns, stack, seen[i].state | native | seen[i].count << 8,
                     threads[seen[i].thread], seen[i].ms * MS);
    }
    synth_close(s, true);
    struct sonde_buffer text = report_advice(path);
    if ((text.bytes && strstr(text.bytes, said) != NULL) != is_said)
        fail_msg("'%s' is %ssaid:\n%s", said, is_said ? "not " : "", text.bytes);
    sonde_buffer_release(&text);
}

#define EXPECT(said, is_said, ...)                                                          \
    expect((const struct seen[]){ __VA_ARGS__ },                                            \
           sizeof((const struct seen[]){ __VA_ARGS__ }) / sizeof(struct seen), false, said, \
           is_said)
#define BESIDE(said, is_said, ...)                                                         \
    expect((const struct seen[]){ __VA_ARGS__ },                                           \
           sizeof((const struct seen[]){ __VA_ARGS__ }) / sizeof(struct seen), true, said, \
           is_said)

#define REST(ms)                                                           \
    { { { "a", "/home/me/y.py", 1, false } }, RUNS, 20, (ms) / 5, 0 },     \
        { { { "b", "/home/me/y.py", 2, false } }, RUNS, 20, (ms) / 5, 0 }, \
        { { { "c", "/home/me/y.py", 3, false } }, RUNS, 20, (ms) / 5, 0 }, \
        { { { "d", "/home/me/y.py", 4, false } }, RUNS, 20, (ms) / 5, 0 }, \
    {                                                                      \
        { { "e", "/home/me/y.py", 5, false } }, RUNS, 20, (ms) / 5, 0      \
    }

static void a_hot_line(void **state)
{
    static const char said[] =
        "x.py:5, in work, takes 25 % of the running time: 250.000ms of 1.000s";

    (void)state;
    EXPECT(said, true, { { CALLER, OWN }, RUNS, 50, 250, 0 }, REST(750));
    EXPECT("in work, takes", false, { { CALLER, OWN }, RUNS, 49, 250, 0 }, REST(750));
    EXPECT("in work, takes", false, { { CALLER, OWN }, RUNS, 50, 250, 0 }, REST(755));
    /* a line is one place, whatever functions share it */
    EXPECT(said, true, { { CALLER, OWN }, RUNS, 25, 100, 0 },
           { { CALLER, OWN, { "work.<locals>.<listcomp>", "/home/me/x.py", 5, false } },
             RUNS,
             25,
             150,
             0 },
           REST(750));
    /* code of libraries counts for the line that calls it */
    EXPECT(said, true,
           { { CALLER, OWN, { "dumps", LIBRARY "/json.py", 3, false } }, RUNS, 50, 250, 0 },
           REST(750));
}

/* It has the time of all its operators: what is to be tried there is another thing than of the program's own work. */
static void a_line_that_calls(void **state)
{
#define MODULE                                        \
    {                                                 \
        "forward", LIBRARY "/torch/nn/x.py", 9, false \
    }
#define LOOP                              \
    {                                     \
        "loop", "/home/me/x.py", 7, false \
    }
    static const char calls[] = "x.py:5, in work, takes 40 % of the running time, in operators and "
                                "modules that it calls: 400.000ms of 1.000s";
    static const char larger[] = "Then a larger batch", less[] = "do it less often";
    static const char loops[] =
        "x.py:7, in loop, takes 25 % of the running time: 250.000ms of 1.000s";

    (void)state;
    EXPECT(calls, true, { { CALLER, OWN, MODULE }, RUNS, 50, 400, 0 }, REST(600));
    EXPECT(larger, true, { { CALLER, OWN, MODULE }, RUNS, 50, 400, 0 }, REST(600));
    EXPECT(less, false, { { CALLER, OWN, MODULE }, RUNS, 50, 400, 0 }, REST(600));
    /* the line that is hot by its own work is named as well, from the same share on */
    EXPECT(calls, true, { { CALLER, OWN, MODULE }, RUNS, 50, 400, 0 },
           { { CALLER, LOOP }, RUNS, 50, 250, 0 }, REST(350));
    EXPECT(loops, true, { { CALLER, OWN, MODULE }, RUNS, 50, 400, 0 },
           { { CALLER, LOOP }, RUNS, 50, 250, 0 }, REST(350));
    EXPECT("in loop, takes", false, { { CALLER, OWN, MODULE }, RUNS, 50, 400, 0 },
           { { CALLER, LOOP }, RUNS, 49, 250, 0 }, REST(350));
    EXPECT("in loop, takes", false, { { CALLER, OWN, MODULE }, RUNS, 50, 400, 0 },
           { { CALLER, LOOP }, RUNS, 50, 240, 0 }, REST(360));
    /* nine tenths of it, not less */
    EXPECT(calls, true, { { CALLER, OWN, MODULE }, RUNS, 50, 360, 0 },
           { { CALLER, OWN }, RUNS, 50, 40, 0 }, REST(600));
    EXPECT("x.py:5, in work, takes 40 % of the running time: ", true,
           { { CALLER, OWN, MODULE }, RUNS, 50, 350, 0 }, { { CALLER, OWN }, RUNS, 50, 50, 0 },
           REST(600));
    /* torch's loader calls no module */
    EXPECT("x.py:5, in work, takes 40 % of the running time: ", true,
           { { CALLER, OWN, { "fetch", LIBRARY "/torch/utils/data/f.py", 9, false } },
             RUNS,
             50,
             400,
             0 },
           REST(600));
}

/* Operators that two lines called, of `mine` and `other` milliseconds in all; and a sample, or none. */
static void expect_operators(uint32_t mine, uint32_t other, bool sampled, const char *said)
{
    const char   *path = scratch_path("operators");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "t", 0), file = synth_string(s, "/home/me/x.py");
    uint32_t      work = synth_string(s, "work"), name = synth_string(s, "aten::mm");
    uint32_t      library = synth_frame_in(s, synth_string(s, "forward"), 1,
                                           synth_string(s, LIBRARY "/linear.py"), 7, false);
    uint64_t      ns = 1000;

    synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t took = (i % 2 ? other : mine) * (MS / 10);
        uint32_t own = synth_stack(s, 0, synth_frame_in(s, work, 1, file, i % 2 ? 9 : 5, false));
        uint32_t stack = synth_stack(s, own, library);
        uint32_t call = synth_call(s, &(struct snd_call_record){ .name = name, .stack = stack });
        synth_call_range(s, t, ns, call, took);
        synth_call_range(s, t, ns, call, took / 2); /* what it calls: its time counts once */
        ns += took + 100;
    }
    if (sampled)
        synth_sample(s, t, ns, 0, RUNS, t, MS);
    synth_close(s, true);
    struct sonde_buffer text = report_advice(path);
    bool                is_said = text.bytes && strstr(text.bytes, "operators' time") != NULL;
    if (is_said != (said != NULL) || (said && !strstr(text.bytes, said)))
        fail_msg("'%s' is not what is said:\n%s", said ? said : "", text.bytes);
    sonde_buffer_release(&text);
}

static void a_hot_line_of_operators(void **state)
{
    (void)state;
    expect_operators(
        80, 20, false,
        "x.py:5, in work, takes 80 % of the operators' time: 80.000ms of 100.000ms by stacks");
    expect_operators(20, 30, false, "x.py:9, in work, takes 60 %");
    expect_operators(20, 29, false, NULL); /* too short to tell */
    expect_operators(80, 20, true, NULL);  /* samples tell more */
}

static void imports(void **state)
{
    static const char  said[] = "Imports take 40 % of the running time";
    const struct place importing = { "_load", "<frozen importlib._bootstrap>", 7, false };

    (void)state;
    EXPECT(said, true, { { OWN, importing }, RUNS, 9, 200, 0 }, REST(300));
    EXPECT("Imports take", false, { { OWN, importing }, RUNS, 9, 199, 0 }, REST(300));
    EXPECT("Imports take 30 %", true, { { OWN, importing }, RUNS, 9, 300, 0 }, REST(700));
    EXPECT("Imports take", false, { { OWN, importing }, RUNS, 9, 300, 0 }, REST(705));
    EXPECT("in work, takes", false, { { OWN, importing }, RUNS, 60, 300, 0 }, REST(300));
}

static void the_interpreters_lock(void **state)
{
    static const char said[] = "2 threads wait 20 % of the time in which they could run";

    (void)state;
    EXPECT(said, true, { { OWN }, RUNS, 9, 200, 0 }, { { OWN }, WAITS_FOR_LOCK, 9, 50, 0 },
           { { OWN }, RUNS, 9, 200, 1 }, { { OWN }, WAITS_FOR_LOCK, 9, 50, 1 });
    EXPECT("interpreter's lock", false, { { OWN }, RUNS, 9, 200, 0 },
           { { OWN }, WAITS_FOR_LOCK, 9, 50, 0 }, { { OWN }, RUNS, 9, 200, 1 },
           { { OWN }, WAITS_FOR_LOCK, 9, 49, 1 });
    EXPECT("interpreter's lock", false, { { OWN }, RUNS, 9, 200, 0 },
           { { OWN }, WAITS_FOR_LOCK, 9, 60, 0 }, { { OWN }, RUNS, 9, 250, 1 },
           { { OWN }, WAITS_FOR_LOCK, 9, 50, 1 });
    EXPECT("interpreter's lock", false, { { OWN }, RUNS, 9, 200, 0 },
           { { OWN }, WAITS_FOR_LOCK, 9, 150, 0 }, { { OWN }, RUNS, 9, 200, 1 });
}

static void kinds_of_waits(void **state)
{
    static const struct {
        struct place innermost;
        const char  *words;
    } cases[] = {
        { { "__GI___nanosleep", "/lib/libc.so.6", 0, true }, "sleeps" },
        { { "clock_nanosleep", "/lib/libc.so.6", 0, true }, "sleeps" },
        { { "__new_sem_wait", "/lib/libc.so.6", 0, true }, "waits for a lock" },
        { { "__libc_recv", "/lib/libc.so.6", 0, true }, "waits for I/O" },
        { { "epoll_wait", "/lib/libc.so.6", 0, true }, "waits for I/O" },
        { { "epoll_waits", "/lib/libc.so.6", 0, true }, "waits 20 %" },
        { { "poll", LIBRARY "/x.py", 3, false }, "waits 20 %" }, /* a native function's name */
        { { "acquire", LIBRARY "/threading.py", 3, false }, "waits for a lock" },
        { { "get", LIBRARY "/queue.py", 3, false }, "waits for a lock" },
        { { "select", LIBRARY "/selectors.py", 3, false }, "waits for I/O" },
        { { "recv", LIBRARY "/multiprocessing/connection.py", 3, false }, "waits for I/O" },
        { { "other", LIBRARY "/other.py", 3, false }, "waits 20 %" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char said[128];
        snprintf(said, sizeof said, "The main thread %s", cases[i].words);
        EXPECT(said, true, { { CALLER, OWN, cases[i].innermost }, WAITS, 9, 100, 0 }, REST(400));
    }
    const struct place sleeps = { "usleep", "/lib/libc.so.6", 0, true };
    EXPECT("sleeps 20 % of its time at x.py:5: 100.000ms of 500.000ms", true,
           { { CALLER, OWN, sleeps }, WAITS, 9, 100, 0 }, REST(400));
    EXPECT("sleeps", false, { { CALLER, OWN, sleeps }, WAITS, 9, 99, 0 }, REST(300));
    EXPECT("sleeps", false, { { CALLER, OWN, sleeps }, WAITS, 9, 100, 0 }, REST(405));
    EXPECT("sleeps", false, { { CALLER, OWN, sleeps }, WAITS, 9, 200, 1 }, REST(400));
    /* while others work, it may */
    EXPECT("sleeps", true, { { CALLER, OWN, sleeps }, WAITS, 9, 100, 0 },
           { { OWN }, RUNS, 9, 50, 1 }, REST(400));
    EXPECT("sleeps", false, { { CALLER, OWN, sleeps }, WAITS, 9, 100, 0 },
           { { OWN }, RUNS, 9, 51, 1 }, REST(400));
}

static void loading_data(void **state)
{
    const struct place loader = { "__next__", "/py/torch/utils/data/dataloader.py", 700, false };
    const struct place fetch = { "fetch", "/py/torch/utils/data/_utils/fetch.py", 50, false };
    const struct place importing = { "_load", "<frozen importlib._bootstrap>", 7, false };

    (void)state;
    EXPECT("Loading data in the main process takes 10 % of the main thread's time, 50.000ms, at "
           "x.py:5",
           true, { { OWN, loader, fetch }, RUNS, 9, 50, 0 }, REST(450));
    EXPECT("Loading data", false, { { OWN, loader, fetch }, RUNS, 9, 50, 0 }, REST(455));
    /* of the rest where imports stand out, as for a hot line; 9 % of all */
    EXPECT("Loading data in the main process takes 18 % of the main thread's time without imports, "
           "90.000ms, at x.py:5",
           true, { { OWN, loader, fetch }, RUNS, 9, 90, 0 },
           { { OWN, importing }, RUNS, 9, 500, 0 }, REST(410));
    EXPECT("Waiting for the DataLoader's workers takes 20 %", true,
           { { OWN, loader }, WAITS, 9, 100, 0 }, REST(400));
    EXPECT("The main thread waits", false, { { OWN, loader }, WAITS, 9, 100, 0 }, REST(400));
    EXPECT("DataLoader", false, { { OWN, loader }, WAITS, 9, 100, 1 }, REST(400));
    /* torch is imported, and with it the module that has the DataLoader; one that loads may import, too */
    const struct place module = { "<module>", "/py/torch/utils/data/dataloader.py", 1, false };
    EXPECT("DataLoader", false, { { OWN, importing, module, importing }, RUNS, 9, 200, 0 },
           REST(400));
    EXPECT("Waiting for the DataLoader's workers", true,
           { { OWN, loader, importing, module }, RUNS, 9, 100, 0 }, REST(400));
}

static void too_many_threads(void **state)
{
    static const char said[] =
        "3.0 threads want to run in the mean, on 2 processors: 3 threads want to";

    (void)state;
    BESIDE(said, true, { { OWN }, RUNS, 99, 500, 0 }, { { OWN }, RUNS, 99, 500, 1 },
           { { OWN }, RUNS, 99, 500, 2 });
    BESIDE("want to run", false, { { OWN }, RUNS, 99, 500, 0 }, { { OWN }, RUNS, 99, 499, 1 },
           { { OWN }, RUNS, 99, 500, 2 });
    BESIDE("want to run", false, { { OWN }, RUNS, 99, 500, 0 }, { { OWN }, RUNS, 99, 500, 1 },
           { { OWN }, WAITS, 99, 500, 2 });
}

/* --------------------------------------------------------------------------- heap */

struct heap {
    uint64_t allocations, temporary, live_bytes, live_blocks, peak_bytes, peak_blocks, whole_peak;
    const char *function;
};

static void expect_heap(struct heap h, const char *said, bool is_said)
{
    const char    *path = scratch_path("heap");
    struct synth  *s = synth_new(path, NULL);
    const uint64_t own[SND_HEAP_WORDS] = { [SND_HEAP_ALLOCATIONS] = h.allocations,
                                           [SND_HEAP_BYTES] = h.live_bytes + h.peak_bytes,
                                           [SND_HEAP_FREES] = h.allocations - h.live_blocks,
                                           [SND_HEAP_FREED_BYTES] = h.peak_bytes,
                                           [SND_HEAP_TEMPORARY] = h.temporary,
                                           [SND_HEAP_PEAK_NUMBER] = 1,
                                           [SND_HEAP_PEAK_BYTES] = h.peak_bytes,
                                           [SND_HEAP_PEAK_BLOCKS] = h.peak_blocks };
    const uint64_t all[SND_HEAP_PROCESS_WORDS] = { [SND_HEAP_PROCESS_ALLOCATIONS] = h.allocations,
                                                   [SND_HEAP_PROCESS_LIVE] = h.live_bytes,
                                                   [SND_HEAP_PROCESS_PEAK] = h.whole_peak,
                                                   [SND_HEAP_PROCESS_PEAKS] = 1 };

    uint32_t stack = synth_stack(s, 0,
                                 synth_frame_in(s, synth_string(s, h.function), 1,
                                                synth_string(s, "/home/me/x.py"), 5, false));
    synth_tally(s, SND_TALLY_HEAP, stack, 0, own, SND_HEAP_WORDS);
    synth_tally(s, SND_TALLY_HEAP_PROCESS, 0, 0, all, SND_HEAP_PROCESS_WORDS);
    synth_close(s, true);
    struct sonde_buffer text = report_advice(path);
    if ((text.bytes && strstr(text.bytes, said) != NULL) != is_said)
        fail_msg("'%s' is %ssaid:\n%s", said, is_said ? "not " : "", text.bytes);
    sonde_buffer_release(&text);
}

static void heaps(void **state)
{
    const uint64_t    MB = 1 << 20;
    const struct heap peak = { 10, 0, 0, 0, 32 * MB, 3, 64 * MB, "work" };
    struct heap       h;

    (void)state;
    expect_heap(peak, "x.py:5 allocated 50 % of the heap's peak: 32.00 MB of 64.00 MB, in 3 blocks",
                true);
    h = peak, h.whole_peak = 64 * MB - 1;
    expect_heap(h, "of the heap's peak", false);
    h = peak, h.peak_bytes = 31 * MB;
    expect_heap(h, "of the heap's peak", false);

    const struct heap leak = { 100, 0, MB, 16, 0, 0, 10 * MB, "work" };
    expect_heap(leak,
                "1.00 MB in 16 blocks that were allocated at x.py:5 are not freed at the end: 10 %",
                true);
    h = leak, h.live_blocks = 15;
    expect_heap(h, "not freed", false);
    h = leak, h.live_bytes = MB - 1;
    expect_heap(h, "not freed", false);
    h = leak, h.whole_peak = 11 * MB;
    expect_heap(h, "not freed", false);
    h = leak, h.function = "<module>"; /* an import's */
    expect_heap(h, "not freed", false);

    const struct heap temporary = { 50000, 10000, 0, 0, 0, 0, MB, "work" };
    expect_heap(temporary, "20 % of 50000 allocations are freed by the next call", true);
    h = temporary, h.allocations = 50001;
    expect_heap(h, "freed by the next call", false);
    h = temporary, h.temporary = 9999, h.allocations = 20000;
    expect_heap(h, "freed by the next call", false);
}

/* ------------------------------------------------------------------------- tensors */

/* Two tensors that lie side by side, of an operator each. */
static const char *make_tensors(uint64_t more_bytes)
{
    const char   *path = scratch_path("tensors");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "t", 0);
    const char   *names[] = { "aten::empty", "aten::ones" };

    for (uint32_t i = 0; more_bytes > 0 && i < 2; i++) {
        synth_begin(s, t, 100 + 100 * i, synth_string(s, names[i]), 0);
        synth_alloc(s, t, 110 + 100 * i, SND_DEVICE(0, 0xffff), 0x1000 + i,
                    i ? more_bytes : 96 << 20);
        synth_end(s, t, 150 + 100 * i);
    }
    synth_mark(s, t, 400, synth_string(s, "end"), 0);
    synth_close(s, true);
    return path;
}

/* Who waits for the walk over the trace is who has something to look for in it. */
static void what_is_not_there_is_not_waited_for(void **state)
{
    (void)state;
    for (uint64_t bytes = 0; bytes < 2; bytes++) {
        struct sonde_trace *trace = scratch_open(make_tensors(bytes << 20));
        struct snd_advisor *advisor;
        assert_int_equal(snd_advisor_new(trace, &advisor, NULL), SONDE_OK);
        assert_int_equal(advisor->memory != NULL, bytes > 0);
        assert_null(advisor->gpu);
        snd_advisor_free(advisor);
        sonde_trace_close(trace);
    }
}

static void the_peak_of_tensors(void **state)
{
    struct sonde_buffer text = report_advice(make_tensors(32 << 20));

    (void)state;
    if (!strstr(text.bytes, "aten::empty holds 75 % of the peak of the CPU's memory: 96.00 MB of "
                            "128.00 MB, in 1 block"))
        fail_msg("%s", text.bytes);
    sonde_buffer_release(&text);
}

/* A place is named by its file's last part, or by its range; both are cut. */
static void names_of_places(void **state)
{
    char            text[SND_SPOT_TEXT], name[151], cut[128];
    struct snd_spot spot = { { "/home/me/x.py", 13 }, { "work", 4 }, 5 };

    (void)state;
    assert_string_equal(snd_spot_short(&spot, text), "x.py:5");
    spot.file = (struct sonde_text){ "x.py", 4 };
    assert_string_equal(snd_spot_short(&spot, text), "x.py:5");
    spot.line = 0;
    assert_string_equal(snd_spot_short(&spot, text), "work");
    spot.function = (struct sonde_text){ "Net.fc|Linear", 6 }; /* without its class */
    assert_string_equal(snd_spot_short(&spot, text), "Net.fc");
    memset(name, 'n', 150);
    name[150] = '\0';
    spot.function = spot.file = (struct sonde_text){ name, 150 };
    snprintf(cut, sizeof cut, "%.100s", name);
    assert_string_equal(snd_spot_short(&spot, text), cut);
    spot.line = UINT32_MAX;
    snprintf(cut, sizeof cut, "%.100s:4294967295", name);
    assert_string_equal(snd_spot_short(&spot, text), cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hot_line),
        cmocka_unit_test(a_line_that_calls),
        cmocka_unit_test(a_hot_line_of_operators),
        cmocka_unit_test(imports),
        cmocka_unit_test(the_interpreters_lock),
        cmocka_unit_test(kinds_of_waits),
        cmocka_unit_test(loading_data),
        cmocka_unit_test(too_many_threads),
        cmocka_unit_test(heaps),
        cmocka_unit_test(what_is_not_there_is_not_waited_for),
        cmocka_unit_test(the_peak_of_tensors),
        cmocka_unit_test(names_of_places),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
