/* SPDX-License-Identifier: Apache-2.0 */
/* model/memory/memory_result.c - the holders and points of model/memory/memory_peaks.c, sorted, and the calls that return them. */
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "base/text/compare.h"
#include "model/kept.h"
#include "model/memory/memory_holders.h"

static bool add_point(struct sonde_memory *m, uint32_t device, int64_t time_ns, int64_t bytes)
{
    const struct sonde_memory_point *last = m->point_count ? &m->points[m->point_count - 1] : NULL;

    if (last && last->device == device && last->time_ns == time_ns && last->bytes == bytes)
        return true;
    if (!snd_grow(&m->points, &m->point_room, m->point_count, sizeof *m->points))
        return false;
    m->points[m->point_count++] = (struct sonde_memory_point){ device, time_ns, bytes };
    return true;
}

static bool add_bucket(struct sonde_memory *m, uint32_t device, const struct bucket *b)
{
    bool    least_first = b->least.time_ns <= b->most.time_ns;
    int64_t time1 = least_first ? b->least.time_ns : b->most.time_ns;
    int64_t bytes1 = least_first ? b->least.bytes : b->most.bytes;
    int64_t time2 = least_first ? b->most.time_ns : b->least.time_ns;
    int64_t bytes2 = least_first ? b->most.bytes : b->least.bytes;

    return !b->any || (add_point(m, device, b->first.time_ns, b->first.bytes) &&
                       add_point(m, device, time1, bytes1) && add_point(m, device, time2, bytes2) &&
                       add_point(m, device, b->last.time_ns, b->last.bytes));
}

static int compare_text(struct sonde_text a, struct sonde_text b)
{
    return snd_order_at(a.bytes, a.length, b.bytes, b.length);
}

/* The largest at the peak first, then the largest at the end. */
static int compare_holder(const void *x, const void *y)
{
    const struct sonde_memory_holder *a = &((const struct holder *)x)->shown;
    const struct sonde_memory_holder *b = &((const struct holder *)y)->shown;

    int order = SND_ORDER(SND_RISING(a->device, b->device),
                          SND_FALLING(a->peak_bytes, b->peak_bytes),
                          SND_FALLING(a->end_bytes, b->end_bytes));

    if (order == 0)
        order = compare_text(a->name, b->name);
    if (order == 0)
        order = compare_text(a->module, b->module);
    return order ? order : compare_text(a->stack, b->stack);
}

/* What the allocator had in use already: by whom is not known. */
static bool add_before(struct sonde_memory *m, uint32_t device)
{
    const struct device *d = &m->devices[device];

    if (d->before_at_peak <= 0 && d->before_at_end <= 0)
        return true;
    if (!snd_grow(&m->holders, &m->holder_room, m->holder_count, sizeof *m->holders))
        return false;
    m->holders[m->holder_count++] =
        (struct holder){ .shown = { .device = device,
                                    .name = { "(before the recording)", 22 },
                                    .module = { "", 0 },
                                    .stack = { "", 0 },
                                    .peak_bytes = d->before_at_peak,
                                    .end_bytes = d->before_at_end } };
    return true;
}

static void show_peak(const struct sonde_memory *m, struct holder *h)
{
    const struct device *d = &m->devices[h->shown.device];
    const struct held   *held = d->has_before ? &h->at_whole : &h->at_peak;
    uint32_t             height = d->has_before ? d->whole.height : d->peak.height;

    h->shown.peak_bytes = held->height < height ? h->now_bytes : held->bytes;
    h->shown.peak_count = held->height < height ? h->now_count : held->count;
}

bool snd_memory_show_holders(struct sonde_memory *m)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < m->holder_count; i++) {
        struct holder *h = &m->holders[i];
        show_peak(m, h);
        h->shown.end_bytes = h->now_bytes;
        h->shown.end_count = h->now_count;
        h->shown.stack = snd_place_text(&m->texts, h->stack);
        /* A range that held nothing at either moment is left out. */
        if (h->shown.peak_count > 0 || h->shown.end_count > 0)
            m->holders[kept++] = *h;
    }
    m->holder_count = kept;
    for (uint32_t i = 0; i < m->device_count; i++)
        if (!add_before(m, i))
            return false;
    snd_sort(m->holders, m->holder_count, sizeof *m->holders, compare_holder);
    return true;
}

