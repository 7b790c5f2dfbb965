/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/sample_floor.c - the least that sampling one stack can cost: what sonde's sampler asks of the kernel, and nothing else.
 *
 *     sample_floor HZ TENTHS
 *
 * One thread writes to two kilobytes of frames all the time, as a deep recursion does. Another wakes HZ times a second and
 * does one of the following; each line is what that took of a processor, in the best of so many tenths of a second, and
 * what a thing that the first thread does takes more of its processor time.
 *
 *     inside_look      reads the lock and then the frames, in two calls (src/pystack/process_memory.c)
 *     inside_stop      the lock; sends a signal, and reads the frames while the thread stands still
 *     outside_look     as inside_look, of another process
 *     outside_stop     the lock; halts the thread by ptrace, and reads
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAMES 2048
#define PLACES 4 /* state, C stack, frames, code objects */
#define TENTH_NS 100000000u

/* Shared with the child that is looked at from outside. */
static struct shared {
    _Alignas(4096) volatile char places[PLACES][8192];
    volatile uint64_t count;
    volatile pid_t    tid;
    uint32_t          held;
} * shared;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec at;

    clock_gettime(clock, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void stand_still(int number)
{
    (void)number;
    __atomic_store_n(&shared->held, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&shared->held, __ATOMIC_ACQUIRE))
        now_ns(CLOCK_MONOTONIC);
}

/* Each on a processor of its own: the `number`th of those that this process may have. */
static bool stay_on(int number)
{
    static cpu_set_t all;
    cpu_set_t        one;

    if (CPU_COUNT(&all) == 0)
        sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0)
            CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

static void *work(void *unused)
{
    stay_on(1);
    shared->tid = (pid_t)syscall(SYS_gettid);
    for (uint64_t i = 0;; i++) {
        shared->places[2][i * 64 % FRAMES]++;
        shared->count++;
    }
    return unused;
}

/* The two pieces of the lock, or those of a stack. */
static void read_pieces(pid_t pid, bool lock)
{
    char         bytes[8192];
    struct iovec pieces[PLACES];
    size_t       all = 0, count = lock ? 2 : PLACES;

    for (size_t i = 0; i < count; i++) {
        pieces[i] = (struct iovec){ (void *)(uintptr_t)shared->places[i], i == 2 ? FRAMES : 160 };
        all += pieces[i].iov_len;
    }
    struct iovec whole = { bytes, all };
#if defined(__x86_64__)
    ssize_t n = pid == getpid() ? process_vm_writev(pid, pieces, count, &whole, 1, 0)
                                : process_vm_readv(pid, &whole, 1, pieces, count, 0);
#else
    ssize_t n = process_vm_readv(pid, &whole, 1, pieces, count, 0);
#endif
    if (n != (ssize_t)all) {
        perror("sample_floor");
        exit(1);
    }
}

/* -------------------------------------------------------------- what is done */

static void look(pid_t pid)
{
    read_pieces(pid, true);
    read_pieces(pid, false);
}

static void stop_inside(pid_t pid)
{
    read_pieces(pid, true);
    syscall(SYS_tgkill, pid, shared->tid, SIGURG);
    while (!__atomic_load_n(&shared->held, __ATOMIC_ACQUIRE))
        now_ns(CLOCK_MONOTONIC);
    read_pieces(pid, false);
    __atomic_store_n(&shared->held, 0, __ATOMIC_RELEASE);
}

static void stop_outside(pid_t pid)
{
    int status;

    read_pieces(pid, true);
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, &status, __WALL) != pid) {
        perror("sample_floor: ptrace");
        exit(1);
    }
    read_pieces(pid, false);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

/* ------------------------------------------------------------------ measuring */

static void wait_until(uint64_t ns)
{
    struct timespec at = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

/* Processor time of the thread that writes; of another process, it is the only one. */
static uint64_t worker_ns(pid_t pid)
{
    return now_ns(pid == getpid() ? (clockid_t)(~(uint32_t)shared->tid << 3 | 6u)
                                  : (clockid_t)(~(uint32_t)pid << 3 | 2u));
}

/* A tenth of a second: what it took of a processor. `act` NULL: nothing is done. */
static double tenth(unsigned hz, void (*act)(pid_t), pid_t pid, double *price)
{
    uint64_t begin = now_ns(CLOCK_MONOTONIC), spent = now_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t count = shared->count, worked = worker_ns(pid), due = begin;

    while (due < begin + TENTH_NS) {
        due += act ? 1000000000u / hz : TENTH_NS;
        wait_until(due);
        if (act)
            act(pid);
    }
    *price = (double)(worker_ns(pid) - worked) / (double)(shared->count - count);
    return (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - spent) /
           (double)(now_ns(CLOCK_MONOTONIC) - begin);
}

static void measure(const char *name, unsigned hz, unsigned tenths, void (*act)(pid_t), pid_t pid)
{
    double best = 1, bare = 1e9, sampled = 1e9, price;

    for (unsigned i = 0; i < tenths; i++) {
        tenth(hz, NULL, pid, &price);
        bare = price < bare ? price : bare;
        double share = tenth(hz, act, pid, &price);
        best = share < best ? share : best;
        sampled = price < sampled ? price : sampled;
    }
    printf("%s %.3f %.3f\n", name, 100 * best, 100 * (sampled / bare - 1));
}

int main(int argc, char **argv)
{
    unsigned hz = argc == 3 ? (unsigned)atoi(argv[1]) : 0,
             tenths = hz ? (unsigned)atoi(argv[2]) : 0;
    pthread_t thread;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hz == 0 || tenths == 0 || shared == MAP_FAILED) {
        fprintf(stderr, "sample_floor HZ TENTHS\n");
        return 2;
    }
    if (!stay_on(0) || !stay_on(1) || !stay_on(0)) {
        fprintf(stderr, "sample_floor: it needs two processors\n");
        return 1;
    }
    memset((void *)(uintptr_t)shared->places, 1, sizeof shared->places);
    prctl(PR_SET_TIMERSLACK, 1ul);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work(NULL);
    }
    while (shared->tid == 0)
        usleep(100);
    measure("outside_look", hz, tenths, look, child);
    measure("outside_stop", hz, tenths, stop_outside, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    shared->tid = 0;
    signal(SIGURG, stand_still);
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        return 1;
    while (shared->tid == 0)
        usleep(100);
    measure("inside_look", hz, tenths, look, getpid());
    measure("inside_stop", hz, tenths, stop_inside, getpid());
    return 0;
}
