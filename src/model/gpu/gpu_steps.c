/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpu/gpu_steps.c - how a GPU spent the time of each step.
 *
 * Steps are the program's ranges ProfilerStep#N; in a process without any, from one STEP to the next.
 * A step's time is the host's: what the GPU did in it may have been asked for in the step before.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "model/gpu/gpu.h"
#include "model/summary/steps.h"

struct step {
    int64_t  start_ns, end_ns; /* end INT64_MIN: a STEP, which the next one ends */
    uint64_t number;
    uint32_t process;
};

struct snd_gpu_seen_steps {
    struct snd_gpu *g;
    struct step    *items;
    uint32_t        count, room;
    bool            has_ranges[]; /* by process */
};

struct snd_gpu_seen_steps *snd_gpu_steps_new(struct snd_gpu *gpu)
{
    struct snd_gpu_seen_steps *s =
        calloc(1, sizeof *s + ((size_t)gpu->trace->process_count + 1) * sizeof s->has_ranges[0]);

    if (s)
        s->g = gpu;
    return s;
}

void snd_gpu_steps_free(struct snd_gpu_seen_steps *s)
{
    if (s)
        free(s->items);
    free(s);
}

static void add_step(struct snd_gpu_seen_steps *s, const struct step *step)
{
    if (!snd_grow(&s->items, &s->room, s->count, sizeof *s->items))
        snd_assembly_stop(s->g->assembly);
    else
        s->items[s->count++] = *step;
}

void snd_gpu_steps_closed(struct snd_gpu_seen_steps *s, const struct snd_lane *lane,
                          const struct snd_range *r)
{
    const struct snd_text *name = &s->g->trace->names.items[r->name];

    if (!(s->g->assembly->name_flags[r->name] & SND_NAME_STEP))
        return;
    const char *number = memchr(name->bytes, '#', name->length);
    s->has_ranges[lane->process] = true;
    add_step(s, &(struct step){ r->start_ns, snd_add(r->start_ns, r->total_ns),
                                strtoull(number + 1, NULL, 10), lane->process });
}

void snd_gpu_steps_event(struct snd_gpu_seen_steps *s, const struct snd_lane *lane, int64_t ns,
                         const uint64_t *words)
{
    if (SND_EVENT_KIND(words[0]) == SND_EV_STEP)
        add_step(s, &(struct step){ ns, INT64_MIN, words[1], lane->process });
}

static int compare_step(const void *x, const void *y)
{
    const struct step *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->process, b->process), SND_RISING(a->start_ns, b->start_ns),
                     SND_RISING(a->number, b->number));
}

/* Leaves out what followed the last step of each process, of steps that are sorted. */
static void drop_rest(struct snd_gpu_seen_steps *s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct step *step = &s->items[i];
        bool               last = i + 1 == s->count || s->items[i + 1].process != step->process;
        if (!last || step->end_ns != INT64_MIN ||
            !snd_steps_is_open(s->g->trace, step->process, step->number))
            s->items[kept++] = *step;
        else if (kept > 0 && s->items[kept - 1].process == step->process)
            s->items[kept - 1].end_ns = step->start_ns; /* its mark ended the one before */
    }
    s->count = kept;
}

/* Leaves out the marks of a process that has ranges, and ends the others'. */
static void sort_steps(struct snd_gpu_seen_steps *s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->count; i++)
        if (s->items[i].end_ns != INT64_MIN || !s->has_ranges[s->items[i].process])
            s->items[kept++] = s->items[i];
    s->count = kept;
    snd_sort(s->items, kept, sizeof *s->items, compare_step);
    drop_rest(s);
    for (uint32_t i = 0; i < s->count; i++) {
        struct step *step = &s->items[i];
        bool         last = i + 1 == s->count || s->items[i + 1].process != step->process;
        if (step->end_ns == INT64_MIN)
            step->end_ns = last ? s->g->trace->processes[step->process].shown.stop_ns
                                : s->items[i + 1].start_ns;
    }
}

/* ----------------------------------------------------------------- division */

static int64_t shared_ns(const struct step *step, int64_t start, int64_t end)
{
    int64_t from = start > step->start_ns ? start : step->start_ns;
    int64_t until = end < step->end_ns ? end : step->end_ns;

    return until > from ? snd_sub(until, from) : 0;
}

/* The first span that ends after the moment. */
static uint32_t find_span(const struct snd_gpu_spans *spans, int64_t ns)
{
    uint32_t low = 0, high = spans->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (spans->items[middle].end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t sum_in(const struct step *step, const struct snd_gpu_spans *spans)
{
    int64_t sum = 0;

    for (uint32_t i = find_span(spans, step->start_ns);
         i < spans->count && spans->items[i].start_ns < step->end_ns; i++)
        sum = snd_add(sum, shared_ns(step, spans->items[i].start_ns, spans->items[i].end_ns));
    return sum;
}

/* Gaps of the device from `*first` on; those that are over when the step begins are passed. */
static void add_gaps(const struct snd_gpu *g, const struct step *step, struct snd_gpu_step *row,
                     uint32_t first)
{
    for (uint32_t i = first;
         i < g->gap_count && g->gaps[i].device == row->device && g->gaps[i].start_ns < step->end_ns;
         i++) {
        const struct snd_gpu_gap *gap = &g->gaps[i];
        int64_t                  *sum = &row->idle_ns[gap->reason];
        *sum = snd_add(*sum,
                       shared_ns(step, gap->start_ns, snd_add(gap->start_ns, gap->duration_ns)));
    }
}

/* The first gap of the device that is not over at that moment: its gaps do not overlap. */
static uint32_t find_gap(const struct snd_gpu *g, uint32_t device, int64_t ns)
{
    uint32_t low = 0, high = g->gap_count;

    while (low < high) {
        uint32_t                  middle = low + (high - low) / 2;
        const struct snd_gpu_gap *gap = &g->gaps[middle];
        if (gap->device < device ||
            (gap->device == device && snd_add(gap->start_ns, gap->duration_ns) <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool divide(struct snd_gpu *g, const struct step *step, uint32_t device,
                   const struct snd_gpu_spans *kernels, const struct snd_gpu_spans *busy)
{
    if (!snd_grow(&g->steps, &g->step_room, g->step_count, sizeof *g->steps))
        return false;
    struct snd_gpu_step *row = &g->steps[g->step_count++];
    *row = (struct snd_gpu_step){ .device = device,
                                  .process = step->process,
                                  .number = step->number,
                                  .start_ns = step->start_ns,
                                  .duration_ns = snd_sub(step->end_ns, step->start_ns),
                                  .busy_ns = sum_in(step, busy),
                                  .kernel_ns = sum_in(step, kernels) };
    add_gaps(g, step, row, find_gap(g, device, step->start_ns));
    return true;
}

bool snd_gpu_steps_divide(struct snd_gpu_seen_steps *s, const struct snd_gpu_spans *kernels,
                          const struct snd_gpu_spans *busy)
{
    struct snd_gpu *g = s->g;

    sort_steps(s);
    for (uint32_t d = 0; d < g->device_count; d++)
        for (uint32_t i = 0; i < s->count; i++)
            if (s->items[i].process == g->devices[d].process &&
                !divide(g, &s->items[i], d, &kernels[d], &busy[d]))
                return false;
    return true;
}
