/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/thread_events.c: events of a kernel that the test plays: each is a file in memory, which is its mapped page, and
 * has what a read of it gives.
 */
#include "record/thread/thread_events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/own_fd.h"
#include "format/layout.h"
#include "record/thread/pmc_page.h"

long    __real_syscall(long number, ...);
int     __real_ioctl(int fd, unsigned long request, ...);
ssize_t __real_read(int fd, void *to, size_t size);
long    __wrap_syscall(long number, ...);
int     __wrap_ioctl(int fd, unsigned long request, ...);
ssize_t __wrap_read(int fd, void *to, size_t size);

/* Each event is another kind: its `config` is its number. */
enum {
    BY_READ,
    BY_PAGE,
    UNKNOWN,         /* the kernel has no such event */
    USER_PERMITTED,  /* in user mode alone, which the kernel says by EACCES */
    KERNEL_REFUSED,  /* by EPERM, where the kernel's mode was asked for */
    USER_REFUSED,    /* by EACCES, where user mode was asked for */
    USER_PERMITTED2, /* by EPERM */
    WITHOUT_ID,
    EVENTS
};
enum { OPENED = 4, ABSENT = 4, BY_DESCRIPTOR = 3 };

static struct played {
    int                    file; /* in memory */
    ino_t                  inode;
    struct perf_event_attr attr; /* of the last attempt */
    unsigned               attempts;
    uint64_t               words[3];
} events[EVENTS];
static uint64_t told[SND_COUNTERS_READ_WORDS];

/* ------------------------------------------------------------------ the kernel */

static struct played *event_of(int fd)
{
    struct stat at;

    for (size_t i = 0; i < EVENTS && fstat(fd, &at) == 0; i++)
        if (events[i].inode == at.st_ino)
            return &events[i];
    return NULL;
}

static int open_played(const struct perf_event_attr *attr)
{
    struct played *event = &events[attr->config];
    bool           is_refused = attr->config == KERNEL_REFUSED || attr->config == USER_REFUSED;
    char           path[64];

    event->attr = *attr;
    event->attempts++;
    if (attr->config == USER_PERMITTED || attr->config == USER_PERMITTED2)
        is_refused = !attr->exclude_kernel;
    if (attr->config == UNKNOWN || is_refused) {
        errno = attr->config == UNKNOWN ? ENOENT : attr->config % 2 ? EACCES : EPERM;
        return -1;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", event->file);
    return open(path, O_RDWR | O_CLOEXEC);
}

long __wrap_syscall(long number, ...)
{
    va_list list;
    long    a[6];

    va_start(list, number);
    for (size_t i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number != SYS_perf_event_open)
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    assert_int_equal((int)a[1], 0); /* this thread, on any processor, in no group */
    assert_int_equal((int)a[2], -1);
    assert_int_equal((int)a[3], -1);
    assert_int_equal(a[4], PERF_FLAG_FD_CLOEXEC);
    return open_played((const struct perf_event_attr *)a[0]);
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    const struct played *event = event_of(fd);
    va_list              list;

    va_start(list, request);
    void *to = va_arg(list, void *);
    va_end(list);
    if (request != PERF_EVENT_IOC_ID)
        return __real_ioctl(fd, request, to);
    if (!event || event == &events[WITHOUT_ID]) {
        errno = ENOTTY;
        return -1;
    }
    *(uint64_t *)to = 100 + (uint64_t)(event - events);
    return 0;
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
    const struct played *event = event_of(fd);

    if (!event)
        return __real_read(fd, to, size);
    assert_int_equal(size, sizeof event->words);
    memcpy(to, event->words, sizeof event->words);
    return sizeof event->words;
}

/* What the event has counted, and in how much of the time. */
static void set(unsigned number, uint64_t count, uint64_t enabled_ns, uint64_t running_ns)
{
    struct perf_event_mmap_page page = { .cap_user_rdpmc = number == BY_PAGE,
                                         .offset = (int64_t)count,
                                         .time_enabled = enabled_ns,
                                         .time_running = running_ns };

    events[number].words[0] = count;
    events[number].words[1] = enabled_ns;
    events[number].words[2] = running_ns;
    assert_int_equal(pwrite(events[number].file, &page, sizeof page, 0), sizeof page);
}

static void set_all(uint64_t count, uint64_t enabled_ns, uint64_t running_ns)
{
    for (unsigned i = 0; i < EVENTS; i++)
        set(i, count + i, enabled_ns, running_ns);
}

static int make_events(void **state)
{
    (void)state;
    for (unsigned i = 0; i < EVENTS; i++) {
        struct stat at;
        events[i].file = memfd_create("event", MFD_CLOEXEC);
        if (events[i].file < 0 || ftruncate(events[i].file, sysconf(_SC_PAGESIZE)) != 0 ||
            fstat(events[i].file, &at) != 0)
            return -1;
        events[i].inode = at.st_ino;
    }
    return 0;
}

/* -------------------------------------------------------------------- the tests */

/* How many descriptors of events there are with a high number, and the number of the last. */
static unsigned count_high(int *last)
{
    unsigned count = 0;

    *last = -1;
    for (int fd = SND_OWNFD_LEAST; fd < SND_OWNFD_LEAST + 64; fd++) {
        if (!event_of(fd))
            continue;
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        count++;
        *last = fd;
    }
    return count;
}

/* Whether a page of the event is mapped. */
static bool is_mapped(unsigned number)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char  line[512];
    bool  found = false;

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long inode = 0;
        if (sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == events[number].inode)
            found = true;
    }
    fclose(maps);
    return found;
}

