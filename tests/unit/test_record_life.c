/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that come and go, forks, signals, limits, pauses, thousands of recordings.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "numbered.h"
#include "turns.h"

/* --------------------------------------------------- failing system calls
 *
 * The recorder's fallocate and pwrite are wrapped by the linker (--wrap), so that a full disk, a
 * quota or a broken one can be had at will.
 */
int __real_fallocate64(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t length);

static int disk_error; /* atomic */

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t length)
{
    int error = __atomic_load_n(&disk_error, __ATOMIC_RELAXED);

    if (error != 0 && mode == 0) {
        errno = error;
        return -1;
    }
    return __real_fallocate64(fd, mode, offset, length);
}

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset);

ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset)
{
    int error = __atomic_load_n(&disk_error, __ATOMIC_RELAXED);

    if (error != 0) {
        errno = error;
        return -1;
    }
    return __real_pwrite64(fd, data, size, offset);
}

static void set_disk_error(int error)
{
    __atomic_store_n(&disk_error, error, __ATOMIC_RELAXED);
}

/* ----------------------------------------------------------------- threads */

enum { PER_THREAD = 100 };

static void *mark_some(void *argument)
{
    (void)argument;
    for (uint32_t i = 1; i <= PER_THREAD; i++)
        numbered_mark(i);
    return NULL;
}

static void test_threads_come_and_go(void **state)
{
    (void)state;
    enum { ROUNDS = 250, AT_ONCE = 8 };
    struct sonde_options options = recorded_options("threads.sonde");

    recorded_start(&options);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, mark_some, NULL), 0);
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
    }
    recorded_stop();

    struct sonde_trace *trace = recorded_open("threads.sonde");
    struct numbered    *n = numbered_read(trace, false);
    assert_int_equal(sonde_trace_thread_count(trace), ROUNDS * AT_ONCE);
    assert_int_equal(n->begins, ROUNDS * AT_ONCE * PER_THREAD);
    assert_int_equal(n->ends, n->begins);
    for (uint32_t i = 0; i < ROUNDS * AT_ONCE; i++)
        assert_int_equal(n->last[i], PER_THREAD);
    /* 2,000 threads share the chunks of those before them: 4.8 MB of events, not 2,000 chunks. */
    assert_true(sonde_trace_process(trace, 0)->size_bytes < 16u << 20);
    free(n);
    sonde_trace_close(trace);
}

static uint32_t keep_marking; /* atomic */

static void *mark_until_told(void *argument)
{
    (void)argument;
    for (uint32_t i = 1; __atomic_load_n(&keep_marking, __ATOMIC_RELAXED); i++)
        numbered_mark(i);
    return NULL;
}

