/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/shared_memory.c - memory of one thread that is also charged to ranges of the others.
 *
 * torch also charges what a thread allocates to the ranges that a person named on the process's other threads.
 * Each allocation is added to a sum of the process and to one of its thread; a named range of another thread is
 * charged the difference of the two sums when it stops being the innermost named range there.
 */
#include "model/ranges/open_ranges.h"

/* The innermost open range that a person named, on this thread. */
static struct snd_range *find_named(const struct snd_lane *lane)
{
    for (uint32_t i = lane->named > 0 ? lane->depth : 0; i-- > 0;)
        if (lane->open[i].range.scope == SONDE_SCOPE_USER && !lane->open[i].range.is_async)
            return &lane->open[i].range;
    return NULL;
}

/* Taken by the other threads of its process, from the begin of the trace. */
static struct snd_bytes of_others(const struct snd_assembly *a, const struct snd_lane *lane)
{
    const struct snd_bytes *sum = &a->shared[lane->process].sum;

    return (struct snd_bytes){ sum->cpu - lane->own.cpu, sum->device - lane->own.device };
}

void snd_lane_give_shared(struct snd_assembly *a, struct snd_lane *lane)
{
    struct snd_bytes now = of_others(a, lane), before = lane->settled;

    if (now.cpu == before.cpu && now.device == before.device)
        return;
    struct snd_range *r = find_named(lane);
    r->cpu_bytes = snd_add(r->cpu_bytes, (int64_t)(now.cpu - before.cpu));
    r->device_bytes = snd_add(r->device_bytes, (int64_t)(now.device - before.device));
    lane->settled = now;
}

void snd_lane_named(struct snd_assembly *a, struct snd_lane *lane)
{
    bool shares = find_named(lane) != NULL;

    if (shares == lane->shares)
        return;
    lane->shares = shares;
    lane->settled = of_others(a, lane);
    a->shared[lane->process].lanes += shares ? 1 : UINT32_MAX;
}

bool snd_share_memory(struct snd_assembly *a, struct snd_lane *lane, const uint64_t *words,
                      int64_t counted)
{
    struct snd_shared_memory *all = &a->shared[lane->process];

    if (SND_DEVICE_TYPE(SND_LOW(words[1])) == 0) {
        all->sum.cpu += (uint64_t)counted;
        lane->own.cpu += (uint64_t)counted;
    } else {
        all->sum.device += (uint64_t)counted;
        lane->own.device += (uint64_t)counted;
    }
    return all->lanes > lane->shares;
}
