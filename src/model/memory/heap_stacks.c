/* SPDX-License-Identifier: Apache-2.0 */
#include "model/memory/heap_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "read/reader.h"

#define SAMPLED_PROCESS 2u /* added to `other` in the HEAP_SAMPLED tally of the process */

struct snd_heaps {
    struct sonde_trace   *trace;
    struct snd_heap      *heaps;
    struct snd_heap_row  *rows;
    struct snd_heap_node *nodes; /* 0 is none */
    uint32_t              heap_count, heap_room, row_count, row_room, node_count, node_room;
    struct snd_map        children; /* (parent and line, function, file) to a node */
};

/* ---------------------------------------------------------------- the tallies */

static struct sonde_tally_row find_sampled(const struct sonde_trace *trace, uint32_t process,
                                           uint32_t key, uint32_t other)
{
    struct sonde_tally_row row;

    for (uint32_t n = 0; sonde_trace_tally(trace, process, n, &row); n++)
        if (row.kind == SND_TALLY_HEAP_SAMPLED && row.key == key && row.other == other)
            return row;
    return (struct sonde_tally_row){ .kind = 0 };
}

/* What a stack held at the process's peak: kept when it changed, else what it holds still. */
static bool is_share_kept(const uint64_t *words, const uint64_t *process)
{
    return process[SND_HEAP_PROCESS_RISING] == 0 &&
           words[SND_HEAP_PEAK_NUMBER] == process[SND_HEAP_PROCESS_PEAKS];
}

