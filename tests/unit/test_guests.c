/* SPDX-License-Identifier: Apache-2.0 */
/* read/tables/guests.c: processes whose threads are in another process's file. */
#include "format/layout.h"
#include "scratch.h"

static const struct sonde_process *find_process(const struct sonde_trace *trace, uint32_t pid)
{
    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++)
        if (sonde_trace_process(trace, i)->pid == pid)
            return sonde_trace_process(trace, i);
    fail_msg("no process %u", (unsigned)pid);
    return NULL;
}

/*
 * A process is called as its main thread is, whichever of its threads was seen first; one whose main thread was not seen, or has
 * no name, as the first that has one. It lives as long as its threads.
 */
static void named_after_the_main_thread(void **state)
{
    static const struct {
        uint32_t    pid;
        const char *program;
        int64_t     start_ns, stop_ns;
    } expected[] = {
        { 4242, "prog", 0, 9000 },     { 5000, "server", 1000, 8000 }, /* main last */
        { 6000, "shell", 2000, 9000 },                                 /* main first */
        { 7000, "pool", 4000, 4500 },                                  /* main not seen */
        { 8000, "helper", 100, 9000 },                                 /* main without a name */
    };
    struct synth *s = synth_new(scratch_path("guests"), NULL);

    (void)state;
    uint32_t own = synth_thread(s, "host's own", 0);
    synth_thread_done(s, synth_thread_in(s, "worker", 5000, 5002, 2000), 8000, 0);
    synth_thread_done(s, synth_thread_in(s, "other", 5000, 5003, 3000), 4000, 0);
    synth_thread_done(s, synth_thread_in(s, "server", 5000, 5000, 1000), 7000, 0);
    synth_thread_in(s, "shell", 6000, 6000, 2000);
    synth_thread_in(s, "worker", 6000, 6001, 2500);
    synth_thread_done(s, synth_thread_in(s, "pool", 7000, 7001, 4000), 4400, 0);
    synth_thread_done(s, synth_thread_in(s, "pool 2", 7000, 7002, 4100), 4500, 0);
    synth_thread_in(s, NULL, 8000, 8000, 100);
    synth_thread_in(s, "helper", 8000, 8001, 200);
    synth_mark(s, own, 9000, synth_string(s, "end"), 0);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("guests"));
    assert_int_equal(sonde_trace_process_count(trace), 5);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct sonde_process *p = find_process(trace, expected[i].pid);
        assert_string_equal(p->program, expected[i].program);
        assert_int_equal(p->start_ns, expected[i].start_ns);
        assert_int_equal(p->stop_ns, expected[i].stop_ns);
        assert_int_equal(p->start_real_ns, SYNTH_START_REAL_NS + (uint64_t)expected[i].start_ns);
        assert_int_equal(p->size_bytes == 0, i > 0);
    }
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(named_after_the_main_thread) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
