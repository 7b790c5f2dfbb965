/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/sampling/pace.h - when the next round is due, and how many came too late to be made.
 *
 * Rounds are a period apart on average, and not exactly: a program that does everything in time
 * with the sampler would be seen at one thing only.
 *
 * Layer:   pystack. Threads: one at a time.
 */
#ifndef SND_PYSTACK_SAMPLING_PACE_H
#define SND_PYSTACK_SAMPLING_PACE_H

#include <stdint.h>
#include <time.h>

#include "base/system/clock_ns.h"

struct snd_pace {
    uint64_t period_ns, due_ns; /* CLOCK_MONOTONIC */
    uint64_t seed;
};

static inline struct snd_pace snd_pace_begin(uint64_t period_ns)
{
    uint64_t now = snd_clock_ns(CLOCK_MONOTONIC);

    return (struct snd_pace){ period_ns, now, now | 1 };
}

/* A round has been made: between three and five quarters of a period to the next. Returns how many
 * were missed meanwhile. */
static inline uint64_t snd_pace_next(struct snd_pace *pace)
{
    uint64_t now = snd_clock_ns(CLOCK_MONOTONIC), missed = 0;

    pace->seed ^= pace->seed << 13;
    pace->seed ^= pace->seed >> 7;
    pace->seed ^= pace->seed << 17;
    pace->due_ns += pace->period_ns * 3 / 4 + pace->seed % (pace->period_ns / 2 + 1);
    if (pace->due_ns + pace->period_ns < now) {
        missed = (now - pace->due_ns) / pace->period_ns;
        pace->due_ns += missed * pace->period_ns;
    }
    return missed;
}

#endif
