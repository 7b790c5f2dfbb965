/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/clock_line.h - a line through points, and all lines between points below and above.
 *
 * Layer: model. Threads: any.
 */
#ifndef SND_MODEL_RANKS_CLOCK_LINE_H
#define SND_MODEL_RANKS_CLOCK_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct snd_point {
    double x, y;
};

struct snd_line {
    double at, slope; /* y at x = 0 */
};

static inline double snd_line_y(struct snd_line line, double x)
{
    return line.at + line.slope * x;
}

/* The value below which this share of the values lies; puts them in order. 0 of none. */
double snd_value_at_share(double *values, uint32_t count, double share);

/*
 * Through the middle of the points, whatever a few of them say: the median of slopes between medians of parts, at most `steepest`.
 * `scratch` has room for SND_LINE_SCRATCH numbers, and two for each point.
 */
#define SND_LINE_SCRATCH 1024u
struct snd_line snd_line_through(const struct snd_point *points, uint32_t count, double steepest,
                                 double *scratch);

/*
 * The lines above all of `low` and below all of `high`, with slopes from `flattest` to `steepest`: between what they lie at each x that is
 * asked for. The points are put in order and thinned out to those that matter.
 */
struct snd_gap {
    struct snd_point *low, *high;
    uint32_t          low_count, high_count;
    double            least, most; /* slopes of such lines */
};
/* False: there is no such line. */
bool snd_gap_find(struct snd_gap *gap, double flattest, double steepest);
void snd_gap_at(const struct snd_gap *gap, double x, double *low, double *high);

#endif
