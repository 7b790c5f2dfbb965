/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New processes and new rights: children made behind the recorder's back, children that may not
 * write where their parent did, files that are somebody else's.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "numbered.h"

/* -------------------------------------------- processes that nobody tells of */

enum { THREADS = 2, ROUNDS = 16, PARENT = 3000, CHILD = 2000 };

static pid_t plain_fork(void)
{
    return fork();
}

static pid_t fork_without_handlers(void)
{
    return _Fork();
}

static pid_t raw_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static uint32_t keep_marking; /* atomic */
static uint32_t marking;      /* threads that have begun to; atomic */

/* Takes the recorder's lock often: its names are new. */
static void *mark_names(void *argument)
{
    for (unsigned i = 0; __atomic_load_n(&keep_marking, __ATOMIC_RELAXED); i++) {
        char name[32];
        snprintf(name, sizeof name, "%p %u", argument, i);
        sonde_mark(name);
        if (i == 0)
            __atomic_add_fetch(&marking, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Of a thread of this process: whether it is the recorder's helper, and whether it sleeps. */
static bool is_helper(const char *tid, bool *sleeps)
{
    char  path[300], text[200] = "", *name_end;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
    file = fopen(path, "r");
    if (!file)
        return false;
    char *read = fgets(text, sizeof text, file);
    fclose(file);
    name_end = read ? strrchr(text, ')') : NULL; /* "TID (NAME) STATE .." */
    *sleeps = name_end != NULL && name_end[1] == ' ' && name_end[2] == 'S';
    return strstr(text, "(sonde-supply)") != NULL;
}

/*
 * A thread that is starting or ending may hold a lock of AddressSanitizer's, which fork() does not take: the
 * child would wait for it for ever. So nothing forks before the helper of the recording before is gone, and
 * that of this one has begun to wait. (Its name it has from the first moment on.)
 */
static bool has_helper(void)
{
    DIR           *tasks = opendir("/proc/self/task");
    struct dirent *task;
    unsigned       found = 0, sleeping = 0;

    assert_non_null(tasks);
    while ((task = readdir(tasks)) != NULL) {
        bool sleeps;
        if (task->d_name[0] != '.' && is_helper(task->d_name, &sleeps)) {
            found++;
            sleeping += sleeps;
        }
    }
    closedir(tasks);
    return found == 1 && sleeping == 1;
}

static void start_marking(pthread_t *threads)
{
    static int names[THREADS]; /* their addresses */

    marking = 0;
    keep_marking = 1;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, mark_names, &names[i]), 0);
    while (__atomic_load_n(&marking, __ATOMIC_ACQUIRE) < THREADS)
        sched_yield();
}

static void mark_to(uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++)
        numbered_mark(i);
}

static void *mark_thousand(void *argument)
{
    mark_to(1000);
    return argument;
}

/* Whether a descriptor of this process is the trace of its parent. */
static bool holds(const char *trace)
{
    for (int fd = 0; fd < 1100; fd++) {
        char    name[32], path[PATH_MAX];
        ssize_t length;
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        length = readlink(name, path, sizeof path - 1);
        if (length <= 0)
            continue;
        path[length] = '\0';
        if (strcmp(path, trace) == 0)
            return true;
    }
    return false;
}

static void be_the_child(void)
{
    pthread_t thread;

    alarm(60);
    if (pthread_create(&thread, NULL, mark_thousand, NULL) != 0)
        _exit(9);
    mark_to(CHILD);
    pthread_join(thread, NULL);
    if (holds(recorded_path("two.sonde")))
        _exit(8);
    _exit(sonde_stop(NULL) == SONDE_OK ? 0 : 1);
}

