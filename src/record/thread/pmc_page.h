/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/pmc_page.h - an event's value from its mapped page, without a system call.
 *
 * The protocol is that of linux/perf_event.h: the kernel makes `lock` odd-even-odd around what it
 * changes, so what was read while it stayed the same belongs together. The value is `offset` and, while
 * the event is on a counter, what that counter has, sign-extended from its width. Where events take
 * turns the times go on from the page's by the processor's clock.
 *
 * Layer: record. Threads: the one that the event counts.
 */
#ifndef SND_RECORD_THREAD_PMC_PAGE_H
#define SND_RECORD_THREAD_PMC_PAGE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct snd_pmc_value {
    uint64_t count, enabled_ns, running_ns;
};

/* How the counter is read; tests replace it. */
struct snd_pmc_ways {
    uint64_t (*counter)(uint32_t number);
    uint64_t (*clock)(void);
};

#if defined(__x86_64__)
#define SND_PMC_THERE 1
static inline uint64_t snd_pmc_counter(uint32_t number)
{
    uint32_t low, high;

    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
    return (uint64_t)high << 32 | low;
}

static inline uint64_t snd_pmc_clock(void)
{
    return __builtin_ia32_rdtsc();
}
#else /* the descriptor is read */
#define SND_PMC_THERE 0
static inline uint64_t snd_pmc_counter(uint32_t number)
{
    (void)number;
    return 0;
}

static inline uint64_t snd_pmc_clock(void)
{
    return 0;
}
#endif

/* The counter's `width` low bits as a signed number. */
static inline uint64_t snd_pmc_extend(uint64_t value, uint32_t width)
{
    if (width == 0 || width >= 64)
        return value;
    const uint64_t sign = (uint64_t)1 << (width - 1), low = value & (2 * sign - 1);
    return (low ^ sign) - sign;
}

/* Nanoseconds since the page's times were written, `cycles` being the processor's clock now. */
static inline uint64_t snd_pmc_since(const volatile struct perf_event_mmap_page *page,
                                     uint64_t                                    cycles)
{
    uint32_t shift = page->time_shift & 63, mult = page->time_mult;

    if (page->cap_user_time_short)
        cycles = page->time_cycles + ((cycles - page->time_cycles) & page->time_mask);
    const uint64_t whole = cycles >> shift, rest = cycles & (((uint64_t)1 << shift) - 1);
    return page->time_offset + whole * mult + (rest * mult >> shift);
}

/* False: the event cannot be read this way; its descriptor must be read. */
static inline bool snd_pmc_read(const volatile struct perf_event_mmap_page *page,
                                const struct snd_pmc_ways *ways, struct snd_pmc_value *value)
{
    uint32_t lock, index;

    if (!SND_PMC_THERE || !page->cap_user_rdpmc)
        return false;
    do {
        lock = page->lock;
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the kernel writes on this processor */
        index = page->index;
        value->count = (uint64_t)page->offset;
        value->enabled_ns = page->time_enabled;
        value->running_ns = page->time_running;
        /* Where it has always been on a counter both times are the same, and not needed. */
        if (page->cap_user_time && value->enabled_ns != value->running_ns) {
            uint64_t since = snd_pmc_since(page, ways->clock());
            value->enabled_ns += since;
            value->running_ns += index ? since : 0;
        }
        if (index)
            value->count += snd_pmc_extend(ways->counter(index - 1), page->pmc_width);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (page->lock != lock);
    return true;
}

/*
 * The increase between two readings, times the time in which the event should have counted, over
 * the time in which it did.
 */
static inline uint64_t snd_pmc_rise(const struct snd_pmc_value *before,
                                    const struct snd_pmc_value *now)
{
    uint64_t count = now->count - before->count;
    uint64_t enabled = now->enabled_ns - before->enabled_ns;
    uint64_t running = now->running_ns - before->running_ns;

    if ((int64_t)count <= 0)
        return 0;
    if (running == 0 || running >= enabled)
        return count;
    return (uint64_t)((double)count * ((double)enabled / (double)running));
}

#endif
