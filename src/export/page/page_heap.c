/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps in the report page: trees of what was held and allocated, and what each stack held at moments. */
#include <stdlib.h>
#include <string.h>

#include "base/text/compare.h"
#include "export/page/page_trees.h"
#include "model/memory/heap_stacks.h"

/* What of a node a tree shows. */
struct measure {
    size_t bytes, blocks; /* in struct snd_heap_sums */
    bool   even_nothing;  /* nodes of no bytes, too */
};
#define SUM(member) offsetof(struct snd_heap_sums, member)
static const struct measure at_peak = { SUM(peak_bytes), SUM(peak_blocks), false };
static const struct measure left = { SUM(live_bytes), SUM(live_blocks), false };
static const struct measure all = { SUM(bytes), SUM(allocations), true };

struct heap_walk {
    const struct snd_heaps *heaps;
    const struct measure   *measure;
    snd_html_node_fn       *each; /* NULL: only counts */
    void                   *user;
    uint32_t               *numbers; /* by node: its number, in the order of the walk; or NULL */
    uint32_t                count;
};

static uint64_t sum_at(const struct snd_heap_sums *sums, size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)sums + offset, sizeof value);
    return value;
}

static void give_node(struct heap_walk *w, uint32_t at, struct sonde_text name, uint32_t depth)
{
    const struct snd_heap_node *node = snd_heaps_node(w->heaps, at);
    uint64_t                    total = sum_at(&node->sums, w->measure->bytes), self = total;

    if (w->numbers)
        w->numbers[at] = w->count;
    w->count++;
    if (!w->each)
        return;
    for (uint32_t c = node->first_child; c; c = snd_heaps_node(w->heaps, c)->next_sibling)
        self -= sum_at(&snd_heaps_node(w->heaps, c)->sums, w->measure->bytes);
    w->each(w->user,
            &(struct snd_html_node){
                .depth = depth,
                .name = name,
                .file = node->frame.file,
                .line = node->frame.line,
                .total_ns = (int64_t)total,
                .self_ns = (int64_t)self,
                .count = sum_at(&node->sums, w->measure->blocks),
                .kind = snd_ends_with_at(node->frame.file.bytes, node->frame.file.length, ".py")
                            ? SND_HTML_PYTHON
                            : SND_HTML_NATIVE });
}

/* The functions below a heap's root, which stands for all of it. */
static void walk_heap(struct heap_walk *w, const struct snd_heap *heap)
{
    const struct snd_heap_node *root = snd_heaps_node(w->heaps, heap->root);
    struct sonde_text           name = heap->is_mapped ? (struct sonde_text){ "mapped memory", 13 }
                                                       : (struct sonde_text){ "malloc", 6 };
    uint32_t                    depth = 0, at = root->first_child;

    if (sum_at(&root->sums, w->measure->bytes) == 0 && !w->measure->even_nothing)
        return;
    give_node(w, heap->root, name, depth++);
    while (at != 0) {
        const struct snd_heap_node *node = snd_heaps_node(w->heaps, at);
        bool holds = sum_at(&node->sums, w->measure->bytes) > 0 || w->measure->even_nothing;
        if (holds)
            give_node(w, at, node->frame.function, depth);
        if (holds && node->first_child) {
            at = node->first_child;
            depth++;
            continue;
        }
        for (; at != heap->root && node->next_sibling == 0; depth--) {
            at = node->parent;
            node = snd_heaps_node(w->heaps, at);
        }
        at = at == heap->root ? 0 : node->next_sibling;
    }
}

static void walk_all(struct heap_walk *w)
{
    const struct snd_heap *heap;

    for (uint32_t i = 0; (heap = snd_heaps_heap(w->heaps, i)) != NULL; i++)
        walk_heap(w, heap);
}

static enum sonde_status walk_heaps(struct sonde_trace *trace, const struct measure *measure,
                                    snd_html_node_fn *each, void *user, struct sonde_error *err)
{
    struct snd_heaps *heaps;
    enum sonde_status st = snd_heaps_new(trace, true, &heaps, err);

    if (st != SONDE_OK)
        return st;
    walk_all(&(struct heap_walk){ .heaps = heaps, .measure = measure, .each = each, .user = user });
    snd_heaps_free(heaps);
    return SONDE_OK;
}

