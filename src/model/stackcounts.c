/* SPDX-License-Identifier: Apache-2.0 */
#include "model/stackcounts.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "format/layout.h"
#include "model/mixed.h"
#include "read/metadata.h"

#define FRAMES_MAX 4096u /* of a stack: more than a sample has, with those that were inlined */

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

static bool add_stack(struct filler *f, uint32_t process, uint32_t stack, uint32_t counter,
                      uint64_t events)
{
    static const struct snd_mixed_frame unknown = { .frame = { .function = { "(not known)", 11 },
                                                               .file = { "", 0 } } };
    size_t   count = snd_mixed_frames(&f->mixed, process, stack, 0, f->frames, FRAMES_MAX);
    uint32_t row;

    if (count > FRAMES_MAX)
        count = FRAMES_MAX;
    if (count == 0)
        f->frames[count++] = unknown;
    f->stacks++;
    for (size_t i = 0; i < count; i++) {
        if (!find_row(f, &f->frames[i].frame, &row) || !f->seen)
            return false;
        if (i == 0)
            f->functions->rows[row].self[counter] += events;
        if (f->seen[row] != f->stacks)
            f->functions->rows[row].total[counter] += events;
        f->seen[row] = f->stacks;
    }
    return true;
}

static bool add_process(struct filler *f, uint32_t process, struct snd_counter_names *names,
                        struct sonde_text list)
{
    uint8_t                place[SND_THREAD_COUNTERS_MOST] = { 0 };
    struct sonde_tally_row row;

    snd_counter_names_add(names, list, place);
    for (uint32_t n = 0; sonde_trace_tally(f->mixed.trace, process, n, &row); n++)
        if (row.kind == SND_TALLY_STACK_COUNTERS && row.other < SND_THREAD_COUNTERS_MOST &&
            place[row.other] != 0 &&
            !add_stack(f, process, row.key, place[row.other] - 1u,
                       row.words[SND_STACK_COUNTERS_EVENTS]))
            return false;
    return true;
}

static int compare(const void *x, const void *y)
{
    const struct snd_counted_function *a = x, *b = y;

    for (size_t i = 0; i < SND_THREAD_COUNTERS_MOST; i++)
        if (a->self[i] != b->self[i])
            return a->self[i] < b->self[i] ? 1 : -1;
    for (size_t i = 0; i < SND_THREAD_COUNTERS_MOST; i++)
        if (a->total[i] != b->total[i])
            return a->total[i] < b->total[i] ? 1 : -1;
    int order = strcmp(a->name.bytes, b->name.bytes);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

enum sonde_status snd_counted_functions_fill(struct snd_counted_functions *functions,
                                             struct sonde_trace           *trace,
                                             struct snd_counter_names     *names,
                                             struct sonde_error           *err)
{
    struct filler     f = { .functions = functions, .mixed = { .trace = trace } };
    struct sonde_text list;
    bool              done = true;

    *functions = (struct snd_counted_functions){ 0 };
    f.frames = calloc(FRAMES_MAX, sizeof *f.frames);
    for (uint32_t p = 0; f.frames && done && p < sonde_trace_process_count(trace); p++)
        if (snd_meta_find(trace, p, SND_META_COUNTERS_FUNCTIONS, &list))
            done = add_process(&f, p, names, list);
    if (done && functions->count > 0)
        qsort(functions->rows, functions->count, sizeof *functions->rows, compare);
    done &= f.frames != NULL;
    free(f.frames);
    free(f.seen);
    snd_map_release(&f.by_place);
    return done ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for counted functions");
}

void snd_counted_functions_release(struct snd_counted_functions *functions)
{
    free(functions->rows);
}
