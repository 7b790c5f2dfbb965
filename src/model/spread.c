/* SPDX-License-Identifier: Apache-2.0 */
#include "model/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"

static int compare_ns(const void *left, const void *right)
{
    const int64_t *x = left, *y = right;

    return SND_RISING(*x, *y);
}

/* Nearest rank: the smallest sample that `percent` of them do not exceed. */
static int64_t percentile(const int64_t *sorted, size_t count, unsigned percent)
{
    size_t rank = (count * percent + 99) / 100;

    return sorted[rank > 0 ? rank - 1 : 0];
}

void snd_spread(int64_t *ns, size_t count, struct sonde_spread *out)
{
    double sum = 0, squares = 0;

    memset(out, 0, sizeof *out);
    if (count == 0)
        return;
    snd_sort(ns, count, sizeof *ns, compare_ns);
    for (size_t i = 0; i < count; i++)
        sum += (double)ns[i];
    out->count = count;
    out->mean_ns = sum / (double)count;
    /* Around the mean, not from sums of squares: those cancel. */
    for (size_t i = 0; i < count; i++)
        squares += ((double)ns[i] - out->mean_ns) * ((double)ns[i] - out->mean_ns);
    out->std_ns = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    size_t lower = (count - 1) / 2, upper = count / 2;
    out->median_ns = ((double)ns[lower] + (double)ns[upper]) / 2;
    out->min_ns = ns[0];
    out->max_ns = ns[count - 1];
    out->p90_ns = percentile(ns, count, 90);
    out->p99_ns = percentile(ns, count, 99);
}
