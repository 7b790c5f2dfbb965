/* SPDX-License-Identifier: Apache-2.0 */
#include "import/out/sorted_items.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/data/map.h"
#include "base/files/fd_io.h"
#include "base/files/folders.h"

#define ITEMS_MOST 49152u              /* in memory: 3 MiB, and as much to sort them */
#define WINDOW_BYTES ((size_t)4 << 20) /* of all runs that are merged */
#define WAYS_MOST 256u                 /* runs merged at once */

static_assert(sizeof(struct snd_item) == 56, "no holes");

bool snd_items_begin(struct snd_items *items)
{
    *items = (struct snd_items){ .file = -1 };
    items->items = malloc(ITEMS_MOST * sizeof *items->items);
    items->spare = malloc(ITEMS_MOST * sizeof *items->items);
    return items->items && items->spare;
}

void snd_items_release(struct snd_items *items)
{
    free(items->items);
    free(items->spare);
    free(items->runs);
    if (items->file >= 0)
        close(items->file);
}

/* --------------------------------------------------------------------- order */

static inline bool is_before(const struct snd_item *x, const struct snd_item *y)
{
    if (x->lane != y->lane)
        return x->lane < y->lane;
    if (x->start != y->start)
        return x->start < y->start;
    if (x->rank != y->rank)
        return x->rank < y->rank;
    return x->index < y->index;
}

static void merge_two(const struct snd_item *from, uint32_t begin, uint32_t middle, uint32_t end,
                      struct snd_item *to)
{
    uint32_t left = begin, right = middle;

    for (uint32_t i = begin; i < end; i++)
        to[i] = right == end || (left < middle && !is_before(&from[right], &from[left]))
                    ? from[left++]
                    : from[right++];
}

/* Where the ascending run that begins there ends. */
static uint32_t find_run(const struct snd_item *items, uint32_t begin, uint32_t count)
{
    uint32_t end = begin + 1;

    while (end < count && !is_before(&items[end], &items[end - 1]))
        end++;
    return end;
}

/* Merges ascending runs, of which profilers write long ones, until there is one. */
static void sort(struct snd_items *items)
{
    for (;;) {
        uint32_t begin = 0, runs = 0;
        if (items->count == 0 || find_run(items->items, 0, items->count) == items->count)
            return;
        while (begin < items->count) {
            uint32_t middle = find_run(items->items, begin, items->count);
            uint32_t end = middle < items->count ? find_run(items->items, middle, items->count)
                                                 : middle;
            merge_two(items->items, begin, middle, end, items->spare);
            begin = end;
            runs++;
        }
        struct snd_item *sorted = items->spare;
        items->spare = items->items;
        items->items = sorted;
        if (runs == 1)
            return;
    }
}

/* ---------------------------------------------------------------------- runs */

static bool add_run(struct snd_items *items, uint64_t at, uint64_t end)
{
    if (!snd_grow(&items->runs, &items->run_room, items->run_count, sizeof *items->runs)) {
        items->failed_memory = true;
        return false;
    }
    items->runs[items->run_count++] = (struct snd_run){ at, end };
    return true;
}

static uint64_t file_end(const struct snd_items *items)
{
    return items->run_count > 0 ? items->runs[items->run_count - 1].end : 0;
}

static bool write_out(struct snd_items *items, const struct snd_item *from, size_t count)
{
    if (items->file < 0)
        items->file = snd_temporary_file();
    items->failed_file |= items->file < 0 ||
                          !snd_write_all(items->file, from, count * sizeof *from);
    return !items->failed_file;
}

static bool spill(struct snd_items *items)
{
    uint64_t end = file_end(items);

    sort(items);
    if (!write_out(items, items->items, items->count) || !add_run(items, end, end + items->count))
        return false;
    items->count = 0;
    return true;
}

bool snd_items_add(struct snd_items *items, const struct snd_item *item)
{
    if (items->count == ITEMS_MOST && !spill(items))
        return false;
    items->items[items->count] = *item;
    items->items[items->count++].index = items->next_index++;
    return true;
}

/* --------------------------------------------------------------------- merge */

struct stream {
    struct snd_item *items; /* a part of the window */
    uint32_t         at, count;
    struct snd_run   rest;
};

static bool refill(struct snd_items *items, struct stream *s, uint32_t room)
{
    uint64_t left = s->rest.end - s->rest.at;

    s->at = 0;
    s->count = left < room ? (uint32_t)left : room;
    size_t bytes = s->count * sizeof *s->items;
    if (bytes > 0 &&
        snd_read_at(items->file, s->rest.at * sizeof *s->items, s->items, bytes) != bytes) {
        items->failed_file = true;
        return false;
    }
    s->rest.at += s->count;
    return true;
}

/* Restores the heap's order from `at` down. */
static void sift(struct stream **heap, uint32_t count, uint32_t at)
{
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (is_before(&heap[child]->items[heap[child]->at],
                          &heap[least]->items[heap[least]->at]))
                least = child;
        if (least == at)
            return;
        struct stream *moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

/* Merges the runs from `first` on, `count` of them. */
static bool merge_runs(struct snd_items *items, uint32_t first, uint32_t count,
                       snd_items_take *take, void *user)
{
    struct stream    streams[WAYS_MOST];
    struct stream   *heap[WAYS_MOST];
    uint32_t         room = (uint32_t)(WINDOW_BYTES / sizeof(struct snd_item)) / count, open = 0;
    struct snd_item *window = malloc((size_t)room * count * sizeof *window);

    if (!window) {
        items->failed_memory = true;
        return false;
    }
    for (uint32_t i = 0; i < count && !items->failed_file; i++) {
        streams[i] = (struct stream){ .items = window + (size_t)i * room,
                                      .rest = items->runs[first + i] };
        if (refill(items, &streams[i], room) && streams[i].count > 0)
            heap[open++] = &streams[i];
    }
    for (uint32_t i = open; i-- > 0;)
        sift(heap, open, i);
    while (open > 0 && !items->failed_file) {
        struct stream *s = heap[0];
        take(user, &s->items[s->at++]);
        if (s->at == s->count && refill(items, s, room) && s->count == 0)
            heap[0] = heap[--open];
        sift(heap, open, 0);
    }
    free(window);
    return !items->failed_file;
}

struct rewriter {
    struct snd_items *items;
};

/* Collects what is merged, to be a longer run. */
static void take_again(void *user, const struct snd_item *item)
{
    struct snd_items *items = ((struct rewriter *)user)->items;

    if (items->count == ITEMS_MOST) {
        write_out(items, items->items, items->count);
        items->count = 0;
    }
    items->items[items->count++] = *item;
}

bool snd_items_walk(struct snd_items *items, snd_items_take *take, void *user)
{
    if (items->run_count == 0) {
        sort(items);
        for (uint32_t i = 0; i < items->count; i++)
            take(user, &items->items[i]);
        return true;
    }
    if (items->count > 0 && !spill(items))
        return false;
    free(items->spare);
    items->spare = NULL;
    uint32_t first = 0;
    while (items->run_count - first > WAYS_MOST) {
        struct rewriter rewriter = { items };
        uint64_t        begin = file_end(items), length = 0;
        for (uint32_t i = 0; i < WAYS_MOST; i++)
            length += items->runs[first + i].end - items->runs[first + i].at;
        if (!merge_runs(items, first, WAYS_MOST, take_again, &rewriter) ||
            !write_out(items, items->items, items->count) || !add_run(items, begin, begin + length))
            return false;
        items->count = 0;
        first += WAYS_MOST;
    }
    free(items->items);
    items->items = NULL;
    return merge_runs(items, first, items->run_count - first, take, user);
}
