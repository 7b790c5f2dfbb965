/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture (SVG) of one process: two walks, the first to see which process and threads have most
 * time, the second to keep their longest ranges in a heap. Memory is bounded by what is drawn.
 */
#include "export/svg/svg_select.h"

#include <stdlib.h>

#include "base/data/sort.h"
#include "export/common/exporter.h"
#include "export/timeline/spans.h"
#include "read/file/scale.h"

/* ---------------------------------------------------------------- which threads */

static int64_t duration_of(const struct snd_span *span)
{
    int64_t ns = snd_sub(span->end_ns, span->start_ns);

    return ns > 0 ? ns : 0;
}

static bool add_up(const struct snd_span *span, void *user)
{
    struct snd_svg        *svg = user;
    struct snd_svg_thread *thread = &svg->threads[span->thread];

    thread->count++;
    if (span->depth == 0)
        thread->top_ns = snd_add(thread->top_ns, duration_of(span));
    return true;
}

static uint32_t process_of(const struct snd_svg *svg, uint32_t thread)
{
    return sonde_trace_thread(svg->trace, thread)->process;
}

/* The process whose threads have most time; of equal ones the first that has ranges. `sums`: zeros. */
static uint32_t select_process(const struct snd_svg *svg, int64_t *sums)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < sonde_trace_thread_count(svg->trace); i++)
        if (svg->threads[i].count > 0)
            sums[process_of(svg, i)] = snd_add(sums[process_of(svg, i)],
                                               snd_add(svg->threads[i].top_ns, 1));
    for (uint32_t p = 1; p < sonde_trace_process_count(svg->trace); p++)
        if (sums[p] > sums[best])
            best = p;
    return best;
}

/* The next thread to show: of those that are not, the one with most time; NULL: none is left. */
static struct snd_svg_thread *next_thread(const struct snd_svg *svg)
{
    struct snd_svg_thread *best = NULL;

    for (uint32_t i = 0; i < sonde_trace_thread_count(svg->trace); i++) {
        struct snd_svg_thread *thread = &svg->threads[i];
        if (thread->count > 0 && !thread->shown && process_of(svg, i) == svg->process &&
            (!best || thread->top_ns > best->top_ns))
            best = thread;
    }
    return best;
}

static bool select_threads(struct snd_svg *svg)
{
    struct snd_svg_thread *thread;
    int64_t *sums = calloc((size_t)sonde_trace_process_count(svg->trace) + 1, sizeof *sums);

    if (!sums)
        return false;
    svg->process = select_process(svg, sums);
    free(sums);
    for (uint32_t n = 0; n < SND_SVG_THREADS && (thread = next_thread(svg)) != NULL; n++)
        thread->shown = true;
    return true;
}

/* ---------------------------------------------------------------- which ranges */

/* Of equally long ranges the one that began later goes first. */
static bool goes_before(const struct snd_svg_range *a, const struct snd_svg_range *b)
{
    return a->duration_ns != b->duration_ns ? a->duration_ns < b->duration_ns
                                            : a->serial > b->serial;
}

static void sift_up(struct snd_svg_range *heap, uint32_t at)
{
    struct snd_svg_range moved = heap[at];

    for (; at > 0 && goes_before(&moved, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moved;
}

static void sift_down(struct snd_svg_range *heap, uint32_t count)
{
    struct snd_svg_range moved = heap[0];
    uint32_t             at = 0;

    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && goes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!goes_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void keep(struct snd_svg *svg, const struct snd_svg_range *range)
{
    if (svg->count < SND_SVG_RANGES) {
        svg->ranges[svg->count] = *range;
        sift_up(svg->ranges, svg->count++);
        return;
    }
    svg->shorter++;
    if (goes_before(range, &svg->ranges[0]))
        return;
    svg->ranges[0] = *range;
    sift_down(svg->ranges, svg->count);
}

static bool keep_span(const struct snd_span *span, void *user)
{
    struct snd_svg *svg = user;

    if (span->process != svg->process)
        svg->of_processes++;
    else if (!svg->threads[span->thread].shown)
        svg->of_threads++;
    else if (span->depth >= SND_SVG_DEPTH)
        svg->deeper++;
    else
        keep(svg, &(struct snd_svg_range){ .name = span->name,
                                           .start_ns = span->start_ns,
                                           .duration_ns = duration_of(span),
                                           .serial = span->serial,
                                           .thread = span->thread,
                                           .depth = span->depth,
                                           .unfinished = span->unfinished,
                                           .overlaps = span->crosses || span->is_async });
    return true;
}

/* By thread, depth, start. */
static int by_place(const void *left, const void *right)
{
    const struct snd_svg_range *a = left, *b = right;

    return SND_ORDER(SND_RISING(a->thread, b->thread), SND_RISING(a->depth, b->depth),
                     SND_RISING(a->start_ns, b->start_ns), SND_RISING(a->serial, b->serial));
}

static enum sonde_status select_ranges(struct snd_svg *svg, struct sonde_error *err)
{
    struct snd_spans_calls  calls = { .end = add_up, .user = svg };
    struct snd_spans_totals totals = { 0 };
    enum sonde_status       st = snd_spans_walk(svg->trace, &calls, &totals, err);

    if (st != SONDE_OK)
        return st;
    if (!select_threads(svg))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the processes of the trace");
    calls.end = keep_span;
    st = snd_spans_walk(svg->trace, &calls, &totals, err);
    svg->deeper += totals.too_deep;
    snd_sort(svg->ranges, svg->count, sizeof *svg->ranges, by_place);
    return st;
}

SND_EXPORT_WRITE(snd_export_svg)
{
    struct snd_svg    svg = { .trace = trace };
    enum sonde_status st;

    (void)options;
    svg.threads = calloc((size_t)sonde_trace_thread_count(trace) + 1, sizeof *svg.threads);
    svg.ranges = calloc(SND_SVG_RANGES, sizeof *svg.ranges);
    if (svg.threads && svg.ranges)
        st = select_ranges(&svg, err);
    else
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the ranges of the picture");
    if (st == SONDE_OK)
        st = snd_svg_draw(&svg, out, err);
    free(svg.threads);
    free(svg.ranges);
    return st;
}