/* ------------------------------------------------------ of one with more groups */

/* Texts are the trace's, or those of one memory: a text has one address. */
static bool merge_holder(struct sonde_memory *m, const struct holder *one)
{
    const struct sonde_memory_holder *from = &one->shown;
    bool                              by_module = m->groups & SONDE_GROUP_MODULE;
    struct snd_key                    key = { from->device, (uint64_t)(uintptr_t)from->name.bytes,
                           by_module ? (uint64_t)(uintptr_t)from->module.bytes : 0 };
    uint32_t                          at;

    if (!snd_map_get(&m->by_holder, key, &at)) {
        at = m->holder_count;
        if (!snd_grow(&m->holders, &m->holder_room, at, sizeof *m->holders) ||
            !snd_map_put(&m->by_holder, key, at))
            return false;
        m->holders[m->holder_count++] = (struct holder){
            .shown = { .device = from->device,
                       .name = from->name,
                       .module = by_module ? from->module : (struct sonde_text){ "", 0 },
                       .stack = from->stack }
        };
    }
    struct sonde_memory_holder *to = &m->holders[at].shown;
    to->peak_bytes = snd_add(to->peak_bytes, from->peak_bytes);
    to->end_bytes = snd_add(to->end_bytes, from->end_bytes);
    to->peak_count += from->peak_count;
    to->end_count += from->end_count;
    return true;
}

bool snd_memory_merge(struct sonde_memory *m, const struct sonde_memory *from)
{
    m->devices = malloc(((size_t)from->device_count + 1) * sizeof *m->devices);
    if (!m->devices)
        return false;
    for (; m->device_count < from->device_count; m->device_count++) {
        struct device *d = &m->devices[m->device_count];
        *d = from->devices[m->device_count];
        d->buckets = NULL;
        d->moments = NULL;
        d->moment_count = d->moment_room = 0;
    }
    for (uint32_t i = 0; i < from->holder_count; i++)
        if (!merge_holder(m, &from->holders[i]))
            return false;
    snd_sort(m->holders, m->holder_count, sizeof *m->holders, compare_holder);
    return true;
}

/* ----------------------------------------------------------------------- points */

bool snd_memory_show_points(struct sonde_memory *m)
{
    for (uint32_t i = 0; i < m->device_count; i++)
        for (uint32_t k = 0; k < BUCKETS; k++)
            if (!add_bucket(m, i, &m->devices[i].buckets[k]))
                return false;
    return true;
}

void sonde_memory_free(struct sonde_memory *m)
{
    if (!m || snd_kept_return(m->trace, m))
        return;
    snd_wait_end(m->trace, &m->consumer);
    for (uint32_t i = 0; i < m->device_count; i++) {
        free(m->devices[i].buckets);
        free(m->devices[i].moments);
    }
    free(m->devices);
    free(m->holders);
    free(m->lives);
    free(m->points);
    snd_map_release(&m->by_device);
    snd_map_release(&m->by_holder);
    snd_map_release(&m->by_address);
    snd_launches_release(&m->launches);
    snd_place_texts_release(&m->texts);
    free(m);
}

size_t sonde_memory_device_count(const struct sonde_memory *memory)
{
    return memory->device_count;
}

const struct sonde_memory_device *sonde_memory_device(const struct sonde_memory *memory, size_t i)
{
    return i < memory->device_count ? &memory->devices[i].shown : NULL;
}

size_t sonde_memory_holder_count(const struct sonde_memory *memory)
{
    return memory->holder_count;
}

const struct sonde_memory_holder *sonde_memory_holder(const struct sonde_memory *memory, size_t i)
{
    return i < memory->holder_count ? &memory->holders[i].shown : NULL;
}

size_t sonde_memory_point_count(const struct sonde_memory *memory)
{
    return memory->point_count;
}

const struct sonde_memory_point *sonde_memory_point(const struct sonde_memory *memory, size_t i)
{
    return i < memory->point_count ? &memory->points[i] : NULL;
}
