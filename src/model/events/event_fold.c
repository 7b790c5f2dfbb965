/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events/event_fold.c - from ranges as recorded to torch's list: wrappers fold, Python's functions
 * find their callers, rows are put in order of their start.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/large_pages.h"
#include "base/data/sort.h"
#include "model/events/event_rows.h"

/* Set in the count of children: it is folded into its parent. */
#define FOLDED ((uint32_t)1 << 31)

/* --------------------------------------------------------------------- folding */

static bool is_async(const struct sonde_events *e, uint32_t row)
{
    return snd_kind_of(e, row)->flags & SONDE_EVENT_IS_ASYNC;
}

/* Past asynchronous ranges, which have no children, and folded ones. */
static int32_t find_parent(const struct sonde_events *e, const uint32_t *children, int32_t at)
{
    while (at != -1 && (is_async(e, (uint32_t)at) || (children[at] & FOLDED)))
        at = e->rows.parent[at];
    return at;
}

/* The child's extra is free to be its parent's. */
static void fold_extra(struct sonde_events *e, uint32_t into, uint32_t child)
{
    struct snd_row_extra        x = *snd_extra_of(e, into);
    const struct snd_row_extra *from = snd_extra_of(e, child);
    uint32_t                   *extra = e->rows.extra;

    x.child_cpu_bytes = from->child_cpu_bytes;
    x.child_device_bytes = from->child_device_bytes;
    x.self_device_ns = snd_add(x.self_device_ns, from->self_device_ns);
    if (extra[into] == 0)
        extra[into] = extra[child];
    if (extra[into] != 0)
        e->extras[extra[into] - 1] = x;
}

/* Takes the place of the only child: its children become the range's own. */
static bool fold(struct sonde_events *e, uint32_t *children, uint32_t into, uint32_t child)
{
    struct snd_event_rows    *rows = &e->rows;
    struct snd_row_kind       kind = *snd_kind_of(e, into);
    const struct snd_row_kind from = *snd_kind_of(e, child);
    int64_t                   child_total = snd_sub(rows->end_ns[child], rows->start_ns[child]);
    int64_t                   inside = snd_sub(child_total, rows->self_ns[child]);

    children[into] = children[child];
    children[child] |= FOLDED;
    rows->self_ns[into] = snd_sub(snd_sub(rows->end_ns[into], rows->start_ns[into]), inside);
    fold_extra(e, into, child);
    if (kind.shapes == 0)
        kind.shapes = from.shapes;
    if (kind.stack == 0)
        kind.stack = from.stack;
    if (kind.module == 0)
        kind.module = from.module;
    if (kind.flops <= 0 && e->options.flops != SONDE_FLOPS_TORCH) {
        kind.flops = from.flops;
        kind.macs = from.macs;
        kind.moved_bytes = from.moved_bytes;
    }
    uint32_t number = snd_kind_number(e, &kind);
    if (number != UINT32_MAX)
        rows->kind[into] = number;
    return number != UINT32_MAX;
}

static void count_children(struct sonde_events *e, uint32_t *children)
{
    int32_t *parent = e->rows.parent;

    for (uint32_t i = 0; i < e->rows.count; i++) {
        if (is_async(e, i))
            continue;
        parent[i] = find_parent(e, children, parent[i]);
        if (parent[i] != -1)
            children[parent[i]]++;
    }
}

static bool fold_children(struct sonde_events *e, uint32_t *children)
{
    int32_t *parent = e->rows.parent;

    for (uint32_t i = 0; i < e->rows.count; i++) { /* a parent comes before its children */
        if (is_async(e, i))
            continue;
        parent[i] = find_parent(e, children, parent[i]);
        if (parent[i] == -1 || children[parent[i]] != 1)
            continue;
        const struct snd_row_kind *above = snd_kind_of(e, (uint32_t)parent[i]);
        const struct snd_row_kind *own = snd_kind_of(e, i);
        if (above->is_op && own->is_op && /* snd_range_folds() */
            above->shown_name == own->shown_name && !fold(e, children, (uint32_t)parent[i], i))
            return false;
    }
    return true;
}

/* Owners are rows, as parents are. */
static void move_owners(struct sonde_events *e, const uint32_t *places)
{
    for (uint32_t i = 0; i < e->gpu_count; i++)
        if (e->gpus[i].owner >= 0)
            e->gpus[i].owner = (int32_t)places[e->gpus[i].owner];
}

bool snd_events_drop(struct sonde_events *e, const bool *drops)
{
    size_t    size = ((size_t)e->rows.count + 1) * sizeof(uint32_t);
    uint32_t *order = snd_pages_take(size), *places = snd_pages_take(size), count = 0;
    bool      good = order && places;

    for (uint32_t i = 0; good && i < e->rows.count; i++) {
        places[i] = count;
        if (!drops[i])
            order[count++] = i;
    }
    if (good && count < e->rows.count) {
        good = snd_rows_reorder(&e->rows, order, count, places);
        move_owners(e, places);
    }
    snd_pages_free(order, size);
    snd_pages_free(places, size);
    return good;
}

static bool drop_folded(struct sonde_events *e, const uint32_t *children)
{
    size_t size = ((size_t)e->rows.count + 1) * sizeof(bool);
    bool  *drops = snd_pages_take(size);

    for (uint32_t i = 0; drops && i < e->rows.count; i++)
        drops[i] = children[i] & FOLDED;
    bool good = drops && snd_events_drop(e, drops);
    snd_pages_free(drops, size);
    return good;
}

/* What a folded range launched is its parent's. */
static void lift_work(struct sonde_events *e, const uint32_t *children)
{
    for (uint32_t i = 0; i < e->gpu_count; i++)
        e->gpus[i].owner = find_parent(e, children, e->gpus[i].owner);
}

