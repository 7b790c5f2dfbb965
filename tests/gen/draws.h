/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/draws.h - numbers drawn for a trace, the same each time.
 *
 * They come from short lists, in which 0 and 1 are frequent and the same moment, length or size comes again: what is
 * equal, empty or just at a boundary is where a reader goes wrong. N from 100 to 199: all lengths and sizes are from 0 to 3,
 * so that nearly all of them are equal to others, and are as many as there are of something, or one more.
 *
 * Each place of a file that draws has numbers of its own: compilers evaluate arguments and members in orders of their
 * own, and all of them are to make the same trace. A file ends with DRAWS_END.
 */
#ifndef GEN_DRAWS_H
#define GEN_DRAWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/count_of.h"

enum { DRAW_PLACES = 256 };
enum { FIRST_PLACE = __COUNTER__ };

struct draws {
    uint64_t seed;
    bool     small;
    uint32_t drawn[DRAW_PLACES]; /* how often, by each */
};

static inline uint64_t draw_at(struct draws *d, uint32_t place, uint64_t below)
{
    uint64_t mixed = d->seed + ((uint64_t)place << 32 | d->drawn[place]++);

    for (int i = 0; i < 2; i++) {
        mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
        mixed ^= mixed >> 29;
    }
    return mixed % below;
}

static inline uint64_t draw_ns_at(struct draws *d, uint32_t place)
{
    static const uint64_t lengths[] = { 0, 0, 1, 100, 1000, 1000, 10000, 10000, 250000, 1000000 };
    static const uint64_t small[] = { 0, 1, 1, 1, 2, 3 };

    if (d->small)
        return small[draw_at(d, place, SND_COUNT_OF(small))];
    return lengths[draw_at(d, place, SND_COUNT_OF(lengths))];
}

static inline uint64_t draw_size_at(struct draws *d, uint32_t place)
{
    static const uint64_t sizes[] = { 0, 1, 64, 512, 512, 1024, 4096, 1 << 20 };
    static const uint64_t small[] = { 0, 1, 1, 1, 2, 3 };

    if (d->small)
        return small[draw_at(d, place, SND_COUNT_OF(small))];
    return sizes[draw_at(d, place, SND_COUNT_OF(sizes))];
}

#define DRAWS_OF(n)                                              \
    {                                                            \
        .seed = (n)*0x9e3779b97f4a7c15u, .small = (n) / 100 == 1 \
    }
#define PLACE (__COUNTER__ - FIRST_PLACE - 1)
#define draw(c, below) draw_at(&(c)->draws, PLACE, below)
#define DRAW_OF(c, list) ((list)[draw(c, SND_COUNT_OF(list))])
#define draw_ns(c) draw_ns_at(&(c)->draws, PLACE)
#define draw_size(c) draw_size_at(&(c)->draws, PLACE)
#define DRAWS_END _Static_assert(PLACE < DRAW_PLACES, "each place that draws has a count")

#endif
