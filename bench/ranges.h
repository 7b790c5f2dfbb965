/* SPDX-License-Identifier: Apache-2.0 */
/* bench/ranges.h - the loop that bench_range and bench_peers time: bare ranges. */
#ifndef BENCH_RANGES_H
#define BENCH_RANGES_H

#include <sonde/record.h>

#include "rounds.h"

static inline struct cost time_ranges(uint64_t turns)
{
    struct cost begin = begin_cost();

    for (uint64_t i = 0; i < turns; i++) {
        sonde_begin("range");
        keep_apart();
        sonde_end();
        keep_apart();
    }
    return end_cost(begin, turns);
}

#endif
