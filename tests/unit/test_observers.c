/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is observed by `sonde attach`: a process and its descendants, and no stranger that was given
 * the number of one that has ended. /proc is the test's, one page for each look.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/process/observers.h"
#include "pystack/outside/observe.h"

/* Numbers that no process has. */
#define ROOT 4194401
#define CHILD 4194402
#define SECOND 4194403
#define STRANGER 4194404
#define THREAD 4194405
#define COUNT 4u

struct process {
    int pid, parent;
};

static const struct process given_again[][COUNT] = {
    { { ROOT, 1 }, { CHILD, ROOT } },
    { { ROOT, 1 } }, /* the child has ended */
    { { ROOT, 1 }, { CHILD, 1 }, { STRANGER, CHILD }, { SECOND, ROOT } },
    { { ROOT, 1 }, { CHILD, 1 }, { STRANGER, CHILD }, { SECOND, ROOT } },
};

/* /proc has a folder for each thread, too, but does not list it. Neither does it list the new child here. */
static const struct process by_number[][COUNT] = {
    { { ROOT, 1 } },
    { { ROOT, 1 } },
    { { ROOT, 1 }, { THREAD, ROOT } },
    { { ROOT, 1 }, { THREAD, ROOT }, { SECOND, ROOT } },
    { { ROOT, 1 }, { THREAD, ROOT }, { SECOND, ROOT } },
};
#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

static const struct process (*pages)[COUNT];
static const int   *newest; /* of each page, or NULL */
static unsigned     page, page_count, entry, forks;
static bool         lists_root_only;
static volatile int quit;

/* ----------------------------------------------------------------- the test's /proc */

DIR           *__wrap_opendir(const char *path);
struct dirent *__wrap_readdir64(DIR *dir);
int            __wrap_closedir(DIR *dir);
pid_t          __wrap_fork(void);
pid_t          __real_fork(void);
int            __wrap_open64(const char *path, int flags, ...);
int            __real_open64(const char *path, int flags, ...);
int            __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *rest,
                                      struct timespec *left);

DIR *__wrap_opendir(const char *path)
{
    assert_string_equal(path, "/proc");
    entry = 0;
    return (DIR *)(void *)&entry;
}

struct dirent *__wrap_readdir64(DIR *dir)
{
    static struct dirent found;

    (void)dir;
    if (entry == (lists_root_only ? 1 : COUNT) || pages[page][entry].pid == 0)
        return NULL;
    snprintf(found.d_name, sizeof found.d_name, "%d", pages[page][entry++].pid);
    return &found;
}

int __wrap_closedir(DIR *dir)
{
    (void)dir;
    return 0;
}

/* A descriptor from which the text, and the number after it, can be read. */
static int text_file(const char *text, int number, const char *end)
{
    int fd = memfd_create("fake", MFD_CLOEXEC);

    assert_true(fd >= 0 && dprintf(fd, "%s%d%s", text, number, end) > 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

int __wrap_open64(const char *path, int flags, ...)
{
    char head[64];
    int  pid;

    if (strcmp(path, "/proc/loadavg") == 0)
        return text_file("0.5 0.4 0.3 2/300 ", newest ? newest[page] : 0, "\n");
    if (sscanf(path, "/proc/%d/", &pid) == 1 && strstr(path, "/status"))
        return text_file("Name:\tx\nTgid: ", pid == THREAD ? ROOT : pid, "\n");
    if (sscanf(path, "/proc/%d/stat", &pid) != 1)
        return __real_open64(path, flags);
    for (unsigned i = 0; i < COUNT; i++)
        if (pages[page][i].pid == pid) {
            snprintf(head, sizeof head, "%d (a ) name) S ", pid);
            return text_file(head, pages[page][i].parent, " 0 0");
        }
    errno = ENOENT;
    return -1;
}

pid_t __wrap_fork(void)
{
    forks++;
    return __real_fork();
}

/* Between two looks: on the first page until the child's observer has ended. */
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *rest,
                           struct timespec *left)
{
    siginfo_t info;

    (void)clock, (void)flags, (void)rest, (void)left;
    if (page == 0 && !newest)
        assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    if (++page == page_count)
        page = page_count - 1, quit = 1;
    return 0;
}

/* ------------------------------------------------------------------ the observation */

/* In a worker. The child ends at once, the others are observed until they are told to stop. */
enum sonde_status snd_observe(const struct snd_observation *observation, struct sonde_error *err)
{
    (void)err;
    while (observation->pid != CHILD)
        pause();
    return SONDE_OK;
}

static void test_a_number_given_again(void **state)
{
    const struct snd_observers o = { .root = ROOT, .period_ns = 1000000, .quit = &quit };

    (void)state;
    pages = given_again, page_count = COUNT_OF(given_again);
    snd_observers_run(&o);
    assert_int_equal(forks, 3); /* an observer each of the root, the child and the second child */
}

/* Who is new is known by number: not all of /proc is looked at each time. */
static void test_new_ones_by_number(void **state)
{
    static const int           numbers[] = { ROOT, ROOT, ROOT, THREAD, THREAD };
    const struct snd_observers o = { .root = ROOT, .period_ns = 1000000, .quit = &quit };

    (void)state;
    pages = by_number, page_count = COUNT_OF(by_number);
    newest = numbers;
    lists_root_only = true;
    page = forks = 0;
    quit = 0;
    snd_observers_run(&o);
    assert_int_equal(forks, 2); /* the root and its new child */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_number_given_again),
        cmocka_unit_test(test_new_ones_by_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
