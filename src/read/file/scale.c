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
    *scale = (struct snd_scale){ start->raw, (int64_t)start->mono_ns,
                                 (int64_t)1 << SND_SCALE_SHIFT };
    if (clock_kind == SND_CLOCK_MONOTONIC || clock_kind == SND_CLOCK_SYNTHETIC)
        return true;
    return measure_rate(line, &scale->rate);
}