static void read_all(uint64_t *values)
{
    errno = EBADMSG; /* which is the program's */
    snd_events_read(values);
    assert_int_equal(errno, EBADMSG);
}

static void as_many_as_there_is_room_for(void **state)
{
    (void)state;
    assert_int_equal(snd_events_count(), 0);
    for (uint32_t i = 0; i < SND_EVENTS_MOST; i++) {
        const struct snd_event_asked one = { PERF_TYPE_HARDWARE, i, i == USER_REFUSED,
                                             i == KERNEL_REFUSED };
        assert_int_equal(snd_events_ask(&one), i);
    }
    assert_int_equal(snd_events_ask(&(struct snd_event_asked){ .config = 1 }), UINT32_MAX);
    assert_int_equal(snd_events_count(), EVENTS);
}

static void each_is_opened_as_far_as_it_may(void **state)
{
    uint64_t values[EVENTS];
    int      input = fcntl(0, F_DUPFD_CLOEXEC, 3), last;

    (void)state;
    snd_events_end(); /* there is nothing yet */
    set_all(10, 100, 100);
    snd_events_tell(told);
    close(0); /* which is the number of each, before it has a high one */
    read_all(values);
    assert_int_equal(fcntl(0, F_GETFD), -1); /* none is left with a number of the program's */
    dup2(input, 0);
    close(input);
    for (unsigned i = 0; i < EVENTS; i++) {
        bool again = i == USER_PERMITTED || i == USER_PERMITTED2;
        assert_int_equal(values[i], 0);
        assert_int_equal(events[i].attempts, again ? 2 : 1);
        assert_int_equal(events[i].attr.type, PERF_TYPE_HARDWARE);
        assert_int_equal(events[i].attr.exclude_kernel, again || i == USER_REFUSED);
        assert_int_equal(events[i].attr.exclude_hv, again || i == USER_REFUSED);
        assert_int_equal(events[i].attr.exclude_user, i == KERNEL_REFUSED);
    }
    unsigned by_page = SND_PMC_THERE ? 1 : 0;
    assert_int_equal(told[SND_COUNTERS_READ_OPENED], OPENED);
    assert_int_equal(told[SND_COUNTERS_READ_ABSENT], ABSENT);
    assert_int_equal(told[SND_COUNTERS_READ_SCALED], 0);
    assert_int_equal(count_high(&last), BY_DESCRIPTOR + 1 - by_page);
    assert_int_equal(is_mapped(BY_PAGE), by_page);
    assert_false(is_mapped(BY_READ));
    read_all(values);
    assert_int_equal(told[SND_COUNTERS_READ_OPENED], OPENED); /* once */
    assert_int_equal(values[BY_READ], 0);
}

/* 5 in all of the time; 10 in half of the last 200 ns; nothing without a turn; then 5 in half of 200 ns; 5 in no time. */
static void what_took_turns_is_scaled(void **state)
{
    static const struct {
        uint64_t count, enabled_ns, running_ns, expected, scaled;
    } steps[] = {
        { 15, 200, 200, 5, 0 },  { 25, 400, 300, 25, 1 }, { 25, 500, 300, 25, 1 },
        { 30, 600, 400, 35, 2 }, { 35, 600, 400, 40, 2 }, { 35, 700, 500, 40, 2 },
    };
    uint64_t values[EVENTS];

    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        set_all(steps[i].count, steps[i].enabled_ns, steps[i].running_ns);
        read_all(values);
        for (unsigned k = 0; k < EVENTS; k++) {
            bool counts = k == BY_READ || k == BY_PAGE || k == USER_PERMITTED ||
                          k == USER_PERMITTED2;
            assert_int_equal(values[k], counts ? steps[i].expected : 0);
        }
        assert_int_equal(told[SND_COUNTERS_READ_SCALED], OPENED * steps[i].scaled);
    }
    assert_int_equal(told[SND_COUNTERS_READ_ABSENT], ABSENT);
}

