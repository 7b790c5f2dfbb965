/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory.c - what memory was live, when it was most, and who held it then.
 *
 * Two walks in the order of time. The first finds the moment of each device's peak, the second
 * stops there and looks who holds it: no copy of the holders is made at every new height.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "format/fields.h"
#include "model/assembly.h"

#define DEVICES_MAX 256u
#define BUCKETS 256u /* of time, four points each: 1,024 points a device */
#define NO_RANGE UINT32_MAX

struct live { /* an allocation that was not given back */
    int64_t  bytes;
    uint32_t holder, next_free;
};

/* The course of the live bytes within a slice of time. */
struct bucket {
    struct {
        int64_t time_ns, bytes;
    } first, least, most, last;
    bool any;
};

struct device {
    struct sonde_memory_device shown;
    int64_t                    now_bytes;
    uint64_t       now_count, events, peak_event; /* number of the event that reached the peak */
    int64_t        first_ns, last_ns;
    struct bucket *buckets;
};

struct holder {
    struct sonde_memory_holder shown;
    int64_t                    now_bytes;
    uint64_t                   now_count;
};

struct sonde_memory {
    struct sonde_trace        *trace;
    struct device             *devices;
    struct holder             *holders;
    struct live               *lives;
    struct sonde_memory_point *points;
    uint32_t            device_count, device_room, holder_count, holder_room, live_count, live_room;
    uint32_t            point_count, point_room;
    uint32_t            free_live; /* plus one: a list through next_free */
    struct snd_map      by_device, by_holder, by_address;
    bool                second; /* walk */
    struct snd_assembly assembly;
};

static void give_up(struct sonde_memory *m)
{
    snd_assembly_stop(&m->assembly);
}

/* ------------------------------------------------------- devices and holders */

static struct device *find_device(struct sonde_memory *m, uint32_t device, int64_t ns,
                                  uint32_t *index)
{
    struct snd_key key = { device, 0, 0 };

    if (snd_map_get(&m->by_device, key, index))
        return &m->devices[*index];
    /* A file still being written may show the second walk what the first did not see. */
    if (m->device_count >= DEVICES_MAX || m->second)
        return NULL;
    if (!snd_grow(&m->devices, &m->device_room, m->device_count, sizeof *m->devices) ||
        !snd_map_put(&m->by_device, key, m->device_count)) {
        give_up(m);
        return NULL;
    }
    *index = m->device_count++;
    struct device *d = &m->devices[*index];
    *d = (struct device){ .first_ns = ns };
    d->shown.type = SND_DEVICE_TYPE(device);
    d->shown.index = SND_DEVICE_INDEX(device) == 0xffff ? SONDE_NONE : SND_DEVICE_INDEX(device);
    return d;
}

static uint32_t find_holder(struct sonde_memory *m, uint32_t device,
                            const struct snd_open_range *innermost)
{
    uint32_t       name = innermost ? innermost->range.name : NO_RANGE, holder;
    struct snd_key key = { device, name, 0 };

    if (snd_map_get(&m->by_holder, key, &holder))
        return holder;
    if (!snd_grow(&m->holders, &m->holder_room, m->holder_count, sizeof *m->holders) ||
        !snd_map_put(&m->by_holder, key, m->holder_count)) {
        give_up(m);
        return 0;
    }
    struct holder *h = &m->holders[m->holder_count];
    *h = (struct holder){ .shown = { .device = device, .name = { "(no range)", 10 } } };
    if (innermost) {
        const struct snd_text *text = &m->trace->names.items[name];
        h->shown.name = (struct sonde_text){ text->bytes, text->length };
    }
    return m->holder_count++;
}

/* ------------------------------------------------------------- live memory */

static uint32_t new_live(struct sonde_memory *m)
{
    uint32_t slot;

    if (m->free_live != 0) {
        slot = m->free_live - 1;
        m->free_live = m->lives[slot].next_free;
        return slot;
    }
    if (!snd_grow(&m->lives, &m->live_room, m->live_count, sizeof *m->lives)) {
        give_up(m);
        return UINT32_MAX;
    }
    return m->live_count++;
}

