/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of allocations as folded text and for speedscope: a line, or a sample, for each stack that has bytes
 * of the kind that was asked for. Memory that a process mapped itself is apart from malloc's.
 */
#include "export/stacks/allocation_stacks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "export/stacks/weighted_stacks.h"
#include "read/reader.h"
#include "read/said/trace_metadata.h"

enum sonde_status snd_heap_stacks_open(struct snd_heap_stacks *stacks, struct sonde_trace *trace,
                                       struct sonde_error *err)
{
    *stacks = (struct snd_heap_stacks){ .mixed = { .trace = trace } };
    enum sonde_status st = snd_heaps_new(trace, false, &stacks->heaps, err);
    if (st != SONDE_OK)
        return st;
    if (!snd_heaps_heap(stacks->heaps, 0))
        return snd_fail(err, SONDE_E_STATE,
                        "the trace has no allocations; record them with sonde run --heap");
    stacks->frames = calloc(SND_NAMED_STACK_MAX, sizeof *stacks->frames);
    return stacks->frames ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
}

static void rewind_stacks(struct snd_heap_stacks *stacks)
{
    stacks->heap_number = stacks->row_number = 0;
}

bool snd_heap_stacks_next(struct snd_heap_stacks *stacks)
{
    while ((stacks->heap = snd_heaps_heap(stacks->heaps, stacks->heap_number)) != NULL &&
           stacks->row_number == stacks->heap->count) {
        stacks->heap_number++;
        stacks->row_number = 0;
    }
    if (!stacks->heap)
        return false;
    stacks->row = snd_heaps_row(stacks->heaps, stacks->heap->first + stacks->row_number++);
    stacks->count = snd_mixed_some_frames(&stacks->mixed, stacks->heap->process, stacks->row->stack,
                                          stacks->frames, SND_NAMED_STACK_MAX);
    return true;
}

void snd_heap_stacks_release(struct snd_heap_stacks *stacks)
{
    snd_heaps_free(stacks->heaps);
    free(stacks->frames);
}

/* The requested kind of bytes of the current stack. */
static uint64_t pick_bytes(const struct snd_heap_stacks *stacks, enum sonde_heap_bytes which)
{
    const struct snd_heap_sums *sums = &stacks->row->sums;

    if (which == SONDE_HEAP_ALLOCATED)
        return sums->bytes;
    return which == SONDE_HEAP_LEAKED ? sums->live_bytes : sums->peak_bytes;
}

/* --------------------------------------------------------- folded, speedscope */

struct walk {
    struct snd_heap_stacks stacks;
    enum sonde_heap_bytes  which;
};

static bool next(void *user, struct snd_weighted_stack *out)
{
    struct walk *w = user;

    if (!snd_heap_stacks_next(&w->stacks))
        return false;
    *out = (struct snd_weighted_stack){ w->stacks.heap_number, w->stacks.frames, w->stacks.count,
                                        pick_bytes(&w->stacks, w->which) };
    return true;
}

static void rewind_all(void *user)
{
    rewind_stacks(&((struct walk *)user)->stacks);
}

/* "program 4242", "program 4242 (mapped)". */
static void put_name(void *user, uint32_t number, struct sonde_buffer *name)
{
    const struct snd_heap_stacks *stacks = &((struct walk *)user)->stacks;
    const struct snd_heap        *heap = snd_heaps_heap(stacks->heaps, number);
    const struct sonde_process   *p = sonde_trace_process(stacks->mixed.trace, heap->process);

    char        text[SND_RANK_TEXT];
    const char *rank = snd_meta_rank(stacks->mixed.trace, heap->process, text);

    snd_buf_format(name, "%s %" PRIu32 "%s%s%s", p->program, p->pid, rank[0] ? ", " : "", rank,
                   heap->is_mapped ? " (mapped)" : "");
}

static const char *unit_of(void *user, uint32_t number)
{
    (void)user, (void)number;
    return "bytes";
}

static enum sonde_status write_weighted(struct sonde_trace                *trace,
                                        const struct sonde_export_options *options,
                                        struct snd_out *out, snd_weighted_write *write,
                                        struct sonde_error *err)
{
    struct walk       walk = { .which = options->heap };
    enum sonde_status st = snd_heap_stacks_open(&walk.stacks, trace, err);

    if (st == SONDE_OK) {
        struct snd_weighted_source source = {
            trace, &walk, 0, next, rewind_all, put_name, unit_of
        };
        while (snd_heaps_heap(walk.stacks.heaps, source.group_count))
            source.group_count++;
        st = write(&source, out, err);
    }
    snd_heap_stacks_release(&walk.stacks);
    return st;
}

SND_EXPORT_WRITE(snd_heap_folded)
{
    return write_weighted(trace, options, out, snd_weighted_folded, err);
}

SND_EXPORT_WRITE(snd_heap_speedscope)
{
    return write_weighted(trace, options, out, snd_weighted_speedscope, err);
}
