/* SPDX-License-Identifier: Apache-2.0 */
/* What is worth knowing: of steps, how many are slow and what the median is; of a GPU that did next to nothing. */
#include "model/highlights/highlights.h"

#include "format/layout.h"
#include "scratch.h"

static const struct snd_highlight *find_link(const struct snd_highlights *found, const char *link)
{
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->items[i].link, link) == 0)
            return &found->items[i];
    return NULL;
}

/* Steps of so many milliseconds, one after the other; the mark after the last ends it. */
static const struct snd_highlight *tell(const unsigned *ms, size_t count,
                                        struct snd_highlights *out)
{
    struct synth *s = synth_new(scratch_path("steps"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "work");
    uint64_t      ns = 1000;

    for (size_t i = 0; i <= count; i++) {
        synth_step(s, t, ns, i);
        if (i == count)
            break;
        synth_begin(s, t, ns + 10, name, 0);
        synth_end(s, t, ns + 20);
        ns += ms[i] * 1000000u;
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("steps"));
    *out = (struct snd_highlights){ .count = 0 };
    assert_int_equal(snd_highlights_find(trace, SND_HAS_STEPS, out, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return find_link(out, "table/steps");
}

static void slow_steps(void **state)
{
    const unsigned two[] = { 10, 20, 10, 11, 30, 9, 10, 10 }, one[] = { 10, 10, 25, 10, 12 },
                   none[] = { 10, 19, 9, 10, 10 }, few[] = { 10, 30 };
    struct snd_highlights found;

    (void)state;
    const struct snd_highlight *h = tell(two, 8, &found);
    assert_non_null(h);
    assert_string_equal(h->text, "2 of 8 steps take at least twice as long as the median step");
    assert_string_equal(h->detail,
                        "The median is 10.000ms, the shortest 9.000ms, the longest 30.000ms.");
    h = tell(one, 5, &found);
    assert_non_null(h);
    assert_string_equal(h->text, "1 of 5 steps takes at least twice as long as the median step");
    h = tell(none, 5, &found);
    assert_non_null(h);
    assert_string_equal(h->text, "5 steps of 10.000ms in the median; none takes twice as long");
    assert_null(tell(few, 2, &found));
}

/*
 * Of a GPU whose only kernel has no length there is no share of time; one that is idle for less than 1 % has nothing to
 * be told of.
 */
static void a_gpu_that_is_idle_is_told_of(void **state)
{
    static const struct {
        uint64_t    length, second; /* of the first kernel; when another of 100 ns begins */
        const char *text;
    } cases[] = { { 0, 0, NULL },
                  { 2, 0, NULL },
                  { 890, 1000, "The GPU runs no kernel 1 % of the time" },
                  { 892, 1000, NULL },
                  { 400, 800, "The GPU runs no kernel 38 % of the time" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_highlights found = { .count = 0 };
        struct synth         *s = synth_new(scratch_path("gpu"), NULL);
        uint32_t              t = synth_thread(s, "cupti", 0);
        uint32_t queue = synth_queue(s, &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 7, 0 });
        uint32_t work = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "relu"),
                                                                 .kind = SND_WORK_KERNEL });
        synth_device(s, t, 100, work, queue, cases[i].length, 0, 0);
        if (cases[i].second)
            synth_device(s, t, cases[i].second, work, queue, 100, 0, 0);
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("gpu"));
        assert_int_equal(snd_highlights_find(trace, SND_HAS_WORK, &found, NULL), SONDE_OK);
        sonde_trace_close(trace);
        const struct snd_highlight *h = find_link(&found, "table/gpu");
        assert_int_equal(h != NULL, cases[i].text != NULL);
        if (h)
            assert_string_equal(h->text, cases[i].text);
    }
}

/* What is said of where the function with the most time of its own is. */
static void check_place(const char *file, uint32_t line, const char *expected)
{
    const uint64_t        words[8] = { 1, 1, 1000, 900, 0, 0, 1, 1000 };
    struct snd_highlights found = { .count = 0 };
    struct synth         *s = synth_new(scratch_path("place"), NULL);
    uint32_t              f = synth_string(s, "f");

    synth_tally(s, SND_TALLY_CALLS, synth_frame_in(s, f, line, synth_string(s, file), line, false),
                0, words, 8);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("place"));
    assert_int_equal(snd_highlights_find(trace, SND_HAS_FUNCTIONS, &found, NULL), SONDE_OK);
    sonde_trace_close(trace);
    const struct snd_highlight *h = find_link(&found, "table/functions");
    assert_non_null(h);
    assert_string_equal(h->text, "The function f takes 100 % of the time of all threads itself");
    assert_string_equal(h->detail, expected);
}

/* Built-in functions have "~" for a file, which says nothing; other names may begin with it, or be as short. */
static void places_of_functions(void **state)
{
    char path[250], expected[256];

    (void)state;
    check_place("~", 0, "");
    check_place("~me.py", 7, "~me.py:7");
    check_place("x", 7, "x:7");
    check_place("/home/me/x.py", 0, "/home/me/x.py");
    check_place("", 7, "");
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    snprintf(expected, sizeof expected, "%.200s:7", path);
    check_place(path, 7, expected);
}

