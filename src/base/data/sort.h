/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/data/sort.h - arrays in order, and the order of what is in them.
 *
 *     static int compare(const void *left, const void *right)
 *     {
 *         const struct row *x = left, *y = right;
 *
 *         return SND_ORDER(SND_FALLING(x->ns, y->ns), SND_RISING(x->name, y->name));
 *     }
 *
 * Threads: no state.
 */
#ifndef SND_BASE_DATA_SORT_H
#define SND_BASE_DATA_SORT_H

#include <stddef.h>
#include <stdlib.h>

/* -1, 0 or 1, for the lesser or the greater first. */
#define SND_RISING(x, y) (((x) > (y)) - ((x) < (y)))
#define SND_FALLING(x, y) SND_RISING(y, x)

/* By the first of up to four of these, where that is 0 by the second, and so on: each outweighs all that follow. */
#define SND_ORDER(...) SND_ORDER_OF_(__VA_ARGS__, 0, 0, 0, 0)
#define SND_ORDER_OF_(a, b, c, d, ...) (8 * (a) + 4 * (b) + 2 * (c) + (d))

/* qsort(), which may not be given NULL, of an array that may be empty. */
static inline void snd_sort(void *items, size_t count, size_t size,
                            int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(items, count, size, compare);
}

#endif
