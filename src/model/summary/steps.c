/* SPDX-License-Identifier: Apache-2.0 */
#include "model/summary/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "model/ranges/assembly.h"
#include "read/said/trace_metadata.h"

bool snd_steps_add(struct snd_steps *steps, uint32_t process, uint64_t number, int64_t ns)
{
    if (steps->count >= SND_STEPS_MAX)
        return true;
    if (!snd_grow(&steps->rows, &steps->room, steps->count, sizeof *steps->rows))
        return false;
    steps->rows[steps->count++] =
        (struct sonde_step_row){ .process = process, .number = number, .start_ns = ns };
    return true;
}

static int compare(const void *x, const void *y)
{
    const struct sonde_step_row *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->process, b->process), SND_RISING(a->start_ns, b->start_ns),
                     SND_RISING(a->number, b->number));
}

static bool is_last(const struct snd_steps *steps, uint32_t i)
{
    return i + 1 == steps->count || steps->rows[i + 1].process != steps->rows[i].process;
}

/* The first step whose beginning was recorded, as the program said last; false: it did not. */
static bool find_first(const struct sonde_trace *trace, uint32_t process, uint64_t *number)
{
    struct sonde_text value;
    uint32_t          at = 0;
    bool              found = false;

    while (snd_meta_next(trace, process, SND_META_STEPS_FIRST, &at, NULL, &value)) {
        *number = strtoull(value.bytes, NULL, 10);
        found = true;
    }
    return found;
}

/* Steps in which a recording began, so that their start is not marked; false: out of memory. */
static bool add_begun(struct snd_steps *steps, const struct sonde_trace *trace)
{
    uint32_t marked = steps->count;

    for (uint32_t p = 0; p < trace->process_count; p++) {
        struct sonde_text value;
        uint64_t          number = UINT64_MAX;
        uint32_t          at = 0, i = 0;
        while (snd_meta_next(trace, p, SND_META_STEPS_BEGAN, &at, NULL, &value))
            number = strtoull(value.bytes, NULL, 10);
        while (i < marked && (steps->rows[i].process != p || steps->rows[i].number > number))
            i++;
        bool unmarked = number != UINT64_MAX && i == marked;
        if (unmarked && !snd_steps_add(steps, p, number, trace->processes[p].shown.start_ns))
            return false;
    }
    return true;
}

bool snd_steps_measure(struct snd_steps *steps, const struct sonde_trace *trace)
{
    uint32_t process = 0;

    free(steps->first);
    steps->first = calloc((size_t)trace->process_count + 2, sizeof *steps->first);
    if (!steps->first || (steps->count > 0 && !add_begun(steps, trace)))
        return false;
    snd_sort(steps->rows, steps->count, sizeof *steps->rows, compare);
    for (uint32_t i = 0; i < steps->count; i++) {
        struct sonde_step_row *step = &steps->rows[i];
        int64_t end = is_last(steps, i) ? trace->processes[step->process].shown.stop_ns
                                        : steps->rows[i + 1].start_ns;
        step->duration_ns = end > step->start_ns ? snd_sub(end, step->start_ns) : 0;
        while (process <= step->process)
            steps->first[process++] = i;
    }
    while (process <= trace->process_count)
        steps->first[process++] = steps->count;
    return true;
}

/* ---------------------------------------------------------------- counting */

struct counting {
    struct snd_steps         *steps;
    const struct sonde_trace *trace;
    uint32_t                 *current; /* step of each thread */
};

/* "_compile.compile_inner (dynamo_timed)": all that it does is marked so. */
bool snd_steps_is_compilation(const char *name, size_t length)
{
    static const char end[] = " (dynamo_timed)";
    const size_t      size = sizeof end - 1;

    return length > size && memcmp(name + length - size, end, size) == 0;
}