static uint64_t less(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

static struct snd_heap_sums read_sums(const uint64_t *words, const uint64_t *process)
{
    struct snd_heap_sums sums = {
        .allocations = words[SND_HEAP_ALLOCATIONS],
        .bytes = words[SND_HEAP_BYTES],
        .live_blocks = less(words[SND_HEAP_ALLOCATIONS], words[SND_HEAP_FREES]),
        .live_bytes = less(words[SND_HEAP_BYTES], words[SND_HEAP_FREED_BYTES]),
        .temporary = words[SND_HEAP_TEMPORARY],
    };
    bool kept = is_share_kept(words, process);

    sums.peak_bytes = kept ? words[SND_HEAP_PEAK_BYTES] : sums.live_bytes;
    sums.peak_blocks = kept ? words[SND_HEAP_PEAK_BLOCKS] : sums.live_blocks;
    return sums;
}

void snd_heap_sums_add(struct snd_heap_sums *to, const struct snd_heap_sums *from)
{
    to->allocations += from->allocations;
    to->bytes += from->bytes;
    to->live_blocks += from->live_blocks;
    to->live_bytes += from->live_bytes;
    to->peak_blocks += from->peak_blocks;
    to->peak_bytes += from->peak_bytes;
    to->temporary += from->temporary;
    to->at_blocks += from->at_blocks;
    to->at_bytes += from->at_bytes;
}

static bool add_row(struct snd_heaps *h, const struct sonde_tally_row *tally,
                    const struct sonde_tally_row *process)
{
    if (!snd_grow(&h->rows, &h->row_room, h->row_count, sizeof *h->rows))
        return false;
    struct snd_heap     *heap = &h->heaps[h->heap_count - 1];
    struct snd_heap_row *row = &h->rows[h->row_count++];
    *row = (struct snd_heap_row){ .heap = h->heap_count - 1,
                                  .stack = tally->key,
                                  .sums = read_sums(tally->words, process->words) };
    snd_heap_sums_add(&heap->sums, &row->sums);
    heap->count++;
    return true;
}

/* By stack, of one process: the variance of its sampled counts. */
static bool read_errors(struct snd_heaps *h, struct snd_heap *heap, uint32_t other)
{
    struct snd_map         by_stack = { 0 };
    struct sonde_tally_row row;
    bool                   ok = true;
    uint32_t               at;

    for (uint32_t i = 0; ok && i < heap->count; i++)
        ok = snd_map_put(&by_stack, (struct snd_key){ h->rows[heap->first + i].stack, 0, 0 },
                         heap->first + i);
    for (uint32_t n = 0; ok && sonde_trace_tally(h->trace, heap->process, n, &row); n++) {
        if (row.kind != SND_TALLY_HEAP_SAMPLED || row.other != other ||
            !snd_map_get(&by_stack, (struct snd_key){ row.key, 0, 0 }, &at))
            continue;
        h->rows[at].samples = row.words[SND_HEAP_SAMPLED_SAMPLES];
        h->rows[at].errors.bytes = snd_heap_half_interval(row.words[SND_HEAP_SAMPLED_VARIANCE]);
        h->rows[at].errors.live_bytes =
            snd_heap_half_interval(row.words[SND_HEAP_SAMPLED_LIVE_VARIANCE]);
    }
    snd_map_release(&by_stack);
    row = find_sampled(h->trace, heap->process, 0, other + SAMPLED_PROCESS);
    heap->samples = row.words[SND_HEAP_SAMPLED_SAMPLES];
    heap->errors = (struct snd_heap_errors){
        snd_heap_half_interval(row.words[SND_HEAP_SAMPLED_VARIANCE]),
        snd_heap_half_interval(row.words[SND_HEAP_SAMPLED_LIVE_VARIANCE]),
        snd_heap_half_interval(row.words[SND_HEAP_SAMPLED_PEAK_VARIANCE]),
    };
    return ok;
}

static int compare_rows(const void *left, const void *right)
{
    const struct snd_heap_row *x = left, *y = right;

    return SND_ORDER(SND_FALLING(x->sums.peak_bytes, y->sums.peak_bytes),
                     SND_FALLING(x->sums.bytes, y->sums.bytes), SND_RISING(x->stack, y->stack));
}

static bool add_heap(struct snd_heaps *h, uint32_t p, const struct sonde_tally_row *process)
{
    struct sonde_tally_row row;

    if (!snd_grow(&h->heaps, &h->heap_room, h->heap_count, sizeof *h->heaps))
        return false;
    struct snd_heap *heap = &h->heaps[h->heap_count++];
    *heap = (struct snd_heap){
        .process = p,
        .is_mapped = process->other == 1,
        .period = process->words[SND_HEAP_PROCESS_PERIOD],
        .unknown_frees = process->words[SND_HEAP_PROCESS_UNKNOWN],
        .first = h->row_count,
    };
    for (uint32_t n = 0; sonde_trace_tally(h->trace, p, n, &row); n++)
        if (row.kind == SND_TALLY_HEAP && row.other == process->other &&
            row.words[SND_HEAP_ALLOCATIONS] > 0 && !add_row(h, &row, process))
            return false;
    heap->sums.peak_bytes = process->words[SND_HEAP_PROCESS_PEAK]; /* what the shares add up to */
    snd_sort(h->rows + heap->first, heap->count, sizeof *h->rows, compare_rows);
    return (heap->period == 0 || read_errors(h, heap, process->other)) &&
           snd_heap_history_read(h->trace, p, heap->is_mapped, &heap->history);
}

/* By stack: what it held at the moment. */
static bool find_shares(struct snd_heaps *h, struct snd_heap *heap)
{
    const struct snd_heap_share *shares = heap->history.shares;
    struct snd_map               by_stack = { 0 };
    bool                         ok = true;
    uint32_t                     at;

    for (uint32_t i = 0; ok && i < heap->count; i++)
        ok = snd_map_put(&by_stack, (struct snd_key){ h->rows[heap->first + i].stack, 0, 0 },
                         heap->first + i);
    for (uint32_t i = 0; ok && i < heap->at->end; i++) {
        if (!snd_map_get(&by_stack, (struct snd_key){ shares[i].stack, 0, 0 }, &at))
            continue;
        h->rows[at].sums.at_blocks = shares[i].blocks;
        h->rows[at].sums.at_bytes = shares[i].bytes;
    }
    snd_map_release(&by_stack);
    return ok;
}

static bool find_held(struct snd_heaps *h, struct snd_heap *heap, int64_t at_ns)
{
    heap->at = snd_heap_history_at(&heap->history, at_ns);
    if (heap->at && !find_shares(h, heap))
        return false;
    for (uint32_t i = 0; i < heap->count; i++) {
        struct snd_heap_sums *sums = &h->rows[heap->first + i].sums;
        if (!heap->at) { /* after the last moment: as it stayed */
            sums->at_blocks = sums->live_blocks;
            sums->at_bytes = sums->live_bytes;
        }
        heap->sums.at_blocks += sums->at_blocks;
        heap->sums.at_bytes += sums->at_bytes;
    }
    return true;
}

static bool gather(struct snd_heaps *h, int64_t at_ns)
{
    struct sonde_tally_row row;

    for (uint32_t p = 0; p < h->trace->process_count; p++)
        for (uint32_t n = 0; sonde_trace_tally(h->trace, p, n, &row); n++)
            if (row.kind == SND_TALLY_HEAP_PROCESS && row.other < SAMPLED_PROCESS &&
                row.words[SND_HEAP_PROCESS_ALLOCATIONS] > 0 && !add_heap(h, p, &row))
                return false;
    for (uint32_t i = 0; at_ns != 0 && i < h->heap_count; i++)
        if (!find_held(h, &h->heaps[i], at_ns))
            return false;
    return true;
}

/* ------------------------------------------------------------------ the trees */

static uint32_t add_node(struct snd_heaps *h, uint32_t parent, const struct sonde_frame *frame)
{
    if (!snd_grow(&h->nodes, &h->node_room, h->node_count, sizeof *h->nodes))
        return 0;
    h->nodes[h->node_count] = (struct snd_heap_node){ .parent = parent, .frame = *frame };
    if (parent) {
        h->nodes[h->node_count].next_sibling = h->nodes[parent].first_child;
        h->nodes[parent].first_child = h->node_count;
    }
    return h->node_count++;
}

static uint32_t find_node(struct snd_heaps *h, uint32_t parent, const struct sonde_frame *frame)
{
    struct snd_key key = { (uint64_t)parent << 32 | frame->line,
                           (uint64_t)(uintptr_t)frame->function.bytes,
                           (uint64_t)(uintptr_t)frame->file.bytes };
    uint32_t       node;

    if (snd_map_get(&h->children, key, &node))
        return node;
    node = add_node(h, parent, frame);
    return node && snd_map_put(&h->children, key, node) ? node : 0;
}

static bool plant_row(struct snd_heaps *h, const struct snd_heap *heap, struct snd_heap_row *row,
                      struct sonde_frame *frames)
{
    static const char        unknown[] = "(not known)";
    const struct sonde_frame none = { .function = { unknown, sizeof unknown - 1 },
                                      .file = { "", 0 } };
    size_t   count = sonde_trace_stack(h->trace, heap->process, row->stack, frames, SND_STACK_MAX);
    uint32_t node = heap->root;

    if (count > SND_STACK_MAX)
        count = SND_STACK_MAX;
    if (count == 0)
        frames[count++] = none;
    snd_heap_sums_add(&h->nodes[node].sums, &row->sums);
    while (count-- > 0) {
        node = find_node(h, node, &frames[count]);
        if (node == 0)
            return false;
        snd_heap_sums_add(&h->nodes[node].sums, &row->sums);
    }
    row->node = node;
    return true;
}

static bool plant(struct snd_heaps *h)
{
    const struct sonde_frame none = { .function = { "", 0 }, .file = { "", 0 } };
    struct sonde_frame      *frames = calloc(SND_STACK_MAX, sizeof *frames);
    bool                     ok = frames != NULL;

    for (uint32_t i = 0; ok && i < h->heap_count; i++) {
        h->heaps[i].root = add_node(h, 0, &none);
        ok = h->heaps[i].root != 0;
        for (uint32_t n = 0; ok && n < h->heaps[i].count; n++)
            ok = plant_row(h, &h->heaps[i], &h->rows[h->heaps[i].first + n], frames);
    }
    free(frames);
    return ok;
}

/* ------------------------------------------------------------------- the face */

enum sonde_status snd_heaps_new(struct sonde_trace *trace, bool trees, struct snd_heaps **out,
                                struct sonde_error *err)
{
    return snd_heaps_new_at(trace, trees, 0, out, err);
}

enum sonde_status snd_heaps_new_at(struct sonde_trace *trace, bool trees, int64_t at_ns,
                                   struct snd_heaps **out, struct sonde_error *err)
{
    struct snd_heaps        *h = calloc(1, sizeof *h);
    const struct sonde_frame none = { .function = { "", 0 }, .file = { "", 0 } };

    *out = NULL;
    if (h) {
        h->trace = trace;
        add_node(h, 0, &none); /* 0 is no node */
    }
    if (!h || h->node_count == 0 || !gather(h, at_ns) || (trees && !plant(h))) {
        snd_heaps_free(h);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the heap");
    }
    *out = h;
    return SONDE_OK;
}

void snd_heaps_free(struct snd_heaps *heaps)
{
    if (!heaps)
        return;
    for (uint32_t i = 0; i < heaps->heap_count; i++)
        snd_heap_history_release(&heaps->heaps[i].history);
    free(heaps->heaps);
    free(heaps->rows);
    free(heaps->nodes);
    snd_map_release(&heaps->children);
    free(heaps);
}

const struct snd_heap *snd_heaps_heap(const struct snd_heaps *heaps, uint32_t index)
{
    return index < heaps->heap_count ? &heaps->heaps[index] : NULL;
}

const struct snd_heap_row *snd_heaps_row(const struct snd_heaps *heaps, uint32_t index)
{
    return &heaps->rows[index];
}

const struct snd_heap_node *snd_heaps_node(const struct snd_heaps *heaps, uint32_t index)
{
    return &heaps->nodes[index];
}

uint32_t snd_heaps_node_count(const struct snd_heaps *heaps)
{
    return heaps->node_count;
}