/* Both go on marking in the lane that one of them had before. */
static void expect_two_traces(pid_t (*make)(void), bool busy)
{
    pthread_t            threads[THREADS];
    struct sonde_options options = recorded_options("two.sonde");

    recorded_start(&options);
    while (!has_helper())
        sched_yield();
    if (busy)
        start_marking(threads);
    numbered_mark(1);
    pid_t child = make();
    assert_true(child >= 0);
    if (child == 0)
        be_the_child();
    for (uint32_t i = 2; i <= PARENT; i++)
        numbered_mark(i);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    __atomic_store_n(&keep_marking, 0, __ATOMIC_RELAXED);
    for (int i = 0; busy && i < THREADS; i++)
        pthread_join(threads[i], NULL);
    recorded_stop();
    assert_int_equal(status, 0);

    struct sonde_trace *trace = recorded_open("two.sonde");
    struct numbered    *n = numbered_read(trace, false);
    assert_int_equal(sonde_trace_process_count(trace), 2);
    assert_int_equal(n->begins, PARENT + CHILD + 1000);
    assert_int_equal(n->ends, n->begins);
    assert_int_equal(recorded_ledger(trace, "lost_events"), 0);
    free(n);
    sonde_trace_close(trace);
    char own[64];
    snprintf(own, sizeof own, "two.sonde.%d", (int)child);
    unlink(recorded_path(own));
}

/*
 * Without fork()'s handlers the child may find a lock of the C library held by a thread that it does
 * not have; AddressSanitizer's are held so often that it waits for them for ever.
 */
static bool has_other_threads(int round)
{
#ifdef __SANITIZE_ADDRESS__
    (void)round;
    return false;
#else
    return round % 2 != 0;
#endif
}

static void test_fork_is_noticed(void **state)
{
    (void)state;
    skip_where_forks_fail();
    expect_two_traces(plain_fork, true);
}

static void test_fork_without_handlers_is_noticed(void **state)
{
    (void)state;
    skip_where_forks_fail();
    for (int i = 0; i < ROUNDS; i++)
        expect_two_traces(fork_without_handlers, has_other_threads(i));
}

static void test_raw_clone_is_noticed(void **state)
{
    (void)state;
    skip_where_forks_fail();
    for (int i = 0; i < ROUNDS; i++)
        expect_two_traces(raw_clone, has_other_threads(i));
}

/* Its exit() must not close its parent's file, and its stop none that it has not. */
static void test_clone_that_only_ends(void **state)
{
    (void)state;
    skip_where_forks_fail();
    struct sonde_options options = recorded_options("ends.sonde");

    recorded_start(&options);
    numbered_mark(1);
    pid_t child = fork_without_handlers();
    if (child == 0)
        _exit(sonde_stop(NULL) == SONDE_OK ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    numbered_mark(2);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("ends.sonde");
    struct numbered    *n = numbered_read(trace, false);
    assert_int_equal(n->begins, 2);
    assert_int_equal(sonde_trace_process_count(trace), 1);
    assert_int_equal(recorded_ledger(trace, "not_closed"), 0);
    free(n);
    sonde_trace_close(trace);
}

/* --------------------------------------------------- rights that are given up */

/* In a child, so that the tests that follow keep theirs. Returns what it wrote to stderr. */
static void in_other_process(void (*act)(void), char *said, size_t size)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(60);
        act();
        _exit(0);
    }
    close(ends[1]);
    size_t  used = 0;
    ssize_t n;
    while (used + 1 < size && (n = read(ends[0], said + used, size - used - 1)) > 0)
        used += (size_t)n;
    said[used] = '\0';
    close(ends[0]);
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void start_or_end(const char *name)
{
    struct sonde_options options = recorded_options(name);

    if (sonde_start(&options, NULL) != SONDE_OK)
        _exit(3);
}

