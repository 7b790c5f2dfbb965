/* SPDX-License-Identifier: Apache-2.0 */
/* base/system/clock_ns.h - a clock of the system, in nanoseconds. */
#ifndef SND_BASE_SYSTEM_CLOCK_NS_H
#define SND_BASE_SYSTEM_CLOCK_NS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t snd_clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
