/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners where the recorder's locks, forks, callbacks and limits meet. A hang is ended by alarm.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "read/reader.h"
#include "numbered.h"

static void wait_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&time, NULL);
}

struct counts {
    uint64_t begins, latest;
};

static bool count(const struct sonde_event *event, void *user)
{
    struct counts *counts = user;

    if (event->kind == SONDE_EVENT_BEGIN) {
        counts->begins++;
        if (event->begin.shapes > counts->latest)
            counts->latest = event->begin.shapes;
    }
    return true;
}

/* ------------------------------------------------------------ cancellation */

static void *mark_when_cancelled(void *argument)
{
    pthread_cancel(pthread_self());
    /* With system calls that are cancellation points. */
    sonde_begin("first of its thread: attaches");
    sonde_end();
    for (;;)
        pause();
    return argument;
}

static void test_cancelled_thread(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* it does not see the locks that the destructors of a cancelled thread take */
#endif
    struct sonde_options options = recorded_options("cancel.sonde");
    pthread_t            thread;

    recorded_start(&options);
    pthread_create(&thread, NULL, mark_when_cancelled, NULL);
    pthread_join(thread, NULL);
    alarm(20);
    recorded_stop();
    alarm(0);
    struct counts       counts = { 0, 0 };
    struct sonde_trace *trace = recorded_open("cancel.sonde");
    recorded_walk(trace, count, &counts);
    assert_int_equal(counts.begins, 1);
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------------- forks */

enum { CHILD_THREADS = 4, CHILD_RANGES = 500 };
static pthread_barrier_t barrier;

static void *mark_in_child(void *argument)
{
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < CHILD_RANGES; i++) {
        SONDE_RANGE("child");
    }
    return argument;
}

/* The first events of a child, on several threads at once: one of them makes the file. */
static void run_child(void)
{
    pthread_t threads[CHILD_THREADS];

    alarm(20);
    pthread_barrier_init(&barrier, NULL, CHILD_THREADS);
    for (int i = 0; i < CHILD_THREADS; i++)
        pthread_create(&threads[i], NULL, mark_in_child, NULL);
    for (int i = 0; i < CHILD_THREADS; i++)
        pthread_join(threads[i], NULL);
    _exit(sonde_stop(NULL) == SONDE_OK ? 0 : 1);
}

static void test_child_with_threads(void **state)
{
    (void)state;
    if (getenv("SONDE_TEST_NO_FORK"))
        skip(); /* qemu-user and TSan die when the forked child of a program with threads starts one */
    enum { CHILDREN = 20 };
    struct sonde_options options = recorded_options("family.sonde");

    recorded_start(&options);
    sonde_begin("parent");
    sonde_end();
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0)
            run_child();
        int status = -1;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    recorded_stop();
    struct counts       counts = { 0, 0 };
    struct sonde_trace *trace = recorded_open("family.sonde");
    recorded_walk(trace, count, &counts);
    assert_int_equal(sonde_trace_process_count(trace), 1 + CHILDREN);
    assert_int_equal(counts.begins, 1 + CHILDREN * CHILD_THREADS * CHILD_RANGES);
    sonde_trace_close(trace);
}

/* ------------------------------------------- descriptors that are not ours */

enum { NUMBERS = 4096, OWN_BYTES = 100000, MANY = 300000 };

