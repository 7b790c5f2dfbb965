/* SPDX-License-Identifier: Apache-2.0 */
#include "record/clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock_ns.h"
#include "sonde/record.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

uint32_t sonde_clock_trust_;

static struct snd_clock_pair early;

uint64_t snd_monotonic_ns(void)
{
    return snd_clock_ns(CLOCK_MONOTONIC);
}

uint64_t sonde_clock_fallback_(void)
{
    return snd_monotonic_ns();
}

#if defined(__x86_64__)
/*
 * The counter must run at one rate in all power states (CPUID says "invariant") and be in
 * step between cores, which only the kernel has checked: it lists "tsc" as usable then.
 */
static bool kernel_lists_tsc(void)
{
    char text[256];
    int  fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource",
                   O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return strstr(text, "tsc") != NULL;
}

static bool counter_is_trusted(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) && kernel_lists_tsc();
}
#elif defined(__aarch64__)
static bool counter_is_trusted(void)
{
    return true; /* the architecture demands a constant rate, in step on all cores */
}
#else
static bool counter_is_trusted(void)
{
    return false;
}
#endif

enum snd_clock_kind snd_clock_kind(void)
{
    if (!sonde_clock_trust_)
        return SND_CLOCK_MONOTONIC;
#if defined(__x86_64__)
    return SND_CLOCK_TSC;
#else
    return SND_CLOCK_CNTVCT;
#endif
}

/* Of several tries the one that took least: an interrupt in between would skew the pair. */
struct snd_clock_pair snd_clock_pair_now(void)
{
    struct snd_clock_pair best = { 0, 0, 0 };
    uint64_t              least = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        uint64_t before = sonde_clock();
        uint64_t mono = snd_monotonic_ns();
        uint64_t real = snd_clock_ns(CLOCK_REALTIME);
        uint64_t after = sonde_clock();
        if (after - before < least) {
            least = after - before;
            best = (struct snd_clock_pair){ before + (after - before) / 2, mono, real };
        }
    }
    return best;
}

void snd_clock_init(void)
{
    sonde_clock_trust_ = counter_is_trusted();
    early = snd_clock_pair_now();
}

struct snd_clock_pair snd_clock_early(void)
{
    return early;
}

static uint64_t measure_range_cost(void)
{
    enum { RANGES = 32, ROUNDS = 16 };
    uint64_t events[RANGES * 3];
    uint64_t least = UINT64_MAX;

    for (int round = 0; round < ROUNDS; round++) {
        struct sonde_lane lane = { .cur = events, .end = events + RANGES * 3, .epoch = 1 };
        uint64_t          before = sonde_clock();
        for (int i = 0; i < RANGES; i++) {
            sonde_begin_at_(&lane, 1);
            sonde_lane_end(&lane, sonde_clock());
        }
        uint64_t took = sonde_clock() - before;
        if (took < least)
            least = took;
    }
    return least * 256 / RANGES;
}

uint64_t snd_clock_range_cost(void)
{
    static uint64_t known; /* of the machine: a thousand readings of the clock, once a process */
    uint64_t        cost = __atomic_load_n(&known, __ATOMIC_RELAXED);

    if (cost == 0) {
        cost = measure_range_cost();
        __atomic_store_n(&known, cost, __ATOMIC_RELAXED);
    }
    return cost;
}
