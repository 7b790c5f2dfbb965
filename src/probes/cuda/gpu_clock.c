/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/gpu_clock.h"

#include <stddef.h>

#include "probes/cuda/library.h"
#include "sonde/record.h"

enum { PAIRS = 256, READINGS = 5 };

static struct snd_gpuclock_pair pairs[PAIRS]; /* by time; the oldest makes room */
static size_t                   count;

bool snd_gpuclock_read(struct snd_gpuclock_pair *pair)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < READINGS; i++) {
        uint64_t gpu_ns, before = sonde_clock();
        if (snd_cupti.GetTimestamp(&gpu_ns) != CUPTI_OK)
            break;
        uint64_t took = sonde_clock() - before;
        if (took < best) {
            best = took;
            *pair = (struct snd_gpuclock_pair){ gpu_ns, before + took / 2 };
        }
    }
    return best != UINT64_MAX;
}

void snd_gpuclock_reset(void)
{
    count = 0;
}

/* If CUPTI's clock was set back, the pairs start over: earlier work has been placed already. */
void snd_gpuclock_add(const struct snd_gpuclock_pair *pair)
{
    if (count > 0 && pair->ticks <= pairs[count - 1].ticks)
        return;
    if (count > 0 && pair->gpu_ns <= pairs[count - 1].gpu_ns)
        count = 0;
    if (count == PAIRS) { /* drops every second one: old work may still arrive */
        for (size_t i = 0; i < PAIRS / 2; i++)
            pairs[i] = pairs[2 * i];
        count = PAIRS / 2;
    }
    pairs[count++] = *pair;
}

/* The first of the two pairs by which this time is placed; count >= 2. */
static size_t pair_before(uint64_t gpu_ns)
{
    size_t low = 0, high = count - 1;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (pairs[middle].gpu_ns <= gpu_ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/*
 * torch.profiler has CUPTI stamp records with the processor's counter, and leaves it so: that is
 * our clock. It counts from when the machine was started, nanoseconds from 1970.
 */
static bool is_counter(uint64_t time)
{
    return sonde_clock_is_counter() && time < pairs[0].gpu_ns / 2 && time > pairs[0].ticks / 2;
}

uint64_t snd_gpuclock_ticks(uint64_t gpu_ns)
{
    if (count == 0)
        return 0;
    if (is_counter(gpu_ns))
        return gpu_ns;
    if (count == 1)
        return pairs[0].ticks;
    const struct snd_gpuclock_pair *from = &pairs[pair_before(gpu_ns)], *to = from + 1;
    double slope = (double)(to->ticks - from->ticks) / (double)(to->gpu_ns - from->gpu_ns);
    double beyond = (double)(int64_t)(gpu_ns - from->gpu_ns) * slope;
    return from->ticks + (uint64_t)(int64_t)beyond;
}

uint64_t snd_gpuclock_ns(uint64_t ticks)
{
    if (count < 2)
        return 0;
    const struct snd_gpuclock_pair *from = &pairs[0], *to = &pairs[count - 1];
    return (uint64_t)((double)ticks * (double)(to->gpu_ns - from->gpu_ns) /
                      (double)(to->ticks - from->ticks));
}
