/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/perf_attr.h - what perf_event_open(2) is asked to count.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_SYSTEM_PERF_ATTR_H
#define SND_BASE_SYSTEM_PERF_ATTR_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* `user`, `kernel`: in that mode alone; neither: in both. Read with the times that multiplexing needs. */
static inline struct perf_event_attr snd_perf_attr(uint32_t type, uint64_t config, bool user,
                                                   bool kernel)
{
    return (struct perf_event_attr){
        .type = type,
        .size = sizeof(struct perf_event_attr),
        .config = config,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .exclude_user = kernel && !user,
        .exclude_kernel = user && !kernel,
        .exclude_hv = user && !kernel,
    };
}

#endif