static void fork_and_mark(int children)
{
    for (int i = 0; i < children; i++) {
        pid_t child = fork();
        if (child == 0) {
            mark_to(10);
            sonde_stop(NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static void drop_rights(void)
{
    start_or_end("dropped.sonde");
    mark_to(5);
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(4);
    fork_and_mark(3);
    sonde_stop(NULL);
}

static void change_root(void)
{
    start_or_end("rooted.sonde");
    mark_to(5);
    if (chroot("/proc") != 0 || chdir("/") != 0) /* nothing of ours can be found there */
        _exit(4);
    fork_and_mark(3);
    sonde_stop(NULL);
}

static int count_lines(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void test_child_without_rights_is_counted(void **state)
{
    (void)state;
    char said[4096];

    skip_where_forks_fail();
    if (geteuid() != 0)
        skip();
    recorded_path("");
    in_other_process(drop_rights, said, sizeof said);
    struct sonde_trace   *trace = recorded_open("dropped.sonde");
    struct numbered      *n = numbered_read(trace, false);
    struct sonde_summary *summary;
    assert_int_equal(n->begins, 5);
    assert_int_equal(recorded_ledger(trace, "lost_children"), 3);
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++)
        if (strcmp(sonde_summary_ledger(summary, i)->key, "lost_children") == 0)
            assert_non_null(strstr(sonde_summary_ledger(summary, i)->text, "Permission denied"));
    sonde_summary_free(summary);
    free(n);
    sonde_trace_close(trace);
    /* Said once, by the first of them. */
    assert_int_equal(count_lines(said), 1);
    assert_non_null(strstr(said, "sonde: cannot create the trace "));
    assert_non_null(strstr(said, "Permission denied"));
}

static void test_child_behind_another_root_is_recorded(void **state)
{
    (void)state;
    char said[4096];

    skip_where_forks_fail();
    if (geteuid() != 0)
        skip();
    recorded_path("");
    in_other_process(change_root, said, sizeof said);
    assert_string_equal(said, "");
    struct sonde_trace *trace = recorded_open("rooted.sonde");
    struct numbered    *n = numbered_read(trace, false);
    assert_int_equal(sonde_trace_process_count(trace), 4);
    assert_int_equal(n->begins, 5 + 3 * 10);
    assert_int_equal(recorded_ledger(trace, "lost_children"), 0);
    free(n);
    sonde_trace_close(trace);
}

/* A folder that was moved is followed. */
static void test_folder_that_is_moved(void **state)
{
    (void)state;
    char                 was[PATH_MAX], is[PATH_MAX], file[PATH_MAX + 32];
    struct sonde_options options = SONDE_OPTIONS_INIT;
    struct sonde_trace  *trace;

    skip_where_forks_fail();
    snprintf(was, sizeof was, "%s", recorded_path("was"));
    snprintf(is, sizeof is, "%s", recorded_path("is"));
    assert_int_equal(mkdir(was, 0700), 0);
    options.path = was;
    recorded_start(&options);
    numbered_mark(1);
    assert_int_equal(rename(was, is), 0);
    pid_t child = fork();
    if (child == 0) {
        mark_to(10);
        _exit(sonde_stop(NULL) == SONDE_OK ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    recorded_stop();
    assert_int_equal(sonde_trace_open(is, &trace, NULL), SONDE_OK);
    assert_int_equal(sonde_trace_process_count(trace), 2);
    sonde_trace_close(trace);
    const pid_t pids[] = { getpid(), child };
    for (size_t i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%d.sonde", is, (int)pids[i]);
        assert_int_equal(unlink(file), 0);
    }
    assert_int_equal(rmdir(is), 0);
}

/* ------------------------------------------------------ files of other people */

static void write_file(const char *name, const char *text)
{
    int fd = open(recorded_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void test_what_is_no_trace_is_not_replaced(void **state)
{
    (void)state;
    struct sonde_error   err = { 0 };
    struct sonde_options options = recorded_options("thesis.txt");
    char                 text[16] = "";

    write_file("thesis.txt", "years of work");
    assert_int_equal(sonde_start(&options, &err), SONDE_E_IO);
    assert_non_null(strstr(err.message, "refusing to overwrite"));
    assert_non_null(strstr(err.message, "thesis.txt"));
    int fd = open(recorded_path("thesis.txt"), O_RDONLY);
    assert_int_equal(read(fd, text, sizeof text), 13);
    assert_string_equal(text, "years of work");
    close(fd);

    write_file("empty.sonde", ""); /* as mkstemp leaves it */
    options.path = recorded_path("empty.sonde");
    recorded_start(&options);
    recorded_stop();
    recorded_start(&options); /* a trace is replaced */
    recorded_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_is_noticed),
        cmocka_unit_test(test_fork_without_handlers_is_noticed),
        cmocka_unit_test(test_raw_clone_is_noticed),
        cmocka_unit_test(test_clone_that_only_ends),
        cmocka_unit_test(test_child_without_rights_is_counted),
        cmocka_unit_test(test_child_behind_another_root_is_recorded),
        cmocka_unit_test(test_folder_that_is_moved),
        cmocka_unit_test(test_what_is_no_trace_is_not_replaced),
    };
    return cmocka_run_group_tests_name("record_process", tests, NULL, NULL);
}