enum sonde_status snd_html_heap_peak(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                     struct sonde_error *err)
{
    return walk_heaps(trace, &at_peak, each, user, err);
}

enum sonde_status snd_html_heap_left(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                     struct sonde_error *err)
{
    return walk_heaps(trace, &left, each, user, err);
}

enum sonde_status snd_html_heap_all(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                    struct sonde_error *err)
{
    return walk_heaps(trace, &all, each, user, err);
}

/* ------------------------------------------------------------------- moments */

struct moments {
    struct snd_html        *page;
    const struct snd_heaps *heaps;
    const uint32_t         *numbers; /* by node */
    struct snd_html_block   moments, held;
};

static void put_shares(struct moments *m, const struct snd_heap *heap, struct snd_map *by_stack,
                       uint32_t number, uint32_t from)
{
    const struct snd_heap_history *history = &heap->history;

    for (uint32_t i = from; i < history->moments[number].end; i++) {
        const struct snd_heap_share *share = &history->shares[i];
        uint32_t                     row;
        if (!snd_map_get(by_stack, (struct snd_key){ share->stack, 0, 0 }, &row))
            continue;
        snd_html_value(&m->held, 0, m->numbers[heap->root]);
        snd_html_value(&m->held, 1, number);
        snd_html_value(&m->held, 2, m->numbers[snd_heaps_row(m->heaps, row)->node]);
        snd_html_value(&m->held, 3, share->blocks);
        snd_html_value(&m->held, 4, share->bytes);
        snd_html_entry(m->page, &m->held);
    }
}

static void put_heap(struct moments *m, const struct snd_heap *heap)
{
    struct snd_map by_stack = { 0 };
    int64_t        before = 0;

    for (uint32_t i = heap->first; i < heap->first + heap->count; i++)
        m->page->failed |=
            !snd_map_put(&by_stack, (struct snd_key){ snd_heaps_row(m->heaps, i)->stack, 0, 0 }, i);
    for (uint32_t i = 0; !m->page->failed && i < heap->history.moment_count; i++) {
        const struct snd_heap_moment *moment = &heap->history.moments[i];
        snd_html_value(&m->moments, 0, m->numbers[heap->root]);
        snd_html_value(&m->moments, 1, heap->process);
        snd_html_signed(&m->moments, 2, snd_sub(moment->at_ns, before));
        snd_html_signed(&m->moments, 3, snd_sub(moment->at_ns, moment->since_ns));
        snd_html_value(&m->moments, 4, moment->bytes);
        snd_html_value(&m->moments, 5, moment->highest);
        snd_html_entry(m->page, &m->moments);
        put_shares(m, heap, &by_stack, i, i > 0 ? moment[-1].end : 0);
        before = moment->at_ns;
    }
    snd_map_release(&by_stack);
}

enum sonde_status snd_html_heap_moments(struct snd_html *page, struct sonde_error *err)
{
    struct snd_heaps      *heaps;
    const struct snd_heap *heap;
    enum sonde_status      st = snd_heaps_new(page->trace, true, &heaps, err);

    if (st != SONDE_OK)
        return st;
    uint32_t      *numbers = calloc(snd_heaps_node_count(heaps), sizeof *numbers);
    struct moments m = { .page = page, .heaps = heaps, .numbers = numbers };
    if (!numbers || !snd_html_block_init(&m.moments, "MOME", 6) ||
        !snd_html_block_init(&m.held, "HELD", 5))
        page->failed = true;
    else
        walk_all(&(struct heap_walk){ .heaps = heaps, .measure = &all, .numbers = numbers });
    for (uint32_t i = 0; !page->failed && (heap = snd_heaps_heap(heaps, i)); i++)
        put_heap(&m, heap);
    if (!page->failed) {
        snd_html_flush(page, &m.moments);
        snd_html_flush(page, &m.held);
    }
    snd_html_block_release(&m.moments);
    snd_html_block_release(&m.held);
    free(numbers);
    snd_heaps_free(heaps);
    return SONDE_OK;
}