static void list_descriptors(bool open[NUMBERS])
{
    for (int fd = 0; fd < NUMBERS; fd++)
        open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* As a daemon does: whatever the recorder opened is closed, and is the program's own file next. */
static unsigned take_its_descriptors(const bool before[NUMBERS], int own)
{
    unsigned taken = 0;

    for (int fd = 3; fd < NUMBERS; fd++)
        if (!before[fd] && fcntl(fd, F_GETFD) >= 0) {
            assert_int_equal(dup2(own, fd), fd);
            taken++;
        }
    return taken;
}

static int make_own_file(void)
{
    static char bytes[OWN_BYTES];
    int         own = open(recorded_path("own"), O_RDWR | O_CREAT | O_TRUNC, 0600);

    memset(bytes, 'x', sizeof bytes);
    assert_int_equal(write(own, bytes, sizeof bytes), sizeof bytes);
    return own;
}

/* Not a byte of it is another, and all of its descriptors are open. */
static void expect_own_file(int own)
{
    static char bytes[OWN_BYTES + 1];
    struct stat at;

    assert_int_equal(pread(own, bytes, sizeof bytes, 0), OWN_BYTES);
    for (size_t i = 0; i < OWN_BYTES; i++)
        assert_int_equal(bytes[i], 'x');
    assert_int_equal(fstat(own, &at), 0);
    for (int fd = 3; fd < NUMBERS; fd++) {
        struct stat other;
        if (fstat(fd, &other) == 0 && other.st_ino == at.st_ino && fd != own)
            assert_int_equal(close(fd), 0);
    }
    close(own);
}

static uint64_t record_without_descriptors(const char *name, bool remove_it)
{
    static bool          before[NUMBERS];
    int                  own = make_own_file();
    struct sonde_options options = recorded_options(name);

    list_descriptors(before);
    recorded_start(&options);
    assert_true(take_its_descriptors(before, own) >= 1);
    if (remove_it)
        assert_int_equal(unlink(recorded_path(name)), 0);
    for (int i = 0; i < MANY; i++) { /* more than the chunks in stock hold */
        SONDE_RANGE("range");
    }
    recorded_stop();
    expect_own_file(own);
    if (remove_it)
        return 0;
    struct counts       counts = { 0, 0 };
    struct sonde_trace *trace = recorded_open(name);
    recorded_walk(trace, count, &counts);
    sonde_trace_close(trace);
    return counts.begins;
}

static void test_descriptors_closed_by_the_program(void **state)
{
    (void)state;
    assert_int_equal(record_without_descriptors("closed.sonde", false), MANY);
}

static void test_descriptors_closed_and_the_file_gone(void **state)
{
    (void)state;
    record_without_descriptors("gone.sonde", true);
}

/* The helper thread reserves chunks while the program's next file gets the trace's number. */
extern void _vgnU_freeres(void) __attribute__((weak)); /* NOLINT: valgrind's; see apart_file.c */

static void test_descriptors_closed_while_the_helper_works(void **state)
{
    (void)state;
    if (_vgnU_freeres)
        skip(); /* the helper has no table of its own there */
    enum { ROUNDS = 40, EACH = 40000 };
    static bool before[NUMBERS];

    for (int round = 0; round < ROUNDS; round++) {
        int                  own = make_own_file();
        struct sonde_options options = recorded_options("helper.sonde");
        list_descriptors(before);
        recorded_start(&options);
        for (int i = 0; i < EACH * round / ROUNDS; i++) {
            SONDE_RANGE("range");
        }
        assert_true(take_its_descriptors(before, own) >= 1);
        for (int i = 0; i < EACH; i++) {
            SONDE_RANGE("range");
        }
        recorded_stop();
        expect_own_file(own);
    }
}

/* The lowest number that is free is the program's, at any moment: after close(0) it is 0. */
static void test_no_number_is_taken_from_the_program(void **state)
{
    (void)state;
    enum { ROUNDS = 400, EACH = 1000 };
    static bool          before[NUMBERS];
    int                  lowest = open("/dev/null", O_RDONLY);
    struct sonde_options options = recorded_options("lowest.sonde");

    options.chunk_bytes = 65536;
    close(lowest);
    list_descriptors(before);
    recorded_start(&options);
    for (int i = 0; i < ROUNDS; i++) {
        for (int fd = 3; fd < NUMBERS; fd++)
            if (!before[fd]) /* what it is about: not for ThreadSanitizer, which reports it */
                syscall(SYS_close, fd);
        for (int j = 0; j < EACH; j++) {
            SONDE_RANGE("range");
            int own = j % 100 == 0 ? open("/dev/null", O_RDONLY) : lowest;
            assert_int_equal(own, lowest);
            if (j % 100 == 0)
                close(own);
        }
    }
    recorded_stop();
    struct counts       counts = { 0, 0 };
    struct sonde_trace *trace = recorded_open("lowest.sonde");
    recorded_walk(trace, count, &counts);
    assert_int_equal(counts.begins, ROUNDS * EACH);
    assert_int_equal(recorded_ledger(trace, "lost_events"), 0);
    sonde_trace_close(trace);
}

/* -------------------------------------------------- handlers and the lock */

static void mark_new_name(int signal_number)
{
    static unsigned n;
    char            name[32];

    (void)signal_number;
    snprintf(name, sizeof name, "name %u", n++);
    sonde_mark(name); /* a new one: needs the lock */
}

static void test_handler_while_the_lock_is_held(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("handler.sonde");
    struct itimerval     often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    time_t               end = time(NULL) + 2;

    recorded_start(&options);
    sonde_mark("attached");
    signal(SIGVTALRM, mark_new_name);
    alarm(30);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    for (unsigned n = 0; time(NULL) < end; n++) {
        char value[16];
        snprintf(value, sizeof value, "%u", n % 100);
        sonde_metadata("n", value);
    }
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    signal(SIGVTALRM, SIG_IGN);
    recorded_stop();
    alarm(0);
}

/* --------------------------------------------------------------- callbacks */

static void start_another(const struct sonde_cycle *cycle, void *user)
{
    int *calls = user;

    (void)cycle;
    if ((*calls)++ > 0)
        return;
    struct sonde_options options = recorded_options("second.sonde");
    assert_int_equal(sonde_stop(NULL), SONDE_OK);
    recorded_start(&options);
}

static void test_another_recording_in_the_callback(void **state)
{
    (void)state;
    int                  calls = 0;
    struct sonde_options options = recorded_options("first.sonde");

    options.on_cycle = start_another;
    options.user = &calls;
    recorded_start(&options);
    recorded_stop();
    assert_int_equal(calls, 1);
    sonde_begin("in the second");
    sonde_end();
    recorded_stop();
    assert_int_equal(sonde_stop(NULL), SONDE_E_STATE);
    struct counts       counts = { 0, 0 };
    struct sonde_trace *trace = recorded_open("second.sonde");
    recorded_walk(trace, count, &counts);
    assert_int_equal(counts.begins, 1);
    sonde_trace_close(trace);
}

static uint32_t find_note(const char *path)
{
    struct sonde_trace *trace;
    struct sonde_text   key, value;
    uint32_t            found = 0;

    assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
    for (uint32_t n = 0; sonde_trace_metadata(trace, 0, n, &key, &value); n++)
        found += strcmp(key.bytes, "model") == 0 && strcmp(value.bytes, "vit") == 0;
    sonde_trace_close(trace);
    return found;
}

static void check_note(const struct sonde_cycle *cycle, void *user)
{
    *(uint32_t *)user += find_note(cycle->path);
}

/* What is said before the first cycle, or between two, is in the files that follow. */
static void test_metadata_in_every_cycle(void **state)
{
    (void)state;
    uint32_t             found = 0;
    struct sonde_options options = recorded_options("notes.sonde");

    options.schedule = (struct sonde_schedule){ 1, 0, 1, 2, 0, 0 };
    options.on_cycle = check_note;
    options.user = &found;
    recorded_start(&options);
    sonde_metadata("model", "vit");
    for (int i = 0; i < 6; i++)
        sonde_step();
    recorded_stop();
    assert_int_equal(found, 2);
}

/* More than is kept for later files; the file of now has it all, and nothing of it was cut. */
static void test_more_metadata_than_is_kept(void **state)
{
    (void)state;
    enum { NOTES = 40, LENGTH = 4000 };
    struct sonde_options  options = recorded_options("many-notes.sonde");
    struct sonde_summary *summary;
    struct sonde_text     key, said;
    uint32_t              found = 0;
    char                  name[16], value[LENGTH + 1];

    recorded_start(&options);
    for (int i = 0; i < NOTES; i++) {
        snprintf(value, sizeof value, "%0*d", LENGTH, i);
        snprintf(name, sizeof name, "long %d", i);
        sonde_metadata(name, value);
    }
    recorded_stop();
    struct sonde_trace *trace = recorded_open("many-notes.sonde");
    for (uint32_t n = 0; sonde_trace_metadata(trace, 0, n, &key, &said); n++)
        found += strncmp(key.bytes, "long ", 5) == 0 && said.length == LENGTH;
    assert_int_equal(found, NOTES);
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++)
        assert_string_not_equal(sonde_summary_ledger(summary, i)->key, "cut_names");
    sonde_summary_free(summary);
    sonde_trace_close(trace);
}