static long count_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    long  lines = 0;

    for (int c; file && (c = getc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

static long resident_kib(void)
{
    long  pages = 0, size = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file) {
        if (fscanf(file, "%ld %ld", &size, &pages) != 2)
            pages = 0;
        fclose(file);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Started and stopped under the feet of threads that never stop marking. */
static void test_start_and_stop_under_load(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    int                  cycles = turns_are_fewer() ? 400 / (int)turns_one_of() : 2000;
    pthread_t            threads[THREADS];
    long                 maps = 0, memory = 0;
    struct sonde_options options = recorded_options("load.sonde");

    keep_marking = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, mark_until_told, NULL);
    for (int i = 0; i < cycles; i++) {
        recorded_start(&options);
        numbered_mark(1);
        recorded_stop();
        if (i % 50 == 0) {
            struct sonde_trace *trace = recorded_open("load.sonde");
            struct numbered    *n = numbered_read(trace, true);
            assert_true(n->begins >= 1);
            assert_int_equal(recorded_ledger(trace, "damaged_chunks"), 0);
            free(n);
            sonde_trace_close(trace);
        }
        if (i == cycles / 4) {
            maps = count_lines("/proc/self/maps");
            memory = resident_kib();
        }
    }
    long maps_grown = count_lines("/proc/self/maps") - maps;
    long memory_grown = resident_kib() - memory;
    __atomic_store_n(&keep_marking, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(maps_grown < 16);
    if (!turns_are_slow())
        assert_true(memory_grown < 1024);
}

/* ------------------------------------------------------------------- forks */

static void test_fork(void **state)
{
    (void)state;
    if (getenv("SONDE_TEST_NO_FORK"))
        skip(); /* qemu-user and TSan die when the forked child of a program with threads starts one */
    struct sonde_options options = recorded_options("fork.sonde");
    pthread_t            thread;

    keep_marking = 1;
    recorded_start(&options);
    pthread_create(&thread, NULL, mark_until_told, NULL);
    for (uint32_t i = 1; i <= 10; i++)
        numbered_mark(i);
    pid_t child = fork();
    if (child == 0) {
        for (uint32_t i = 1; i <= 5; i++)
            numbered_mark(i);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            numbered_mark(1);
            _exit(0);
        }
        waitpid(grandchild, NULL, 0);
        _exit(sonde_stop(NULL) == SONDE_OK ? 0 : 1);
    }
    pid_t silent = fork(); /* records nothing: leaves no file */
    if (silent == 0)
        _exit(0);
    int status = -1, silent_status = -1;
    waitpid(child, &status, 0);
    waitpid(silent, &silent_status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(silent_status, 0);
    for (uint32_t i = 11; i <= 20; i++)
        numbered_mark(i);
    __atomic_store_n(&keep_marking, 0, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    recorded_stop();

    /* The file brings those of its children; each is whole. */
    struct sonde_trace *trace = recorded_open("fork.sonde");
    struct numbered    *n = numbered_read(trace, false);
    assert_int_equal(sonde_trace_process_count(trace), 3);
    uint32_t found = 0;
    for (uint32_t i = 0; i < sonde_trace_thread_count(trace); i++) {
        uint32_t pid = sonde_trace_process(trace, sonde_trace_thread(trace, i)->process)->pid;
        if (pid == (uint32_t)child) {
            assert_int_equal(n->last[i], 5);
            found++;
        } else if (pid == (uint32_t)getpid() && sonde_trace_thread(trace, i)->tid == pid) {
            assert_int_equal(n->last[i], 20);
            found++;
        }
    }
    assert_int_equal(found, 2);
    free(n);
    sonde_trace_close(trace);
}

/* ----------------------------------------------------------------- signals */

static uint32_t handled;

static void mark_in_handler(int signal_number)
{
    (void)signal_number;
    sonde_begin("in handler");
    sonde_end();
    handled++;
}

struct handler_counts {
    uint64_t begins, ends;
    int64_t  depth;
};

static bool count_nested(const struct sonde_event *event, void *user)
{
    struct handler_counts *counts = user;

    counts->begins += event->kind == SONDE_EVENT_BEGIN;
    counts->ends += event->kind == SONDE_EVENT_END;
    counts->depth += event->kind == SONDE_EVENT_BEGIN;
    counts->depth -= event->kind == SONDE_EVENT_END;
    assert_true(counts->depth >= 0);
    return true;
}

static void test_signal_handlers_record(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("signals.sonde");
    /* Where the handler itself takes longer than the pause, the program would never go on. */
    suseconds_t      pause_us = turns_are_slow() ? 5000 : 50;
    struct itimerval often = { { 0, pause_us }, { 0, pause_us } }, never = { { 0, 0 }, { 0, 0 } };
    uint64_t         marked = 0;

    signal(SIGALRM, mark_in_handler);
    recorded_start(&options);
    setitimer(ITIMER_REAL, &often, NULL);
    for (struct timespec now, end = { 0, 0 };;) {
        for (int i = 0; i < 1000; i++, marked++) {
            SONDE_RANGE("outside");
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (end.tv_sec == 0)
            end.tv_sec = now.tv_sec + 2;
        if (now.tv_sec >= end.tv_sec)
            break;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN); /* also one on its way, which would count after the stop */
    recorded_stop();
    signal(SIGALRM, SIG_DFL);

    struct handler_counts counts = { 0, 0, 0 };
    struct sonde_trace   *trace = recorded_open("signals.sonde");
    recorded_walk(trace, count_nested, &counts);
    assert_true(handled > 0);
    assert_int_equal(counts.depth, 0);
    assert_int_equal(counts.begins + counts.ends + recorded_ledger(trace, "refused_events"),
                     2 * (marked + handled));
    assert_int_equal(recorded_ledger(trace, "lost_events"), 0); /* there was room enough */
    assert_int_equal(recorded_ledger(trace, "clock_backwards"), 0);
    sonde_trace_close(trace);
}

/*
 * A signal that arrives just when the clock has been read: its handler works for 20 ms and marks,
 * and only then does the interrupted mark go on, with the time that it has read.
 */
uint64_t __real_sonde_clock_fallback_(void);
uint64_t __wrap_sonde_clock_fallback_(void);

static uint64_t clock_ahead_ns;
static bool     signal_is_due;

uint64_t __wrap_sonde_clock_fallback_(void)
{
    uint64_t now = __real_sonde_clock_fallback_() + clock_ahead_ns;

    if (signal_is_due) {
        signal_is_due = false;
        clock_ahead_ns += 10000000;
        sonde_begin("in the handler");
        clock_ahead_ns += 10000000;
        sonde_end();
    }
    return now;
}

static void test_handler_just_after_the_clock_was_read(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("held.sonde");
    uint32_t             trust = sonde_clock_trust_;
    int                  x = 0;

    sonde_clock_trust_ = 0;
    recorded_start(&options);
    for (int mark = 0; mark < 6; mark++) {
        sonde_begin("around");
        sonde_mark("inside"); /* so that the range cannot close in place */
        signal_is_due = mark == 0;
        sonde_end();
        {
            SONDE_RANGE("scope");
            sonde_mark("inside");
            signal_is_due = mark == 1;
        }
        signal_is_due = mark == 2;
        sonde_alloc(SONDE_CPU, &x, 4);
        signal_is_due = mark == 3;
        sonde_link_from(7);
        signal_is_due = mark == 4;
        sonde_end_key(1);
        signal_is_due = mark == 5;
        sonde_counter("n", 1);
        assert_false(signal_is_due);
    }
    recorded_stop();
    sonde_clock_trust_ = trust;
    struct sonde_trace *trace = recorded_open("held.sonde");
    assert_int_equal(recorded_ledger(trace, "clock_backwards"), 0);
    assert_int_equal(recorded_ledger(trace, "refused_events"), 2 * 6);
    assert_int_equal(recorded_ledger(trace, "lost_events"), 0);
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------------ limits */

static void test_limit_stops(void **state)
{
    (void)state;
    enum { RANGES = 200000 };
    struct sonde_options options = recorded_options("limit.sonde");

    options.max_bytes = 1u << 20;
    recorded_start(&options);
    sonde_begin("around all");
    for (uint32_t i = 1; i <= RANGES; i++)
        sonde_begin_id(sonde_intern("numbered", 8), i), sonde_end();
    sonde_end();
    recorded_stop();

    struct handler_counts counts = { 0, 0, 0 };
    struct sonde_trace   *trace = recorded_open("limit.sonde");
    recorded_walk(trace, count_nested, &counts);
    assert_true(sonde_trace_process(trace, 0)->size_bytes <= 1u << 20);
    assert_true(counts.begins > 10000);
    assert_int_equal(counts.begins + counts.ends + recorded_ledger(trace, "lost_events"),
                     2 * (RANGES + 1));
    assert_true(recorded_ledger(trace, "limit_reached") > 0);
    sonde_trace_close(trace);
}

static void test_keep_last(void **state)
{
    (void)state;
    enum { RANGES = 400000 };
    struct sonde_options options = recorded_options("last.sonde");

    options.max_bytes = 2u << 20;
    options.limit = SONDE_LIMIT_KEEP_LAST;
    recorded_start(&options);
    for (uint32_t i = 1; i <= RANGES; i++)
        numbered_mark(i);
    recorded_stop();

    struct sonde_trace *trace = recorded_open("last.sonde");
    struct numbered    *n = numbered_read(trace, true);
    assert_true(sonde_trace_process(trace, 0)->size_bytes <= 2u << 20);
    assert_int_equal(n->last[0], RANGES); /* the newest is there */
    assert_true(n->begins > 20000 && n->begins < RANGES);
    assert_int_equal(n->begins + n->ends + recorded_ledger(trace, "recycled_events") +
                         recorded_ledger(trace, "lost_events"),
                     2 * RANGES);
    free(n);
    sonde_trace_close(trace);
}

static void test_pause(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("pause.sonde");

    recorded_start(&options);
    numbered_mark(1);
    sonde_begin_id(sonde_intern("numbered", 8), 2); /* still open when marking stops */
    sonde_pause();
    sonde_end();
    numbered_mark(99);
    sonde_resume();
    numbered_mark(3);
    recorded_stop();

    struct sonde_trace *trace = recorded_open("pause.sonde");
    struct numbered    *n = numbered_read(trace, false);
    assert_int_equal(n->last[0], 3);
    assert_int_equal(n->begins, 3);
    assert_int_equal(recorded_ledger(trace, "unfinished_ranges"), 1);
    free(n);
    sonde_trace_close(trace);
}

/* ------------------------------------------------- disks that say no */

static void wait_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&time, NULL);
}

/* The disk is full for a while in the middle: what was lost is counted, what nests nests. */
static void expect_survival(int error, const char *name)
{
    struct sonde_options options = recorded_options(name);
    uint64_t             marked = 0;

    options.chunk_bytes = 65536;
    recorded_start(&options);
    for (int phase = 0; phase < 3; phase++) {
        set_disk_error(phase == 1 ? error : 0);
        if (phase == 2)
            wait_ms(300); /* the supplier tries again every 100 ms */
        for (int i = 0; i < 30000; i++, marked += 2) {
            SONDE_RANGE("a");
            SONDE_RANGE("b");
        }
    }
    recorded_stop();

    struct handler_counts counts = { 0, 0, 0 };
    struct sonde_trace   *trace = recorded_open(name);
    recorded_walk(trace, count_nested, &counts);
    assert_int_equal(counts.begins + counts.ends + recorded_ledger(trace, "lost_events"),
                     2 * marked);
    assert_true(recorded_ledger(trace, "lost_events") > 0);
    assert_true(recorded_ledger(trace, "failed_reserves") > 0);
    assert_true(counts.begins > marked / 2); /* it recovered */
    struct sonde_averages *averages;
    assert_int_equal(sonde_averages_new(trace, NULL, &averages, NULL), SONDE_OK);
    assert_int_equal(sonde_averages_count(averages), 2);
    sonde_averages_free(averages);
    sonde_trace_close(trace);
}

static void test_disk_full(void **state)
{
    (void)state;
    expect_survival(ENOSPC, "full.sonde");
}

static void test_quota(void **state)
{
    (void)state;
    expect_survival(EDQUOT, "quota.sonde");
}

static void test_disk_full_from_the_start(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("none.sonde");
    struct sonde_error   err = { 0 };

    set_disk_error(ENOSPC);
    assert_int_equal(sonde_start(&options, &err), SONDE_E_IO);
    set_disk_error(0);
    assert_non_null(strstr(err.message, "No space left on device"));
    assert_int_equal(access(recorded_path("none.sonde"), F_OK), -1);
}

/* The kernel would send SIGXFSZ, whose default is death. */
static void test_file_size_limit(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("fsize.sonde");
    struct rlimit        before, low;
    uint64_t             marked = 0;

    getrlimit(RLIMIT_FSIZE, &before);
    low = before;
    low.rlim_cur = 1u << 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    options.chunk_bytes = 65536;
    recorded_start(&options);
    for (int i = 0; i < 100000; i++, marked++) {
        SONDE_RANGE("a");
    }
    recorded_stop();
    setrlimit(RLIMIT_FSIZE, &before);

    struct handler_counts counts = { 0, 0, 0 };
    struct sonde_trace   *trace = recorded_open("fsize.sonde");
    recorded_walk(trace, count_nested, &counts);
    assert_true(counts.begins > 1000);
    assert_int_equal(counts.begins + counts.ends + recorded_ledger(trace, "lost_events"),
                     2 * marked);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_come_and_go),
        cmocka_unit_test(test_start_and_stop_under_load),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_signal_handlers_record),
        cmocka_unit_test(test_handler_just_after_the_clock_was_read),
        cmocka_unit_test(test_limit_stops),
        cmocka_unit_test(test_keep_last),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_disk_full_from_the_start),
        cmocka_unit_test(test_file_size_limit),
    };
    return cmocka_run_group_tests_name("record_life", tests, NULL, NULL);
}
