/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/processors.h - how many processors this process may use.
 *
 * Layer: base (libc only). Threads: any.
 */
#ifndef SND_BASE_SYSTEM_PROCESSORS_H
#define SND_BASE_SYSTEM_PROCESSORS_H

#include <sched.h>
#include <stdint.h>

/* At least 1. */
static inline uint32_t snd_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (uint32_t)count;
}

#endif