static void change(struct sonde_memory *m, struct device *d, uint32_t holder, int64_t bytes,
                   bool more)
{
    struct holder *h = holder < m->holder_count ? &m->holders[holder] : NULL;

    d->now_bytes = snd_add(d->now_bytes, bytes);
    d->now_count += more ? 1 : UINT64_MAX;
    if (h) {
        h->now_bytes = snd_add(h->now_bytes, bytes);
        h->now_count += more ? 1 : UINT64_MAX;
    }
}

static bool give_back(struct sonde_memory *m, struct device *d, struct snd_key key, int64_t *bytes)
{
    uint32_t slot;

    if (!snd_map_get(&m->by_address, key, &slot))
        return false;
    struct live *live = &m->lives[slot];
    *bytes = live->bytes;
    change(m, d, live->holder, -live->bytes, false);
    snd_map_remove(&m->by_address, key);
    live->next_free = m->free_live;
    m->free_live = slot + 1;
    return true;
}

static void take(struct sonde_memory *m, struct device *d, uint32_t device, struct snd_key key,
                 int64_t bytes, const struct snd_open_range *innermost)
{
    int64_t old;

    /* An address that was live: its free is not in the trace. */
    give_back(m, d, key, &old);
    uint32_t slot = new_live(m);
    if (slot == UINT32_MAX)
        return;
    uint32_t holder = m->second ? find_holder(m, device, innermost) : UINT32_MAX;
    m->lives[slot] = (struct live){ .bytes = bytes, .holder = holder };
    if (!snd_map_put(&m->by_address, key, slot))
        give_up(m);
    change(m, d, holder, bytes, true);
}

/* ------------------------------------------------------------------- walks */

static void note_first(struct device *d, int64_t ns, const uint64_t *words, bool matched,
                       int64_t bytes)
{
    struct sonde_memory_device *s = &d->shown;

    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC) {
        s->allocs++;
        s->allocated_bytes += (uint64_t)bytes;
    } else {
        s->frees++;
        s->freed_bytes += (uint64_t)bytes;
        s->unmatched_frees += !matched;
        s->unmatched_free_bytes += matched ? 0 : (uint64_t)bytes;
    }
    if (d->now_bytes > s->peak_bytes) {
        s->peak_bytes = d->now_bytes;
        s->peak_time_ns = ns;
        d->peak_event = d->events;
    }
    d->last_ns = ns;
}

static void note_bucket(struct device *d, int64_t ns)
{
    int64_t  span = snd_sub(d->last_ns, d->first_ns);
    double   part = span > 0 ? (double)snd_sub(ns, d->first_ns) / (double)span : 0;
    uint32_t i = part > 0 && part < 1 ? (uint32_t)(part * BUCKETS) : part >= 1 ? BUCKETS - 1 : 0;
    struct bucket *b = &d->buckets[i];

    b->last.time_ns = ns;
    b->last.bytes = d->now_bytes;
    if (!b->any)
        memcpy(&b->first, &b->last, sizeof b->first);
    if (!b->any || d->now_bytes < b->least.bytes)
        memcpy(&b->least, &b->last, sizeof b->least);
    if (!b->any || d->now_bytes > b->most.bytes)
        memcpy(&b->most, &b->last, sizeof b->most);
    b->any = true;
}

