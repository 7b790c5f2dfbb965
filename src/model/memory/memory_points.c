/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/memory_points.c - the course of what a device holds, in equal parts of the time between its first and its last event.
 *
 * When the last event is is known at the end. What was held at each is kept until then, of so many as a report may have memory for.
 */
#include <stdlib.h>
#include <string.h>

#include "model/memory/memory_holders.h"

#define MOMENTS_MAX (1u << 18) /* 4 MiB; a trace with more is walked twice */

void snd_memory_keep_moment(struct sonde_memory *m, struct device *d, int64_t ns)
{
    m->has_moments = m->has_moments && m->moment_count++ < MOMENTS_MAX;
    if (!m->has_moments)
        return;
    if (snd_grow(&d->moments, &d->moment_room, d->moment_count, sizeof *d->moments))
        d->moments[d->moment_count++] = (struct moment){ ns, d->now_bytes };
    else
        snd_assembly_stop(m->assembly);
}

void snd_memory_note_bucket(struct device *d, int64_t ns, int64_t bytes)
{
    int64_t  span = snd_sub(d->last_ns, d->first_ns);
    double   part = span > 0 ? (double)snd_sub(ns, d->first_ns) / (double)span : 0;
    uint32_t i = part > 0 && part < 1 ? (uint32_t)(part * BUCKETS) : part >= 1 ? BUCKETS - 1 : 0;
    struct bucket *b = &d->buckets[i];

    b->last.time_ns = ns;
    b->last.bytes = bytes;
    if (!b->any)
        memcpy(&b->first, &b->last, sizeof b->first);
    if (!b->any || bytes < b->least.bytes)
        memcpy(&b->least, &b->last, sizeof b->least);
    if (!b->any || bytes > b->most.bytes)
        memcpy(&b->most, &b->last, sizeof b->most);
    b->any = true;
}

bool snd_memory_make_buckets(struct sonde_memory *m)
{
    for (uint32_t i = 0; i < m->device_count; i++) {
        m->devices[i].buckets = calloc(BUCKETS, sizeof *m->devices[i].buckets);
        if (!m->devices[i].buckets)
            return false;
    }
    return true;
}

/* Where the allocator's counter tells of memory held before the recording, what was held is known after it alone. */
bool snd_memory_knows_course(const struct sonde_memory *m)
{
    bool knows = m->has_moments;

    for (uint32_t i = 0; i < m->device_count; i++)
        knows &= !m->devices[i].has_before;
    return knows;
}

void snd_memory_fill_buckets(struct sonde_memory *m, const struct sonde_memory *from)
{
    for (uint32_t i = 0; i < m->device_count; i++)
        for (uint32_t k = 0; k < from->devices[i].moment_count; k++)
            snd_memory_note_bucket(&m->devices[i], from->devices[i].moments[k].time_ns,
                                   from->devices[i].moments[k].bytes);
}
