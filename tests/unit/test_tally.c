/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tallies: counters that live in the trace. They are there whatever the program dies of, belong
 * to one file each, and never lead a late writer into a closed one.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "recorded.h"

static uint64_t *count_line(uint32_t line, uint32_t other)
{
    uint32_t function = sonde_intern("f", 1), file = sonde_intern("f.py", 4);
    uint32_t frame = sonde_intern_frame_in(function, 1, file, line);

    return sonde_tally(SONDE_TALLY_LINE, frame, other, 2);
}

/* The first word of the tally of a line, or -1; there may be but one. */
static int64_t read_line(const struct sonde_trace *trace, uint32_t process, uint32_t line)
{
    struct sonde_tally_row row;
    struct sonde_frame     frame;
    int64_t                found = -1;

    for (uint32_t n = 0; sonde_trace_tally(trace, process, n, &row); n++) {
        if (row.kind != SONDE_TALLY_LINE || !sonde_trace_frame(trace, process, row.key, &frame) ||
            frame.line != line)
            continue;
        assert_int_equal(found, -1);
        assert_string_equal(frame.function.bytes, "f");
        assert_int_equal(frame.first_line, 1);
        assert_int_equal(row.count, 2);
        assert_int_equal(row.words[2], 0);
        found = (int64_t)row.words[0];
    }
    return found;
}

static void test_counted_in_place(void **state)
{
    (void)state;
    enum { LINES = 20000 }; /* several chunks of tables */
    struct sonde_options options = recorded_options("tally.sonde");
    uint64_t            *first;

    assert_null(sonde_tally(SONDE_TALLY_LINE, 1, 0, 2)); /* nothing records */
    recorded_start(&options);
    assert_null(sonde_tally(SONDE_TALLY_LINE, 1, 0, 9)); /* more words than there can be */
    first = count_line(1, 0);
    for (uint32_t i = 1; i <= LINES; i++) {
        uint64_t *words = count_line(i, 0);
        assert_non_null(words);
        words[0] += i;
    }
    assert_ptr_equal(count_line(1, 0), first);
    assert_ptr_not_equal(count_line(1, 7), first);
    sonde_pause();
    sonde_resume();
    assert_ptr_equal(count_line(1, 0), first); /* the same file, so the same counter */
    first[0]++;
    recorded_stop();
    first[0] = 99; /* a late writer: harmless, and without effect */

    struct sonde_trace    *trace = recorded_open("tally.sonde");
    struct sonde_tally_row row;
    uint64_t               sum = 0, rows = 0;
    for (uint32_t n = 0; sonde_trace_tally(trace, 0, n, &row); n++, rows++)
        sum += row.words[0];
    assert_int_equal(rows, LINES + 1);
    assert_int_equal(sum, (uint64_t)LINES * (LINES + 1) / 2 + 1);
    assert_int_equal(read_line(trace, 0, LINES), LINES);
    assert_int_equal(recorded_ledger(trace, "damaged_chunks"), 0);
    sonde_trace_close(trace);
}

/* qemu-user and TSan die when the forked child of a program that had threads starts one. */
static void skip_without_fork(void)
{
    if (getenv("SONDE_TEST_NO_FORK"))
        skip();
}

static void test_killed(void **state)
{
    (void)state;
    skip_without_fork();
    pid_t child = fork();

    if (child == 0) {
        struct sonde_options options = recorded_options("killed.sonde");
        recorded_start(&options);
        count_line(3, 0)[0] = 42;
        kill(getpid(), SIGKILL);
    }
    recorded_path(""); /* the folder is ours to remove */
    waitpid(child, NULL, 0);
    struct sonde_trace *trace = recorded_open("killed.sonde");
    assert_int_equal(read_line(trace, 0, 3), 42);
    sonde_trace_close(trace);
}

static void test_child_counts_for_itself(void **state)
{
    (void)state;
    skip_without_fork();
    struct sonde_options options = recorded_options("forked.sonde");

    recorded_start(&options);
    uint32_t epoch = sonde_epoch();
    count_line(5, 0)[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        if (sonde_epoch() == epoch)
            _exit(2); /* nobody would ask again */
        count_line(5, 0)[0] += 10;
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("forked.sonde");
    assert_int_equal(sonde_trace_process_count(trace), 2);
    assert_int_equal(read_line(trace, 0, 5) + read_line(trace, 1, 5), 11);
    sonde_trace_close(trace);
}

/* ---------------------------------------------------------- a late writer */

static uint64_t *volatile target, *volatile written;
static volatile bool done;

static void *write_on(void *argument)
{
    while (!done) {
        uint64_t *words = target;
        if (words)
            words[1]++; /* in the middle of whatever stop does */
        written = words;
    }
    return argument;
}

/* A counter may be written to until the next recording has ended, and not longer. */
static void wait_for_writer(void)
{
    while (written != target)
        sched_yield();
}

static void test_written_while_it_stops(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* the race is what is tested */
#endif
    pthread_t thread;

    pthread_create(&thread, NULL, write_on, NULL);
    for (int i = 0; i < 50; i++) {
        struct sonde_options options = recorded_options("late.sonde");
        recorded_start(&options);
        target = count_line(1, 0);
        target[0] = (uint64_t)i;
        wait_for_writer();
        recorded_stop();
        struct sonde_trace *trace = recorded_open("late.sonde");
        assert_int_equal(read_line(trace, 0, 1), i);
        assert_int_equal(recorded_ledger(trace, "damaged_chunks"), 0);
        sonde_trace_close(trace);
    }
    done = true;
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counted_in_place),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_child_counts_for_itself),
        cmocka_unit_test(test_written_while_it_stops),
    };
    return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
