/* SPDX-License-Identifier: Apache-2.0 */
#include "model/counters/stack_counters.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "format/layout.h"
#include "format/limits.h"
#include "model/samples/mixed_stacks.h"
#include "read/said/trace_metadata.h"

/* --------------------------------------------------------------------- stacks */

static bool is_counted(const struct sonde_tally_row *row)
{
    return row->kind == SND_TALLY_STACK_COUNTERS && row->other < SND_THREAD_COUNTERS_MOST;
}

bool snd_counted_stacks_there(const struct sonde_trace *trace)
{
    struct sonde_tally_row row;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        for (uint32_t n = 0; sonde_trace_tally(trace, p, n, &row); n++)
            if (is_counted(&row))
                return true;
    return false;
}

static struct snd_counted_stack *find_stack(struct snd_counted_stacks *all, struct snd_map *known,
                                            uint32_t process, uint32_t stack)
{
    struct snd_key key = { process, stack, 0 };
    uint32_t       at;

    if (snd_map_get(known, key, &at))
        return &all->rows[at];
    if (!snd_grow(&all->rows, &all->capacity, all->count, sizeof *all->rows) ||
        !snd_map_put(known, key, all->count))
        return NULL;
    all->rows[all->count] = (struct snd_counted_stack){ .process = process, .stack = stack };
    return &all->rows[all->count++];
}

static bool add_process(struct snd_counted_stacks *all, struct snd_map *known,
                        const struct sonde_trace *trace, uint32_t process,
                        const uint8_t place[SND_THREAD_COUNTERS_MOST])
{
    struct sonde_tally_row row;

    for (uint32_t n = 0; sonde_trace_tally(trace, process, n, &row); n++) {
        if (!is_counted(&row) || place[row.other] == 0)
            continue;
        struct snd_counted_stack *stack = find_stack(all, known, process, row.key);
        if (!stack)
            return false;
        stack->samples[place[row.other] - 1] += row.words[SND_STACK_COUNTERS_SAMPLES];
        stack->events[place[row.other] - 1] += row.words[SND_STACK_COUNTERS_EVENTS];
    }
    return true;
}

enum sonde_status snd_counted_stacks_fill(struct snd_counted_stacks *stacks,
                                          struct sonde_trace        *trace,
                                          struct snd_counter_names *names, struct sonde_error *err)
{
    struct snd_map    known = { 0 };
    struct sonde_text list;
    bool              done = true;

    *stacks = (struct snd_counted_stacks){ 0 };
    for (uint32_t p = 0; done && p < sonde_trace_process_count(trace); p++) {
        uint8_t place[SND_THREAD_COUNTERS_MOST] = { 0 };
        if (!snd_meta_find(trace, p, SND_META_COUNTERS_FUNCTIONS, &list))
            continue;
        snd_counter_names_add(names, list, place);
        done = add_process(stacks, &known, trace, p, place);
    }
    snd_map_release(&known);
    return done ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for counted stacks");
}

void snd_counted_stacks_release(struct snd_counted_stacks *stacks)
{
    free(stacks->rows);
}

/* ------------------------------------------------------------------ functions */

struct filler {
    struct snd_counted_functions *functions;
    struct snd_mixed              mixed; /* for the frames of stacks; no ranges */
    struct snd_map                by_place;
    struct snd_mixed_frame       *frames; /* owned: of one stack */
    uint64_t                     *seen;   /* owned: of each row, the last stack that it was on */
    uint64_t                      stacks;
    uint32_t                      room, seen_room;
};

/* Texts of a trace are each there once: the same bytes have the same address. */
static bool find_row(struct filler *f, const struct sonde_frame *frame, uint32_t *row)
{
    struct snd_counted_functions *all = f->functions;
    struct snd_key                key = { (uint64_t)(uintptr_t)frame->file.bytes, frame->first_line,
                                          (uint64_t)(uintptr_t)frame->function.bytes };

    if (snd_map_get(&f->by_place, key, row))
        return true;
    *row = all->count;
    if (!snd_grow(&all->rows, &f->room, *row, sizeof *all->rows) ||
        !snd_grow(&f->seen, &f->seen_room, *row, sizeof *f->seen) ||
        !snd_map_put(&f->by_place, key, *row))
        return false;
    all->rows[all->count++] = (struct snd_counted_function){ .name = frame->function,
                                                             .file = frame->file,
                                                             .line = frame->first_line };
    f->seen[*row] = 0;
    return true;
}

static bool add_stack(struct filler *f, const struct snd_counted_stack *stack)
{
    size_t   count = snd_mixed_some_frames(&f->mixed, stack->process, stack->stack, f->frames,
                                           SND_MIXED_FRAMES_MAX);
    uint32_t number;

    f->stacks++;
    for (size_t i = 0; i < count; i++) {
        if (!find_row(f, &f->frames[i].frame, &number) || !f->seen)
            return false;
        struct snd_counted_function *row = &f->functions->rows[number];
        for (size_t n = 0; n < SND_THREAD_COUNTERS_MOST; n++) {
            row->self[n] += i == 0 ? stack->events[n] : 0;
            row->total[n] += f->seen[number] != f->stacks ? stack->events[n] : 0;
        }
        f->seen[number] = f->stacks;
    }
    return true;
}

static int compare(const void *x, const void *y)
{
    const struct snd_counted_function *a = x, *b = y;

    for (size_t i = 0; i < SND_THREAD_COUNTERS_MOST; i++)
        if (a->self[i] != b->self[i])
            return SND_FALLING(a->self[i], b->self[i]);
    for (size_t i = 0; i < SND_THREAD_COUNTERS_MOST; i++)
        if (a->total[i] != b->total[i])
            return SND_FALLING(a->total[i], b->total[i]);
    int order = strcmp(a->name.bytes, b->name.bytes);
    return order ? order : SND_RISING(a->line, b->line);
}

enum sonde_status snd_counted_functions_fill(struct snd_counted_functions *functions,
                                             struct sonde_trace           *trace,
                                             struct snd_counter_names     *names,
                                             struct sonde_error           *err)
{
    struct filler             f = { .functions = functions, .mixed = { .trace = trace } };
    struct snd_counted_stacks stacks;

    *functions = (struct snd_counted_functions){ 0 };
    enum sonde_status status = snd_counted_stacks_fill(&stacks, trace, names, err);
    f.frames = calloc(SND_MIXED_FRAMES_MAX, sizeof *f.frames);
    bool done = f.frames != NULL;
    for (uint32_t i = 0; done && i < stacks.count; i++)
        done = add_stack(&f, &stacks.rows[i]);
    if (done)
        snd_sort(functions->rows, functions->count, sizeof *functions->rows, compare);
    free(f.frames);
    free(f.seen);
    snd_map_release(&f.by_place);
    snd_counted_stacks_release(&stacks);
    if (status == SONDE_OK && !done)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for counted functions");
    return status;
}

void snd_counted_functions_release(struct snd_counted_functions *functions)
{
    free(functions->rows);
}