/* The thread's own, from 0 on. */
static void *read_in_thread(void *unused)
{
    uint64_t values[EVENTS];

    snd_events_end();
    read_all(values);
    assert_int_equal(values[BY_READ], 0);
    set(BY_READ, 43, 800, 600);
    read_all(values);
    assert_int_equal(values[BY_READ], 8);
    snd_events_end();
    return unused;
}

static void each_thread_has_its_own(void **state)
{
    pthread_t thread;
    uint64_t  values[EVENTS];
    int       last;

    (void)state;
    set(BY_READ, 35, 700, 500);
    unsigned before = count_high(&last);
    assert_int_equal(pthread_create(&thread, NULL, read_in_thread, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(told[SND_COUNTERS_READ_OPENED], 2 * OPENED);
    assert_int_equal(count_high(&last), before);
    read_all(values);
    assert_int_equal(values[BY_READ], 48);
}

/* Not before Linux 4.14, nor in qemu's emulation of it. */
static bool kernel_wipes_on_fork(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char  *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int    status;

    assert_true(page != MAP_FAILED);
    *page = 1;
    bool  is_told = madvise(page, size, MADV_WIPEONFORK) == 0; /* qemu says so, and does not */
    pid_t child = fork();
    if (child == 0)
        _exit(*page);
    assert_int_equal(waitpid(child, &status, 0), child);
    munmap(page, size);
    return is_told && status == 0;
}

/* The parent's events go on counting the parent: a child closes them, and opens its own. */
static void a_child_counts_itself(void **state)
{
    uint64_t values[EVENTS];
    int      last, status;
    unsigned before = count_high(&last);

    (void)state;
    if (!kernel_wipes_on_fork())
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        snd_events_tell(NULL);
        snd_events_read(values);
        _exit(values[BY_READ] == 0 && values[BY_PAGE] == 0 && count_high(&last) == before ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_high(&last), before);
    assert_int_equal(told[SND_COUNTERS_READ_OPENED], 2 * OPENED);
}

/* A program that closes all descriptors, and has files in the places of some: those are left alone. */
static void a_descriptor_may_be_the_programs(void **state)
{
    uint64_t values[EVENTS], after[EVENTS];
    int      first = SND_OWNFD_LEAST, last, plain = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)state;
    unsigned before = count_high(&last);
    while (!event_of(first))
        first++;
    assert_true(plain >= 0 && first < last);
    const unsigned taken[] = { (unsigned)(event_of(first) - events),
                               (unsigned)(event_of(last) - events) };
    read_all(values);
    assert_int_equal(dup2(plain, first), first);
    assert_int_equal(dup3(events[UNKNOWN].file, last, O_CLOEXEC), last); /* of another event */
    set_all(1000, 9000, 9000);
    for (int i = 0; i < 2; i++) {
        read_all(after);
        assert_int_equal(after[taken[0]], values[taken[0]]);
        assert_int_equal(after[taken[1]], values[taken[1]]);
        assert_int_equal(told[SND_COUNTERS_READ_ABSENT], 2 * ABSENT + 2); /* the thread's, too */
    }
    snd_events_end();
    assert_int_equal(count_high(&last), 1);
    assert_int_equal(close(last), 0);
    assert_int_equal(close(first), 0);
    close(plain);
    assert_int_equal(count_high(&last), 0);
    assert_false(is_mapped(BY_PAGE));
    read_all(after);
    assert_int_equal(after[BY_READ], 0);
    assert_int_equal(count_high(&last), before);
    assert_int_equal(told[SND_COUNTERS_READ_OPENED], 3 * OPENED);
    snd_events_end();
}

/* Without a number to give to a descriptor, there is what needs none. */
static void no_descriptor_is_better_than_a_low_one(void **state)
{
    const unsigned by_page = SND_PMC_THERE ? 1 : 0;
    struct rlimit  before, fewer;
    uint64_t       values[EVENTS];
    int            last;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    fewer = (struct rlimit){ SND_OWNFD_LEAST, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &fewer), 0);
    memset(told, 0, sizeof told);
    for (int i = 0; i < 2; i++) {
        read_all(values);
        assert_int_equal(told[SND_COUNTERS_READ_OPENED], by_page);
        assert_int_equal(told[SND_COUNTERS_READ_ABSENT], EVENTS - by_page);
    }
    assert_int_equal(count_high(&last), 0);
    snd_events_end();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_there_is_room_for),
        cmocka_unit_test(each_is_opened_as_far_as_it_may),
        cmocka_unit_test(what_took_turns_is_scaled),
        cmocka_unit_test(each_thread_has_its_own),
        cmocka_unit_test(a_child_counts_itself),
        cmocka_unit_test(a_descriptor_may_be_the_programs),
        cmocka_unit_test(no_descriptor_is_better_than_a_low_one),
    };

    return cmocka_run_group_tests(tests, make_events, NULL);
}