/* A thread's times never fall, so its place among the steps only moves on. */
static void count_range(struct counting *counting, const struct snd_lane *lane, int64_t start_ns,
                        bool compiles)
{
    const uint32_t        *first = &counting->steps->first[lane->process];
    struct sonde_step_row *rows = counting->steps->rows;
    uint32_t              *at = &counting->current[lane->thread];

    if (*at < first[0])
        *at = first[0];
    while (*at + 1 < first[1] && rows[*at + 1].start_ns <= start_ns)
        ++*at;
    if (*at >= first[1] || rows[*at].start_ns > start_ns)
        return;
    rows[*at].ranges++;
    if (compiles)
        rows[*at].part = SONDE_STEP_COMPILES;
}

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    const struct counting *counting = user;
    const struct snd_text *name = &counting->trace->names.items[shared->name];

    (void)lane;
    return snd_steps_is_compilation(name->bytes, name->length);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    (void)parent;
    count_range(user, lane, range->range.start_ns, on_kind(user, lane, &range->range));
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    (void)known, (void)above, (void)parent;
    count_range(user, lane, leaf->start_ns, kind != 0);
}

/* What the GPU was asked for in a step counts for it, whenever it was done. */
static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    const struct counting *counting = user;
    struct sonde_step_row *rows = counting->steps->rows;
    uint32_t               low = counting->steps->first[lane->process];
    uint32_t               high = counting->steps->first[lane->process + 1], first = low;

    (void)parent;
    if (range->range.api == 0)
        return;
    while (low < high) { /* the first step that begins after it */
        uint32_t middle = low + (high - low) / 2;
        if (rows[middle].start_ns <= range->range.start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > first)
        rows[low - 1].device_ns = snd_add(rows[low - 1].device_ns, range->range.device_ns);
}

bool snd_steps_is_open(const struct sonde_trace *trace, uint32_t process, uint64_t number)
{
    struct sonde_text value;
    uint64_t          first;
    uint32_t          at = 0;

    while (snd_meta_next(trace, process, SND_META_STEPS_ENDED, &at, NULL, &value))
        if (strtoull(value.bytes, NULL, 10) == number)
            return false;
    return find_first(trace, process, &first);
}

/* Without a word from the program: no range began in it, although some did in the one before. */
static bool is_after(const struct snd_steps *steps, const struct sonde_trace *trace, uint32_t i)
{
    const struct sonde_step_row *row = &steps->rows[i];
    bool                         is_first = i == 0 || steps->rows[i - 1].process != row->process;

    return is_last(steps, i) && (snd_steps_is_open(trace, row->process, row->number) ||
                                 (row->ranges == 0 && !is_first && steps->rows[i - 1].ranges > 0));
}

void snd_steps_judge(struct snd_steps *steps, const struct sonde_trace *trace)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        struct sonde_step_row *row = &steps->rows[i];
        uint64_t               first;
        if (find_first(trace, row->process, &first) && row->number < first)
            row->part = SONDE_STEP_FIRST;
        else if (is_after(steps, trace, i))
            row->part = SONDE_STEP_AFTER;
    }
}

const char *sonde_step_part_name(enum sonde_step_part part)
{
    static const char *const names[] = { "whole", "first", "compiles", "after" };

    return (unsigned)part < SND_COUNT_OF(names) ? names[part] : "";
}

enum sonde_status snd_steps_count(struct snd_steps *steps, struct sonde_trace *trace,
                                  struct sonde_error *err)
{
    struct counting           counting = { .steps = steps, .trace = trace };
    const struct snd_consumer consumer = { .user = &counting,
                                           .any_flops = true,
                                           .open = on_open,
                                           .close = on_close,
                                           .kind = on_kind,
                                           .leaf = on_leaf };
    struct snd_assembly       assembly;

    if (steps->count == 0)
        return SONDE_OK;
    counting.current = calloc((size_t)trace->thread_count + 1, sizeof *counting.current);
    if (!counting.current)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the steps");
    enum sonde_status status = snd_assemble(&assembly, trace, SONDE_BY_THREAD, &consumer, 1, err);
    snd_assembly_release(&assembly);
    free(counting.current);
    if (status == SONDE_OK)
        snd_steps_judge(steps, trace);
    return status;
}

void snd_steps_release(struct snd_steps *steps)
{
    free(steps->rows);
    free(steps->first);
    *steps = (struct snd_steps){ 0 };
}