static void count_cut(const struct sonde_cycle *cycle, void *user)
{
    struct sonde_trace *trace;

    assert_int_equal(sonde_trace_open(cycle->path, &trace, NULL), SONDE_OK);
    *(uint64_t *)user = *(uint64_t *)user * 100 + recorded_ledger(trace, "cut_names");
    sonde_trace_close(trace);
}

/* What is not kept for later files is counted in each of them, and not in the one that is open and has it. */
static void test_metadata_that_is_not_kept_is_counted(void **state)
{
    (void)state;
    enum { LENGTH = 4000 };
    struct sonde_options options = recorded_options("cut-notes.sonde");
    char                 value[LENGTH + 1];
    uint64_t             cut = 0;

    options.schedule = (struct sonde_schedule){ 1, 0, 1, 3, 0, 0 };
    options.on_cycle = count_cut;
    options.user = &cut;
    memset(value, 'v', LENGTH);
    value[LENGTH] = '\0';
    recorded_start(&options);
    for (int i = 0; i < 18; i++) /* before the first file: 16 of them fit */
        sonde_metadata("long", value);
    for (int step = 0; step < 6; step++) {
        sonde_step();
        if (step == 2)
            sonde_metadata("long", value); /* in the second file */
    }
    recorded_stop();
    assert_int_equal(cut, 20203);
}

