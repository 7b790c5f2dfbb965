/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampled programs share: parts of known length, told on standard output at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static double cpu_now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Steps of a loop that take about a second here: found once. */
static long steps_a_second(void)
{
    double start = cpu_now();

    for (long i = 0; i < 20000000; i++)
        sink += (unsigned long)i;
    return (long)(20000000 / (cpu_now() - start));
}

#define PART __attribute__((noinline, noclone))

static PART void burn(long steps)
{
    for (long i = 0; i < steps; i++)
        sink += (unsigned long)i;
}

#define TELL(name, seconds) printf(name " %.6f\n", seconds)