/* Time that several threads waited is left out, unless it was asked for and the kernel reports it. */
static void waits_of_samples_are_left_out(void **state)
{
    static const char *const asked[] = { NULL, "yes", "no" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct synth *s = synth_new(scratch_path("waits"), NULL);
        uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
        uint32_t      file = synth_string(s, "f.py");
        uint32_t      busy = synth_stack(s, 0, synth_frame(s, synth_string(s, "busy"), file, 1));
        uint32_t      idle = synth_stack(s, 0, synth_frame(s, synth_string(s, "wait"), file, 2));
        if (asked[i])
            synth_meta(s, "native.off_cpu", asked[i]);
        synth_sample(s, t, 1000, busy, 3 | 1 << 8, t, 100);
        synth_sample(s, t, 2000, idle, 2 | 1 << 8, u, 1000);
        synth_close(s, true);
        struct snd_highlights found = { .count = 0 };
        struct sonde_trace   *trace = scratch_open(scratch_path("waits"));
        assert_int_equal(snd_highlights_find(trace, SND_HAS_SAMPLES, &found, NULL), SONDE_OK);
        sonde_trace_close(trace);
        const struct snd_highlight *h = find_link(&found, "flame/samples");
        assert_non_null(h);
        assert_int_equal(strstr(h->text, "the running time") == NULL, i == 1);
    }
}

static const struct snd_highlight *find_text(const struct snd_highlights *found, const char *begins)
{
    for (size_t i = 0; i < found->count; i++)
        if (strncmp(found->items[i].text, begins, strlen(begins)) == 0)
            return &found->items[i];
    return NULL;
}

/* One call of many is told of if it takes ten times their mean, and two hundredths of all time. */
static void one_call_that_takes_long(void **state)
{
    static const struct {
        uint64_t usual, odd,
            other; /* calls of 1 us; one more of so long; another range of so long */
        bool told;
    } cases[] = { { 20, 18182, 0, true },       { 20, 18181, 0, false },
                  { 2, 1000000, 0, false },     { 20, 20000, 960000, true },
                  { 20, 20000, 960100, false }, { 20, 1000, 0, false } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_highlights found = { .count = 0 };
        struct synth         *s = synth_new(scratch_path("odd"), NULL);
        uint32_t              t = synth_thread(s, "main", 0), work = synth_string(s, "work");
        uint64_t              ns = 1000;
        synth_span(s, t, ns, work, cases[i].odd);
        for (uint64_t n = 0; n < cases[i].usual; n++)
            synth_span(s, t, (ns += 2000000), work, 1000);
        if (cases[i].other)
            synth_span(s, t, (ns += 2000000), synth_string(s, "other"), cases[i].other);
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("odd"));
        assert_int_equal(snd_highlights_find(trace, 0, &found, NULL), SONDE_OK);
        sonde_trace_close(trace);
        const struct snd_highlight *h = find_text(&found, "One call of work");
        if ((h != NULL) != cases[i].told)
            fail_msg("case %zu: %s", i, h ? h->text : "nothing");
        if (i > 0)
            continue;
        assert_string_equal(h->text, "One call of work takes 18.182us, 10 times its mean");
        assert_string_equal(h->detail, "Of 21 calls, which take 1.818us in the mean; the first one "
                                       "often pays for set-up.");
    }
}

/* What of a heap's peak was not freed is told, or that all was. */
static void what_is_left_of_a_heap(void **state)
{
    static const struct {
        uint64_t    frees, freed;
        const char *told;
    } cases[] = { { 3, 300, "All was freed at the end." },
                  { 2, 200, "Of all, 100 B in 1 block was not freed at the end." },
                  { 0, 0, "Of all, 300 B in 3 blocks were not freed at the end." } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_highlights found = { .count = 0 };
        struct synth         *s = synth_new(scratch_path("heap"), NULL);
        uint32_t              file = synth_string(s, "f.c");
        uint32_t              stack = synth_stack(s, 0,
                                                  synth_frame_in(s, synth_string(s, "load"), 1, file, 2, true));
        const uint64_t        own[SND_HEAP_WORDS] = {
                   [SND_HEAP_ALLOCATIONS] = 3,        [SND_HEAP_BYTES] = 300,
                   [SND_HEAP_FREES] = cases[i].frees, [SND_HEAP_FREED_BYTES] = cases[i].freed,
                   [SND_HEAP_PEAK_NUMBER] = 1,        [SND_HEAP_PEAK_BYTES] = 300,
                   [SND_HEAP_PEAK_BLOCKS] = 3
        };
        const uint64_t all[SND_HEAP_PROCESS_WORDS] = { [SND_HEAP_PROCESS_ALLOCATIONS] = 3,
                                                       [SND_HEAP_PROCESS_LIVE] = 300 -
                                                                                 cases[i].freed,
                                                       [SND_HEAP_PROCESS_PEAK] = 300,
                                                       [SND_HEAP_PROCESS_PEAKS] = 1 };
        synth_tally(s, SND_TALLY_HEAP, stack, 0, own, SND_HEAP_WORDS);
        synth_tally(s, SND_TALLY_HEAP_PROCESS, 0, 0, all, SND_HEAP_PROCESS_WORDS);
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("heap"));
        assert_int_equal(snd_highlights_find(trace, SND_HAS_HEAP, &found, NULL), SONDE_OK);
        sonde_trace_close(trace);
        const struct snd_highlight *h = find_link(&found, "flame/heap-peak");
        assert_non_null(h);
        assert_string_equal(h->text, "The heap peaks at 300 B; load allocated 100 % of it");
        if (!strstr(h->detail, "300 B in 3 blocks") || !strstr(h->detail, cases[i].told))
            fail_msg("%s", h->detail);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(slow_steps),
                                        cmocka_unit_test(a_gpu_that_is_idle_is_told_of),
                                        cmocka_unit_test(places_of_functions),
                                        cmocka_unit_test(waits_of_samples_are_left_out),
                                        cmocka_unit_test(one_call_that_takes_long),
                                        cmocka_unit_test(what_is_left_of_a_heap) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