/* ------------------------------------------------------------------ limits */

static void *mark_once(void *argument)
{
    sonde_begin("ended");
    sonde_end();
    pthread_barrier_wait(&barrier);
    return argument;
}

static void *mark_and_wait(void *argument)
{
    for (uint32_t i = 1; i <= 20000; i++)
        numbered_mark(i);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return argument;
}

/* The rest of a large chunk is given back to the disk, what a living thread wrote into it is not. */
static void test_stop_while_a_thread_is_in_a_large_chunk(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("large-chunk.sonde");
    pthread_t            thread;

    options.chunk_bytes = 4u << 20;
    recorded_start(&options);
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, mark_and_wait, NULL), 0);
    pthread_barrier_wait(&barrier);
    recorded_stop();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);

    struct sonde_trace *trace = recorded_open("large-chunk.sonde");
    struct numbered    *n = numbered_read(trace, false);
    assert_int_equal(n->begins, 20000);
    assert_int_equal(n->ends, 20000);
    free(n);
    sonde_trace_close(trace);
    struct stat file;
    assert_int_equal(stat(recorded_path("large-chunk.sonde"), &file), 0);
    assert_true(file.st_blocks * 512 < 3 << 20);
}

/* Chunks that ended threads left half empty must not starve those that live. */
static void test_keep_last_after_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 14, RANGES = 200000 };
    struct sonde_options options = recorded_options("starve.sonde");
    pthread_t            threads[THREADS];

    options.max_bytes = 1u << 20;
    options.limit = SONDE_LIMIT_KEEP_LAST;
    recorded_start(&options);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, mark_once, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 1; i <= RANGES; i++) {
        sonde_begin_id(sonde_intern("numbered", 8), i);
        sonde_end();
        if (i % 1000 == 0)
            wait_ms(1);
    }
    recorded_stop();
    struct counts       counts = { 0, 0 };
    struct sonde_trace *trace = recorded_open("starve.sonde");
    recorded_walk(trace, count, &counts);
    assert_int_equal(counts.latest, RANGES);
    assert_true(counts.begins > 10000);
    assert_int_equal(recorded_ledger(trace, "lost_events"), 0);
    sonde_trace_close(trace);
}