bool snd_events_fold(struct sonde_events *e)
{
    size_t size = ((size_t)e->rows.count + 1) * sizeof(uint32_t);

    if (!e->may_fold && !e->has_async)
        return true;
    uint32_t *children = snd_pages_take(size);
    if (!children)
        return false;
    count_children(e, children);
    bool good = fold_children(e, children);
    for (uint32_t i = 0; i < e->rows.count; i++)
        if (is_async(e, i))
            e->rows.parent[i] = -1;
    lift_work(e, children);
    good = good && drop_folded(e, children);
    snd_pages_free(children, size);
    return good;
}

/* ----------------------------------------------------------- Python's functions */

static struct snd_key key_of_call(const struct sonde_events *e, uint32_t row, uint32_t id)
{
    return (struct snd_key){ snd_kind_of(e, row)->process, id, 0 };
}

#define TIED_MOST 4096 /* calls in calls that begin at one moment */

/* Ends and durations become nanoseconds one by one, so that of two calls of one moment the outer one may begin a nanosecond late. */
static void even_out(struct sonde_events *e, uint32_t caller, uint32_t callee)
{
    int64_t *start = e->rows.start_ns;
    int32_t  above = e->rows.parent[caller];

    if (snd_sub(start[caller], start[callee]) == 1 &&
        (above == -1 || start[above] <= start[callee])) {
        start[caller] = start[callee];
        e->rows.self_ns[caller] = snd_add(e->rows.self_ns[caller], 1);
    }
}

/* Ids are what a file says: a call that begins later is not the one that it was made in, and none is in itself. */
static bool may_call(const struct sonde_events *e, uint32_t caller, uint32_t callee)
{
    const int64_t *start = e->rows.start_ns;
    int32_t        at = (int32_t)caller;

    if (start[caller] != start[callee])
        return start[caller] < start[callee];
    for (int i = 0; i < TIED_MOST; i++) {
        if (at == (int32_t)callee)
            return false;
        if (at == -1 || start[at] != start[callee])
            return true;
        at = e->rows.parent[at];
    }
    return false;
}

/* A call is recorded when it returns, and so after those that it made. */
bool snd_events_link_functions(struct sonde_events *e)
{
    struct snd_map calls = { 0 };
    bool           good = true;
    uint32_t       count = e->call_count > 0 ? e->rows.count : 0;

    for (uint32_t i = 0; i < count && good; i++)
        if (snd_is_function(e, i))
            good = snd_map_put(&calls, key_of_call(e, i, e->calls[e->rows.extra[i] - 1].id), i);
    for (uint32_t i = 0; i < count && good; i++) {
        uint32_t parent;
        if (!snd_is_function(e, i))
            continue;
        struct snd_row_call call = e->calls[e->rows.extra[i] - 1];
        if (call.parent == 0 || call.parent == call.id ||
            !snd_map_get(&calls, key_of_call(e, i, call.parent), &parent))
            continue;
        even_out(e, parent, i);
        if (!may_call(e, parent, i))
            continue;
        int64_t total = snd_sub(e->rows.end_ns[i], e->rows.start_ns[i]);
        e->rows.self_ns[parent] = snd_sub(e->rows.self_ns[parent], total);
        e->rows.parent[i] = (int32_t)parent;
    }
    snd_map_release(&calls);
    return good;
}

/* --------------------------------------------------------------------- order */

struct place {
    int64_t  start_ns, end_ns;
    uint32_t row;
};

static int compare_places(const void *x, const void *y)
{
    const struct place *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->start_ns, b->start_ns), SND_FALLING(a->end_ns, b->end_ns),
                     SND_RISING(a->row, b->row));
}

/* By start, the longer one first, as torch's list has them. */
static bool is_sorted(const struct snd_event_rows *rows)
{
    for (uint32_t i = 1; i < rows->count; i++)
        if (rows->start_ns[i] < rows->start_ns[i - 1] ||
            (rows->start_ns[i] == rows->start_ns[i - 1] && rows->end_ns[i] > rows->end_ns[i - 1]))
            return false;
    return true;
}

/* From the first row that starts before its neighbour on; before it only those that start together. */
static void sort_places(struct place *places, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (places[i].start_ns < places[i - 1].start_ns) {
            snd_sort(places, count, sizeof *places, compare_places);
            return;
        }
    }
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && places[end].start_ns == places[i].start_ns;)
            end++;
        snd_sort(places + i, end - i, sizeof *places, compare_places);
    }
}

/*
 * Rows came by start already, so mostly nothing moves: only where ranges start together, Python's
 * functions, and a chunk that was read late, as the clock of a damaged file may make it.
 */
bool snd_events_sort(struct sonde_events *e)
{
    const struct snd_event_rows *rows = &e->rows;
    size_t                       count = rows->count, size = (count + 1) * sizeof(uint32_t);
    size_t                       places_size = (count + 1) * sizeof(struct place);

    if (is_sorted(rows))
        return true;
    struct place *places = snd_pages_take(places_size);
    uint32_t     *order = snd_pages_take(size), *after = snd_pages_take(size);
    bool          good = places && order && after;
    for (uint32_t i = 0; good && i < count; i++)
        places[i] = (struct place){ rows->start_ns[i], rows->end_ns[i], i };
    if (good)
        sort_places(places, (uint32_t)count);
    for (uint32_t i = 0; good && i < count; i++) {
        order[i] = places[i].row;
        after[places[i].row] = i;
    }
    good = good && snd_rows_reorder(&e->rows, order, (uint32_t)count, after);
    if (good)
        move_owners(e, after);
    snd_pages_free(places, places_size);
    snd_pages_free(order, size);
    snd_pages_free(after, size);
    return good;
}
