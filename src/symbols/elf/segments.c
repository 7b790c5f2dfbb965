/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/elf/segments.c - a sweep over starts and ends, with a heap of the open ranges. */
#include <stdlib.h>

#include "symbols/elf/segments.h"

struct heap {
    const struct snd_span **open; /* greatest rank first */
    uint32_t                count;
};

static int compare_starts(const void *a, const void *b)
{
    const struct snd_span *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void heap_push(struct heap *heap, const struct snd_span *span)
{
    uint32_t at = heap->count++;

    for (; at > 0 && heap->open[(at - 1) / 2]->rank < span->rank; at = (at - 1) / 2)
        heap->open[at] = heap->open[(at - 1) / 2];
    heap->open[at] = span;
}

static void heap_pop(struct heap *heap)
{
    const struct snd_span *last = heap->open[--heap->count];
    uint32_t               at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        child += child + 1 < heap->count && heap->open[child + 1]->rank > heap->open[child]->rank;
        if (heap->open[child]->rank <= last->rank)
            break;
        heap->open[at] = heap->open[child];
        at = child;
    }
    heap->open[at] = last;
}

/* Segments are at most twice the ranges: each begins where a range begins or ends. */
static void put(struct snd_segments *segments, uint64_t start, uint32_t item)
{
    if (segments->count > 0 && segments->list[segments->count - 1].start == start)
        segments->count--;
    if (segments->count > 0 && segments->list[segments->count - 1].item == item)
        return;
    segments->list[segments->count++] = (struct snd_segment){ start, item };
}

static void sweep(struct snd_segments *segments, struct heap *heap, const struct snd_span *spans,
                  uint32_t count)
{
    uint64_t at = 0;
    uint32_t next = 0;

    while (next < count || heap->count > 0) {
        while (heap->count > 0 && heap->open[0]->end <= at)
            heap_pop(heap);
        if (heap->count == 0) {
            if (next == count)
                break;
            at = spans[next].start;
        }
        for (; next < count && spans[next].start <= at; next++)
            if (spans[next].end > at)
                heap_push(heap, &spans[next]);
        if (heap->count == 0)
            continue;
        put(segments, at, heap->open[0]->item);
        uint64_t end = heap->open[0]->end;
        at = next < count && spans[next].start < end ? spans[next].start : end;
        put(segments, at, SND_NO_ITEM);
    }
}

bool snd_segments_build(struct snd_segments *segments, struct snd_span *spans, uint32_t count)
{
    struct heap heap = { malloc(((size_t)count + 1) * sizeof *heap.open), 0 };

    *segments = (struct snd_segments){ 0 };
    segments->list = malloc(((size_t)count * 2 + 2) * sizeof *segments->list);
    if (!heap.open || !segments->list) {
        free(heap.open);
        snd_segments_release(segments);
        return false;
    }
    bool is_sorted = true; /* symbol tables come sorted, and are large */
    for (uint32_t i = 1; is_sorted && i < count; i++)
        is_sorted = compare_starts(&spans[i - 1], &spans[i]) <= 0;
    if (!is_sorted)
        qsort(spans, count, sizeof *spans, compare_starts);
    sweep(segments, &heap, spans, count);
    free(heap.open);
    return true;
}

void snd_segments_release(struct snd_segments *segments)
{
    free(segments->list);
    *segments = (struct snd_segments){ 0 };
}

uint32_t snd_segments_find(const struct snd_segments *segments, uint64_t address)
{
    uint32_t low = 0, high = segments->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (segments->list[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? segments->list[low - 1].item : SND_NO_ITEM;
}