/* A chunk size that halving brings below the least there is. */
static void test_small_limit_and_odd_chunks(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("odd.sonde");

    options.chunk_bytes = 3 * 65536;
    options.max_bytes = 8 * 65536;
    options.limit = SONDE_LIMIT_KEEP_LAST;
    recorded_start(&options);
    for (uint32_t i = 1; i <= 2000; i++) {
        SONDE_RANGE("odd");
    }
    recorded_stop();
    struct counts       counts = { 0, 0 };
    struct sonde_trace *trace = recorded_open("odd.sonde");
    recorded_walk(trace, count, &counts);
    assert_int_equal(counts.begins, 2000);
    sonde_trace_close(trace);
}

/* What a chunk header says of its thread: the tables are nobody's. */
static void test_threads_of_chunks(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("threads.sonde");

    recorded_start(&options);
    SONDE_RANGE("once");
    recorded_stop();
    struct sonde_trace       *trace = recorded_open("threads.sonde");
    const struct snd_process *p = &trace->processes[0];
    assert_int_equal(p->lane_count, 1);
    assert_int_equal(p->lanes[0].thread, 1);
    assert_true(p->other_count > 0);
    for (uint32_t i = 0; i < p->other_count; i++)
        assert_int_equal(p->others[i].thread, 0);
    sonde_trace_close(trace);
}

static bool count_marks(const struct sonde_event *event, void *user)
{
    *(uint64_t *)user += event->kind == SONDE_EVENT_MARK;
    return true;
}

/* ------------------------------------------------------------------- pause */

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* No range of the trace contains the 300 ms in which nothing could be recorded, beside the time before them. */
static void expect_short_ranges(const char *name, size_t names, int64_t recorded_ns)
{
    struct sonde_trace    *trace = recorded_open(name);
    struct sonde_averages *averages;

    assert_int_equal(sonde_averages_new(trace, NULL, &averages, NULL), SONDE_OK);
    assert_int_equal(sonde_averages_count(averages), names);
    for (size_t i = 0; i < names; i++)
        assert_true(sonde_averages_row(averages, i)->total_ns < recorded_ns + 150000000);
    sonde_averages_free(averages);
    sonde_trace_close(trace);
}

static void test_ranges_end_at_the_pause(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("paused.sonde");

    recorded_start(&options);
    int64_t start = now_ns();
    sonde_begin("open at the pause");
    sonde_mark("inside");
    sonde_pause();
    int64_t recorded = now_ns() - start;
    wait_ms(300);
    sonde_resume();
    sonde_mark("after");
    sonde_end();
    recorded_stop();
    expect_short_ranges("paused.sonde", 1, recorded);

    options = recorded_options("paused-for-good.sonde");
    recorded_start(&options);
    start = now_ns();
    sonde_begin("open at the pause");
    sonde_pause();
    recorded = now_ns() - start;
    wait_ms(300);
    recorded_stop();
    expect_short_ranges("paused-for-good.sonde", 1, recorded);
    sonde_resume();
}

/* ------------------------------------------------------------------- limit */

/*
 * What is open at the limit ends there, whether its end is lost or never comes, and that of a thread
 * that could still record for longer ends when it did.
 */
