/* SPDX-License-Identifier: Apache-2.0 */
/* native/perf/perf_drain.c - takes the records out of the rings, in the order of their times. */
#include <string.h>

#include "native/perf/perf_events.h"

#define TAIL_STEP \
    ((uint64_t)1 << 16) /* bytes that are read between two updates of the ring's tail */

static uint64_t now_head(const struct snd_perf_ring *ring)
{
    const struct perf_event_mmap_page *page = (const void *)ring->map;

    return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static void tell_tail(struct snd_perf_ring *ring)
{
    struct perf_event_mmap_page *page = (void *)ring->map;

    __atomic_store_n(&page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

static void copy_out(const struct snd_perf *p, const struct snd_perf_ring *ring, uint64_t at,
                     void *out, size_t size)
{
    size_t from = (size_t)(at & (p->ring_bytes - 1)), first = p->ring_bytes - from;

    if (first > size)
        first = size;
    memcpy(out, ring->data + from, first);
    memcpy((uint8_t *)out + first, ring->data, size - first);
}

/* Samples have it after address, pid and tid; others at their end, before the event's id. */
static uint64_t time_of(const uint8_t *record)
{
    struct perf_event_header head;
    uint64_t                 ns = 0;

    memcpy(&head, record, sizeof head);
    size_t at = head.type == PERF_RECORD_SAMPLE ? sizeof head + 16 : (size_t)head.size - 16;
    if (head.size >= sizeof head + 16 && at + sizeof ns <= head.size)
        memcpy(&ns, record + at, sizeof ns);
    return ns;
}

/* Finds the record at tail. */
static void look(const struct snd_perf *p, struct snd_perf_ring *ring)
{
    struct perf_event_header head;

    ring->next = NULL;
    if (ring->head - ring->tail < sizeof head)
        return;
    copy_out(p, ring, ring->tail, &head, sizeof head);
    if (head.size < sizeof head || head.size > ring->head - ring->tail) {
        ring->tail = ring->head; /* cannot be: go on with what comes */
        return;
    }
    size_t from = (size_t)(ring->tail & (p->ring_bytes - 1));
    ring->next = ring->data + from;
    if (from + head.size > p->ring_bytes) {
        copy_out(p, ring, ring->tail, ring->joined, head.size);
        ring->next = ring->joined;
    }
    ring->next_ns = time_of(ring->next);
}

void snd_perf_drain(struct snd_perf *p, uint64_t until_ns, snd_perf_take *take, void *user)
{
    p->is_late = false;
    for (uint32_t i = 0; i < p->ring_count; i++) {
        p->rings[i].head = now_head(&p->rings[i]);
        p->is_late |= p->rings[i].head - p->rings[i].tail > p->ring_bytes / 2;
        look(p, &p->rings[i]);
    }
    for (;;) {
        struct snd_perf_ring *first = NULL;
        for (uint32_t i = 0; i < p->ring_count; i++)
            if (p->rings[i].next && (!first || p->rings[i].next_ns < first->next_ns))
                first = &p->rings[i];
        if (!first || first->next_ns > until_ns)
            break;
        struct perf_event_header head;
        memcpy(&head, first->next, sizeof head);
        take(user, (const struct perf_event_header *)(const void *)first->next, first->next_ns);
        uint64_t before = first->tail;
        first->tail += head.size;
        if ((before ^ first->tail) & ~(TAIL_STEP - 1))
            tell_tail(first);
        look(p, first);
    }
    for (uint32_t i = 0; i < p->ring_count; i++)
        tell_tail(&p->rings[i]);
}
