/* SPDX-License-Identifier: Apache-2.0 */
/* view/samples/sample_page.c: what stands above the samples: who held the lock, who waited. */
#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"

#define MS 1000000u

static struct sonde_buffer text_of(const char *path, bool gil, bool show_all)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct sonde_trace         *trace = scratch_open(path);

    options.view = "samples";
    options.gil = gil;
    options.show_all = show_all;
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return text;
}

static uint32_t one_stack(struct synth *s)
{
    return synth_stack(s, 0,
                       synth_frame_in(s, synth_string(s, "work"), 1, synth_string(s, "prog.py"), 2,
                                      false));
}

/* Threads by the time that each held it, in an order of its own: 3, 4, .., then 1, 2 ms. */
static void write_holders(const char *path, unsigned threads)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      stack = one_stack(s), sampler = synth_thread(s, "sampler", 0);

    for (unsigned i = 0; i < threads; i++) {
        unsigned ms = (i + 2) % threads + 1;
        char     name[16];
        snprintf(name, sizeof name, "w%u", ms);
        uint32_t t = synth_thread_of(s, name, 100 + ms, 0);
        synth_sample(s, sampler, (uint64_t)100 * MS + i, stack,
                     SONDE_SAMPLE_GIL | SONDE_SAMPLE_ON_CPU, t, ms * MS);
    }
    synth_close(s, true);
}

static void expect_lines(const char *text, const char *const *lines, size_t count)
{
    const char *at = text;

    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(at, lines[i]);
        if (!found)
            fail_msg("not there, or not in this place: %s\n%s", lines[i], text);
        at = found + strlen(lines[i]);
    }
}

/* The longest first, ten of them. 1 + 2 + .. + 12 ms are 78. */
static void holders_by_time(void **state)
{
    static const char *const lines[] = {
        "GIL:     held for 0.078 s of 0.0",
        "    15.4 %  0.012 s  thread 112 w12 of process ",
        "    14.1 %  0.011 s  thread 111 w11 of process ",
        "    12.8 %  0.010 s  thread 110 w10 of process ",
        "     3.8 %  0.003 s  thread 103 w3 of process ",
        "            2 more threads: --json has them\n",
    };

    (void)state;
    write_holders(scratch_path("holders.sonde"), 12);
    struct sonde_buffer text = text_of(scratch_path("holders.sonde"), true, false);
    expect_lines(text.bytes, lines, sizeof lines / sizeof lines[0]);
    assert_null(strstr(text.bytes, "thread 102 "));
    sonde_buffer_release(&text);
    text = text_of(scratch_path("holders.sonde"), false, false);
    assert_null(strstr(text.bytes, "GIL:"));
    sonde_buffer_release(&text);
    write_holders(scratch_path("ten.sonde"), 10);
    text = text_of(scratch_path("ten.sonde"), true, false);
    assert_non_null(strstr(text.bytes, "thread 101 w1 of process "));
    assert_null(strstr(text.bytes, "more threads"));
    sonde_buffer_release(&text);
}

/* A thread that only waits is left out where another works, and is said to be. */
static void who_waits_is_left_out(void **state)
{
    struct synth *s = synth_new(scratch_path("waits.sonde"), NULL);
    uint32_t      stack = one_stack(s), sampler = synth_thread(s, "sampler", 0);
    uint32_t busy = synth_thread_of(s, "busy", 101, 0), idle = synth_thread_of(s, "idle", 102, 0);

    (void)state;
    synth_sample(s, sampler, 100 * MS, stack, SONDE_SAMPLE_ON_CPU, busy, 50 * MS);
    synth_sample(s, sampler, 110 * MS, stack, 0, idle, 20 * MS);
    synth_sample(s, sampler, 120 * MS, stack, SONDE_SAMPLE_GIL_WAIT, idle, 5 * MS);
    synth_close(s, true);
    struct sonde_buffer text = text_of(scratch_path("waits.sonde"), false, false);
    expect_lines(text.bytes,
                 (const char *const[]){
                     "Samples:  3\n", "Duration: 0.070", "CPU time: 0.050\n",
                     "Threads: 2 of 1 process, merged; --group-by thread shows each\n",
                     "Idle:    0.025 s of waiting threads left out, 0.005 s of it for "
                     "the GIL; --show-all shows it\n" },
                 5);
    sonde_buffer_release(&text);
    text = text_of(scratch_path("waits.sonde"), false, true);
    assert_null(strstr(text.bytes, "Idle:"));
    sonde_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_by_time),
        cmocka_unit_test(who_waits_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
