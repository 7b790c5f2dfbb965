/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/file/scale.h - from a process's raw clock to nanoseconds on the axis of the trace.
 *
 *     ns = ns0 + (raw - raw0) * rate, rate as a fixed-point number: exact to far less than
 *     a nanosecond in a second, and in integers, so that equal traces give equal numbers.
 *
 * Layer: read. Threads: any.
 */
#ifndef SND_READ_FILE_SCALE_H
#define SND_READ_FILE_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "format/layout.h"

#define SND_SCALE_SHIFT 40

/* At `at_ns` of the straight line above, so much is added; between two of them along a line, beyond them as at the last. */
struct snd_scale_bend {
    int64_t at_ns, add_ns;
};

struct snd_scale {
    uint64_t                     raw0;
    int64_t                      ns0;
    int64_t                      rate;  /* nanoseconds a tick, times 2^40 */
    const struct snd_scale_bend *bends; /* by time; where hosts' clocks were aligned */
    uint32_t                     bend_count;
};

/* Sums of times and bytes of a hostile trace may pass any limit: they wrap, and are defined. */
static inline int64_t snd_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Counts of a hostile trace stop at the greatest number, and so do cells of tables, which are signed. */
static inline uint64_t snd_count_add(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static inline int64_t snd_count_shown(uint64_t count)
{
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

static inline int64_t snd_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/*
 * No time of a trace lies further than 36 years from its zero: what claims to is damage. So the
 * difference of two times always fits.
 */
#define SND_TIME_MAX ((int64_t)1 << 60)

static inline bool snd_time_is_sane(int64_t ns)
{
    return ns >= -SND_TIME_MAX && ns <= SND_TIME_MAX;
}

static inline int64_t snd_time_clamp(int64_t ns)
{
    return ns > SND_TIME_MAX ? SND_TIME_MAX : ns < -SND_TIME_MAX ? -SND_TIME_MAX : ns;
}

/* What the bends add at a moment of the straight line. */
int64_t snd_scale_added(const struct snd_scale *scale, int64_t straight_ns);

static inline int64_t snd_scale_ns(const struct snd_scale *scale, uint64_t raw)
{
    __extension__ typedef __int128 wide;
    wide                           product = (wide)(int64_t)(raw - scale->raw0) * scale->rate;

    /* To the nearest, so that what was recorded as n ns on another clock comes back as n. */
    product += (wide)1 << (SND_SCALE_SHIFT - 1);
    int64_t ns = snd_add(scale->ns0, (int64_t)(product >> SND_SCALE_SHIFT));
    return scale->bend_count > 0 ? snd_add(ns, snd_scale_added(scale, ns)) : ns;
}

/* A moment of the straight line before which every time is before `ns`. */
int64_t snd_scale_straight(const struct snd_scale *scale, int64_t ns);

/* A raw clock value before which every time is before `ns`; 0 if there is none. */
static inline uint64_t snd_scale_raw_before(const struct snd_scale *scale, int64_t ns)
{
    __extension__ typedef __int128 wide;

    if (scale->rate <= 0 || scale->raw0 > INT64_MAX || ns > SND_TIME_MAX)
        return scale->rate > 0 && ns > SND_TIME_MAX ? UINT64_MAX : 0;
    if (scale->bend_count > 0)
        ns = snd_scale_straight(scale, ns);
    /* One nanosecond and one tick less, for what was rounded. */
    wide ahead = ((wide)ns - scale->ns0 - 1) * ((wide)1 << SND_SCALE_SHIFT);
    wide raw = ahead / scale->rate + scale->raw0 - 1;
    return raw < 0 ? 0 : raw > (wide)INT64_MAX ? (uint64_t)INT64_MAX : (uint64_t)raw;
}

/* A duration, or a sum of durations, in nanoseconds; at most what a trace can last. */
static inline int64_t snd_scale_ticks(const struct snd_scale *scale, uint64_t ticks)
{
    __extension__ typedef unsigned __int128 wide;
    wide ns = ((wide)ticks * (uint64_t)scale->rate + ((wide)1 << (SND_SCALE_SHIFT - 1))) >>
              SND_SCALE_SHIFT;

    return ns > (wide)SND_TIME_MAX ? SND_TIME_MAX : (int64_t)ns;
}

/* The widest base line seen so far of one process's clock. All zero: none yet. */
struct snd_baseline {
    struct snd_clock_pair first, last;
    bool                  any;
};

void snd_baseline_add(struct snd_baseline *line, const struct snd_clock_pair *pair);

/*
 * A scale onto CLOCK_MONOTONIC. False when the pairs cannot be a clock's (or there is only
 * one, of a clock whose rate is not known): one tick is then taken for a nanosecond.
 */
bool snd_scale_make(struct snd_scale *scale, uint32_t clock_kind,
                    const struct snd_clock_pair *start, const struct snd_baseline *line);

#endif
