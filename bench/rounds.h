/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/rounds.h - what the measuring programs share: the raw clock, a timer, a line of output.
 *
 * A program runs its subjects in turn, round after round, in one process, so that what
 * disturbs the machine disturbs all of them, and prints one line a round and subject:
 *
 *     SUBJECT THREADS ROUND NS_PER_RANGE
 *
 * bench/run reads these and makes ratios of them. Other facts are lines `= NAME VALUE`.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* What two of them cost is the floor of any range: nothing is measured without a clock. */
static inline uint64_t read_raw_clock(void)
{
#if defined(__x86_64__)
    return __rdtsc();
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

static inline double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The compiler may not move or merge the work of two turns of a loop. */
static inline void keep_apart(void)
{
    __asm__ volatile("" ::: "memory");
}

static inline double time_two_reads(uint64_t turns)
{
    double   begin = now_ns();
    uint64_t sum = 0;

    for (uint64_t i = 0; i < turns; i++) {
        uint64_t first = read_raw_clock();
        keep_apart();
        sum += read_raw_clock() - first;
        keep_apart();
    }
    double spent = now_ns() - begin;
    __asm__ volatile("" ::"r"(sum)); /* used, so not optimised away */
    return spent / (double)turns;
}

static inline uint64_t argument(int argc, char **argv, int index, uint64_t fallback)
{
    return argc > index ? strtoull(argv[index], NULL, 10) : fallback;
}

#endif
