/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores that the file has no place for: the program goes on, and the trace says so. Bus errors
 * that are not the recorder's are as they were without it.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "recorded.h"

enum { MANY = 200000 };

static void mark_many(void)
{
    for (int i = 0; i < MANY; i++) {
        SONDE_RANGE("range");
        sonde_mark("mark");
    }
}

/* A page without a file behind it: touching it is a bus error of the program's own. */
static volatile char *map_nothing(void)
{
    int fd = memfd_create("nothing", MFD_CLOEXEC);

    if (fd < 0)
        _exit(9);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return page;
}

static void record_and_cut(off_t size)
{
    struct sonde_options options = recorded_options("cut.sonde");

    recorded_start(&options);
    mark_many();
    assert_int_equal(truncate(recorded_path("cut.sonde"), size), 0);
    mark_many();
    sonde_thread_name("after");
    sonde_metadata("key", "value");
    recorded_stop();
    struct sonde_trace *trace = recorded_open("cut.sonde");
    assert_int_equal(recorded_ledger(trace, "cut_files"), 1);
    assert_int_equal(recorded_ledger(trace, "not_closed"), 0);
    sonde_trace_close(trace);
}

static void test_file_truncated_to_nothing(void **state)
{
    (void)state;
    record_and_cut(0);
}

static void test_file_truncated_in_the_middle(void **state)
{
    (void)state;
    record_and_cut(65536);
    record_and_cut(3 * 65536 + 100);
}

/* Its length tells nothing, but its header is gone: truncated and made as long again, or written over. */
static void test_header_is_gone(void **state)
{
    static const char zeroes[4096];

    (void)state;
    for (int written_over = 0; written_over < 2; written_over++) {
        struct sonde_options options = recorded_options("emptied.sonde");
        struct stat          st;
        recorded_start(&options);
        sonde_mark("mark");
        const char *path = recorded_path("emptied.sonde");
        assert_int_equal(stat(path, &st), 0);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (written_over)
            assert_int_equal(pwrite(fd, zeroes, sizeof zeroes, 0), sizeof zeroes);
        else
            assert_int_equal(ftruncate(fd, 0) | ftruncate(fd, st.st_size), 0);
        close(fd);
        recorded_stop();
        struct sonde_trace *trace = recorded_open("emptied.sonde");
        assert_int_equal(recorded_ledger(trace, "cut_files"), 1);
        assert_int_equal(recorded_ledger(trace, "not_closed"), 0);
        sonde_trace_close(trace);
    }
}

/* The one after it is whole. */
static void test_next_recording_is_whole(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("whole.sonde");

    recorded_start(&options);
    mark_many();
    recorded_stop();
    struct sonde_trace *trace = recorded_open("whole.sonde");
    assert_int_equal(recorded_ledger(trace, "cut_files"), 0);
    assert_int_equal(recorded_ledger(trace, "lost_events"), 0);
    sonde_trace_close(trace);
}

static sigjmp_buf back;
static int        handled;

static void on_own_fault(int number)
{
    (void)number;
    handled++;
    siglongjmp(back, 1);
}

static void test_other_faults_go_to_the_program(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("own.sonde");
    struct sigaction     own = { .sa_handler = on_own_fault }, now, before;
    volatile char       *page = map_nothing();

    sigaction(SIGBUS, &own, &before);
    recorded_start(&options);
    if (sigsetjmp(back, 1) == 0)
        *page = 1;
    assert_int_equal(handled, 1);
    mark_many();
    recorded_stop();
    sigaction(SIGBUS, NULL, &now); /* and it is the program's again */
    assert_ptr_equal(now.sa_handler, on_own_fault);
    sigaction(SIGBUS, &before, NULL);
}

static int status_of(void (*act)(void))
{
    int   status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct sonde_options options = recorded_options("dies.sonde");
        signal(SIGBUS, SIG_DFL);
        if (sonde_start(&options, NULL) != SONDE_OK)
            _exit(9);
        act();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void fault(void)
{
    volatile char *page = map_nothing();

    page[0] = 1;
}

static void send(void)
{
    raise(SIGBUS);
}

static void test_unhandled_faults_end_the_program(void **state)
{
    (void)state;
    if (getenv("SONDE_TEST_NO_FORK"))
        skip();
    recorded_path("");
    int status = status_of(fault);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = status_of(send);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_truncated_to_nothing),
        cmocka_unit_test(test_file_truncated_in_the_middle),
        cmocka_unit_test(test_header_is_gone),
        cmocka_unit_test(test_next_recording_is_whole),
        cmocka_unit_test(test_other_faults_go_to_the_program),
        cmocka_unit_test(test_unhandled_faults_end_the_program),
    };
    return cmocka_run_group_tests_name("record_bus", tests, NULL, NULL);
}