static void note_second(struct sonde_memory *m, struct device *d, uint32_t device, int64_t ns)
{
    note_bucket(d, ns);
    if (d->events != d->peak_event)
        return;
    for (uint32_t i = 0; i < m->holder_count; i++) {
        struct holder *h = &m->holders[i];
        if (h->shown.device == device) {
            h->shown.peak_bytes = h->now_bytes;
            h->shown.peak_count = h->now_count;
        }
    }
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_memory *m = user;
    struct snd_key       key = { SND_PAIR(SND_LOW(words[1]), lane->process), words[2], 0 };
    uint32_t             index;
    bool                 matched = true;
    int64_t              bytes = snd_net_bytes(words);
    struct device       *d = find_device(m, SND_LOW(words[1]), ns, &index);

    if (!d)
        return;
    d->events++;
    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC) {
        take(m, d, index, key, bytes, innermost);
    } else {
        bytes = -bytes;
        matched = give_back(m, d, key, &bytes);
    }
    if (m->second)
        note_second(m, d, index, ns);
    else
        note_first(d, ns, words, matched, bytes);
}

/* Ready for the second walk: the same course once more. */
static bool rewind_all(struct sonde_memory *m)
{
    snd_map_release(&m->by_address);
    m->live_count = m->free_live = 0;
    m->second = true;
    for (uint32_t i = 0; i < m->device_count; i++) {
        struct device *d = &m->devices[i];
        d->shown.end_bytes = d->now_bytes;
        d->shown.end_count = d->now_count;
        d->now_bytes = 0;
        d->now_count = d->events = 0;
        d->buckets = calloc(BUCKETS, sizeof *d->buckets);
        if (!d->buckets)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ results */

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

/* The largest at the peak first, then the largest at the end. */
static int compare_holder(const void *x, const void *y)
{
    const struct sonde_memory_holder *a = &((const struct holder *)x)->shown;
    const struct sonde_memory_holder *b = &((const struct holder *)y)->shown;

    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    if (a->end_bytes != b->end_bytes)
        return a->end_bytes > b->end_bytes ? -1 : 1;
    size_t length = a->name.length < b->name.length ? a->name.length : b->name.length;
    int    order = memcmp(a->name.bytes, b->name.bytes, length);
    return order ? order : (a->name.length > b->name.length) - (a->name.length < b->name.length);
}

static bool finish(struct sonde_memory *m)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < m->holder_count; i++) {
        struct holder *h = &m->holders[i];
        h->shown.end_bytes = h->now_bytes;
        h->shown.end_count = h->now_count;
        /* Who held nothing at either moment is not a holder. */
        if (h->shown.peak_count > 0 || h->shown.end_count > 0)
            m->holders[kept++] = *h;
    }
    m->holder_count = kept;
    if (kept > 0)
        qsort(m->holders, kept, sizeof *m->holders, compare_holder);
    for (uint32_t i = 0; i < m->device_count; i++)
        for (uint32_t k = 0; k < BUCKETS; k++)
            if (!add_bucket(m, i, &m->devices[i].buckets[k]))
                return false;
    return true;
}

static enum sonde_status walk(struct sonde_memory *m, struct sonde_error *err)
{
    const struct snd_consumer consumer = {
        .user = m, .flops = SONDE_FLOPS_NONE, .any_flops = true, .memory = on_memory
    };
    enum sonde_status status = snd_assemble(&m->assembly, m->trace, SONDE_BY_TIME, &consumer, err);

    snd_assembly_release(&m->assembly);
    return status;
}

enum sonde_status sonde_memory_new(struct sonde_trace *trace, struct sonde_memory **out,
                                   struct sonde_error *err)
{
    *out = NULL;
    struct sonde_memory *m = calloc(1, sizeof *m);
    if (!m)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the memory report");
    m->trace = trace;
    enum sonde_status status = walk(m, err);
    if (status == SONDE_OK && !rewind_all(m))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the memory report");
    if (status == SONDE_OK && m->device_count > 0)
        status = walk(m, err);
    if (status == SONDE_OK && !finish(m))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the memory report");
    if (status == SONDE_OK)
        *out = m;
    else
        sonde_memory_free(m);
    return status;
}

void sonde_memory_free(struct sonde_memory *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->device_count; i++)
        free(m->devices[i].buckets);
    free(m->devices);
    free(m->holders);
    free(m->lives);
    free(m->points);
    snd_map_release(&m->by_device);
    snd_map_release(&m->by_holder);
    snd_map_release(&m->by_address);
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
