/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/clock_line.h"

#include <math.h>
#include <stdlib.h>

#include "base/data/sort.h"
#include "model/diff/diff_stats.h"

#define PARTS 32u    /* of the points, whose medians the slopes are between */
#define ROUNDS 64u   /* of a search: a third of the range goes in each */
#define HALVINGS 48u /* of another */

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return SND_RISING(x, y);
}

double snd_value_at_share(double *values, uint32_t count, double share)
{
    if (count == 0)
        return 0;
    snd_sort(values, count, sizeof *values, compare_numbers);
    return snd_quantile(values, count, share);
}

/* The point in the middle of some, each way by itself. */
static struct snd_point find_middle(const struct snd_point *points, uint32_t count, double *scratch)
{
    struct snd_point middle;

    for (uint32_t i = 0; i < count; i++)
        scratch[i] = points[i].x;
    middle.x = snd_value_at_share(scratch, count, 0.5);
    for (uint32_t i = 0; i < count; i++)
        scratch[i] = points[i].y;
    middle.y = snd_value_at_share(scratch, count, 0.5);
    return middle;
}

struct snd_line snd_line_through(const struct snd_point *points, uint32_t count, double steepest,
                                 double *scratch)
{
    struct snd_point middles[PARTS];
    uint32_t         parts = count < PARTS ? count : PARTS, slopes = 0;
    struct snd_line  line = { 0, 0 };

    for (uint32_t i = 0; i < parts; i++) {
        uint32_t from = (uint32_t)((uint64_t)count * i / parts),
                 to = (uint32_t)((uint64_t)count * (i + 1) / parts);
        middles[i] = find_middle(points + from, to - from, scratch);
    }
    for (uint32_t i = 0; i < parts; i++)
        for (uint32_t k = i + 1; k < parts; k++)
            if (middles[k].x > middles[i].x)
                scratch[slopes++] = (middles[k].y - middles[i].y) / (middles[k].x - middles[i].x);
    if (count > 2)
        line.slope = fmin(fmax(snd_value_at_share(scratch, slopes, 0.5), -steepest), steepest);
    for (uint32_t i = 0; i < count; i++)
        scratch[i] = points[i].y - line.slope * points[i].x;
    line.at = snd_value_at_share(scratch, count, 0.5);
    return line;
}

/* ------------------------------------------------------------- lines between */

static int compare_points(const void *a, const void *b)
{
    const struct snd_point *p = a, *q = b;

    return SND_ORDER(SND_RISING(p->x, q->x), SND_RISING(p->y, q->y));
}

/* Keeps the corners of the hull on one side: `side` 1 above, -1 below. */
static uint32_t thin_out(struct snd_point *points, uint32_t count, double side)
{
    uint32_t kept = 0;

    snd_sort(points, count, sizeof *points, compare_points);
    for (uint32_t i = 0; i < count; i++) {
        while (kept >= 2) {
            struct snd_point a = points[kept - 2], b = points[kept - 1], c = points[i];
            double           turn = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
            if (turn * side < 0)
                break;
            kept--;
        }
        points[kept++] = points[i];
    }
    return kept;
}

/* At x = 0: the lowest and the highest line of a slope. */
static double find_lowest(const struct snd_gap *gap, double slope)
{
    double most = -INFINITY;

    for (uint32_t i = 0; i < gap->low_count; i++)
        most = fmax(most, gap->low[i].y - slope * gap->low[i].x);
    return most;
}

static double find_highest(const struct snd_gap *gap, double slope)
{
    double least = INFINITY;

    for (uint32_t i = 0; i < gap->high_count; i++)
        least = fmin(least, gap->high[i].y - slope * gap->high[i].x);
    return least;
}

static double find_room(const struct snd_gap *gap, double slope)
{
    return find_highest(gap, slope) - find_lowest(gap, slope);
}

/* The slope furthest towards `to` that leaves room; `from` does. */
static double find_end(const struct snd_gap *gap, double from, double to)
{
    if (find_room(gap, to) >= 0)
        return to;
    for (unsigned i = 0; i < HALVINGS; i++) {
        double middle = (from + to) / 2;
        if (find_room(gap, middle) >= 0)
            from = middle;
        else
            to = middle;
    }
    return from;
}

bool snd_gap_find(struct snd_gap *gap, double flattest, double steepest)
{
    double from = flattest, to = steepest;

    gap->low_count = thin_out(gap->low, gap->low_count, 1);
    gap->high_count = thin_out(gap->high, gap->high_count, -1);
    for (unsigned i = 0; i < ROUNDS; i++) { /* the room rises to one top, and falls from there */
        double a = from + (to - from) / 3, b = to - (to - from) / 3;
        if (find_room(gap, a) < find_room(gap, b))
            from = a;
        else
            to = b;
    }
    double best = (from + to) / 2;
    if (!(find_room(gap, best) >= 0))
        return false;
    gap->least = find_end(gap, best, flattest);
    gap->most = find_end(gap, best, steepest);
    return true;
}

void snd_gap_at(const struct snd_gap *gap, double x, double *low, double *high)
{
    double from = gap->least, to = gap->most;

    for (unsigned i = 0; i < ROUNDS; i++) {
        double a = from + (to - from) / 3, b = to - (to - from) / 3;
        if (find_lowest(gap, a) + a * x > find_lowest(gap, b) + b * x)
            from = a;
        else
            to = b;
    }
    *low = find_lowest(gap, from) + from * x;
    from = gap->least;
    to = gap->most;
    for (unsigned i = 0; i < ROUNDS; i++) {
        double a = from + (to - from) / 3, b = to - (to - from) / 3;
        if (find_highest(gap, a) + a * x < find_highest(gap, b) + b * x)
            from = a;
        else
            to = b;
    }
    *high = find_highest(gap, from) + from * x;
}
