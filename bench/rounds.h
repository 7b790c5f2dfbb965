/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/rounds.h - what the measuring programs share: the raw clock, a timer, a line of output.
 *
 * A program runs its subjects in turn, round after round, in one process, so that what
 * disturbs the machine disturbs all of them, and prints one line per round and subject:
 *
 *     SUBJECT THREADS ROUND NS_PER_RANGE CPU_NS_PER_RANGE
 *
 * by the wall's clock and by the thread's own, which stands still while others have the
 * processor. bench/run makes ratios of them. Other facts are lines `= NAME VALUE`.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What two of them cost is the floor of any range: nothing is measured without a clock. */
static inline uint64_t read_raw_clock(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* Without a trace, or given --help: prints how it is used. -1 to go on, or the exit status. */
static inline int print_usage(int argc, char **argv, const char *usage)
{
    int helps = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

    if (argc > 1 && !helps)
        return -1;
    fprintf(helps ? stdout : stderr, "usage: %s\n", usage);
    return helps ? 0 : 2;
}

struct cost {
    double wall_ns, cpu_ns;
};

static inline double clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline double now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* The inner clock is the wall's: asking for the thread's own is a system call. */
static inline struct cost begin_cost(void)
{
    struct cost begin = { .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };

    begin.wall_ns = now_ns();
    return begin;
}

static inline struct cost end_cost(struct cost begin, uint64_t turns)
{
    double wall_ns = now_ns() - begin.wall_ns;
    double cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin.cpu_ns;

    return (struct cost){ wall_ns / (double)turns, cpu_ns / (double)turns };
}

static inline void print_round(const char *subject, uint64_t threads, uint64_t round,
                               struct cost cost)
{
    printf("%s %llu %llu %.3f %.3f\n", subject, (unsigned long long)threads,
           (unsigned long long)round, cost.wall_ns, cost.cpu_ns);
}

/* The compiler may not move or merge the work of two turns of a loop. */
static inline void keep_apart(void)
{
    __asm__ volatile("" ::: "memory");
}

static inline struct cost time_two_reads(uint64_t turns)
{
    uint64_t    sum = 0;
    struct cost begin = begin_cost();

    for (uint64_t i = 0; i < turns; i++) {
        uint64_t first = read_raw_clock();
        keep_apart();
        sum += read_raw_clock() - first;
        keep_apart();
    }
    struct cost cost = end_cost(begin, turns);
    __asm__ volatile("" ::"r"(sum)); /* used, so not optimised away */
    return cost;
}

static inline uint64_t argument(int argc, char **argv, int index, uint64_t fallback)
{
    return argc > index ? strtoull(argv[index], NULL, 10) : fallback;
}

#endif
