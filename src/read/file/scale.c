/* SPDX-License-Identifier: Apache-2.0 */
#include "read/file/scale.h"

/* Between a clock of 1 MHz and one of 100 GHz: no other counts. */
#define RATE_MAX ((int64_t)1000 << SND_SCALE_SHIFT)
#define RATE_MIN (((int64_t)1 << SND_SCALE_SHIFT) / 100)

void snd_baseline_add(struct snd_baseline *line, const struct snd_clock_pair *pair)
{
    if (pair->raw == 0 && pair->mono_ns == 0)
        return;
    if (!line->any || pair->raw < line->first.raw)
        line->first = *pair;
    if (!line->any || pair->raw > line->last.raw)
        line->last = *pair;
    line->any = true;
}

int64_t snd_scale_added(const struct snd_scale *scale, int64_t straight_ns)
{
    const struct snd_scale_bend *bends = scale->bends;
    uint32_t                     from = 0, to = scale->bend_count;

    while (from < to) { /* the first that is later */
        uint32_t middle = from + (to - from) / 2;
        if (bends[middle].at_ns <= straight_ns)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == 0 || from == scale->bend_count)
        return bends[from == 0 ? 0 : from - 1].add_ns;
    __extension__ typedef __int128 wide;
    const struct snd_scale_bend   *a = &bends[from - 1], *b = &bends[from];
    wide part = (wide)snd_sub(b->add_ns, a->add_ns) * snd_sub(straight_ns, a->at_ns);
    return snd_add(a->add_ns, (int64_t)(part / snd_sub(b->at_ns, a->at_ns)));
}

/* A bend changes the slope by 1/500 at most (bend_axis.c): each round leaves at most 1/500 of the error. */
int64_t snd_scale_straight(const struct snd_scale *scale, int64_t ns)
{
    int64_t straight = ns;

    for (int round = 0; round < 8; round++)
        straight = snd_sub(ns, snd_scale_added(scale, straight));
    return snd_sub(straight, 1000);
}

static bool measure_rate(const struct snd_baseline *line, int64_t *rate)
{
    __extension__ typedef unsigned __int128 wide;

    if (!line->any || line->last.raw <= line->first.raw ||
        line->last.mono_ns <= line->first.mono_ns)
        return false;
    uint64_t ticks = line->last.raw - line->first.raw;
    wide     scaled = (wide)(line->last.mono_ns - line->first.mono_ns) << SND_SCALE_SHIFT;
    wide     result = (scaled + ticks / 2) / ticks;
    if (result < (wide)RATE_MIN || result > (wide)RATE_MAX)
        return false;
    *rate = (int64_t)result;
    return true;
}

bool snd_scale_make(struct snd_scale *scale, uint32_t clock_kind,
                    const struct snd_clock_pair *start, const struct snd_baseline *line)
{
    *scale = (struct snd_scale){ .raw0 = start->raw,
                                 .ns0 = (int64_t)start->mono_ns,
                                 .rate = (int64_t)1 << SND_SCALE_SHIFT };
    if (clock_kind == SND_CLOCK_MONOTONIC || clock_kind == SND_CLOCK_SYNTHETIC)
        return true;
    return measure_rate(line, &scale->rate);
}