static void test_ranges_end_at_the_limit(void **state)
{
    (void)state;
    enum { MARKS = 100000 }; /* 1.6 MB */
    struct sonde_options options = recorded_options("limited.sonde");

    options.max_bytes = 1u << 20;
    recorded_start(&options);
    int64_t start = now_ns();
    sonde_begin("for ever");
    sonde_begin("ends too late");
    for (int i = 0; i < MARKS; i++)
        sonde_mark("filling");
    int64_t recorded = now_ns() - start;
    wait_ms(300);
    sonde_end();
    recorded_stop();
    expect_short_ranges("limited.sonde", 2, recorded);
    struct sonde_trace *trace = recorded_open("limited.sonde");
    uint64_t            lost = recorded_ledger(trace, "lost_events"), marks = 0;
    struct stat         at;
    recorded_walk(trace, count_marks, &marks);
    assert_int_equal(marks + lost, MARKS + 1);
    assert_int_equal(stat(recorded_path("limited.sonde"), &at), 0);
    assert_true(at.st_size > (1 << 20) - (128 << 10)); /* the last piece is used as well */
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------- callbacks before the end */

static int told_pauses, told_ends;

static void on_end(bool closes)
{
    assert_int_not_equal(sonde_epoch(), 0); /* events are still taken */
    sonde_mark(closes ? "last" : "before the pause");
    *(closes ? &told_ends : &told_pauses) += 1;
}

static void test_probes_are_told_before_the_end(void **state)
{
    struct sonde_options options = recorded_options("told.sonde");

    (void)state;
    assert_true(sonde_before_end(on_end));
    assert_true(sonde_before_end(on_end)); /* once is enough */
    recorded_start(&options);
    sonde_pause();
    sonde_pause();
    assert_int_equal(told_pauses, 1);
    sonde_resume();
    recorded_stop();
    assert_int_equal(told_ends, 1);
    struct sonde_trace *trace = recorded_open("told.sonde");
    uint64_t            marks = 0;
    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_TIME, count_marks, &marks, NULL), SONDE_OK);
    assert_int_equal(marks, 2);
    sonde_trace_close(trace);
    options = recorded_options("paused-to-the-end.sonde");
    recorded_start(&options);
    sonde_pause();
    recorded_stop(); /* nothing records: nothing is to be brought in */
    assert_int_equal(told_ends, 1);
    sonde_resume();
}

static void told_first(bool closes)
{
    (void)closes;
}

static void told_second(bool closes)
{
    (void)closes;
}

static void told_third(bool closes)
{
    (void)closes;
}

static void told_fourth(bool closes)
{
    (void)closes;
}

/* There is room for four, of which the test before took one; who is told already needs none. */
static void test_few_are_told_before_the_end(void **state)
{
    (void)state;
    assert_true(sonde_before_end(told_first));
    assert_true(sonde_before_end(told_second));
    assert_true(sonde_before_end(told_third));
    assert_false(sonde_before_end(told_fourth));
    assert_true(sonde_before_end(told_first));
    assert_true(sonde_before_end(told_third));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelled_thread),
        cmocka_unit_test(test_child_with_threads),
        cmocka_unit_test(test_descriptors_closed_by_the_program),
        cmocka_unit_test(test_descriptors_closed_and_the_file_gone),
        cmocka_unit_test(test_descriptors_closed_while_the_helper_works),
        cmocka_unit_test(test_no_number_is_taken_from_the_program),
        cmocka_unit_test(test_handler_while_the_lock_is_held),
        cmocka_unit_test(test_another_recording_in_the_callback),
        cmocka_unit_test(test_metadata_in_every_cycle),
        cmocka_unit_test(test_more_metadata_than_is_kept),
        cmocka_unit_test(test_metadata_that_is_not_kept_is_counted),
        cmocka_unit_test(test_stop_while_a_thread_is_in_a_large_chunk),
        cmocka_unit_test(test_keep_last_after_many_threads),
        cmocka_unit_test(test_small_limit_and_odd_chunks),
        cmocka_unit_test(test_threads_of_chunks),
        cmocka_unit_test(test_ranges_end_at_the_pause),
        cmocka_unit_test(test_ranges_end_at_the_limit),
        cmocka_unit_test(test_probes_are_told_before_the_end),
        cmocka_unit_test(test_few_are_told_before_the_end),
    };
    return cmocka_run_group_tests_name("record_edge", tests, NULL, NULL);
}
