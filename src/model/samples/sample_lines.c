/* SPDX-License-Identifier: Apache-2.0 */
/* model/samples/sample_lines.c - see sample_lines.h */
#include "model/samples/sample_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "model/samples/sample_counts.h"
#include "read/reader.h"
#include "read/file/scale.h"

/* What is told apart by a key, counted from 0, and a value of each, 0 at first. */
struct numbered {
    struct snd_map numbers;
    int64_t       *values;
    uint32_t       room;
};

struct work {
    struct snd_sample_lines *lines;
    struct snd_map           by_place;  /* (file, function, line) to a row */
    uint32_t                *seen;      /* of each row: the stack that counted it last, plus one */
    struct numbered          functions; /* by (file, function, first line): their self time */
    uint32_t                *of;        /* of each row: its function */
    struct numbered          places;    /* by (file, line): as `seen` */
    uint32_t                *line_of;   /* of each row: its number in `places` */
    uint32_t                 seen_room, of_room, line_of_room;
    bool                     failed;
};

/* Texts of a trace are each there once: the same bytes have the same address. */
static struct snd_key place_of(const struct sonde_frame *f, uint32_t line)
{
    return (struct snd_key){ (uint64_t)(uintptr_t)f->file.bytes,
                             (uint64_t)(uintptr_t)f->function.bytes, line };
}

/* 0 if memory is out, which is noted. */
static uint32_t find_number(struct work *w, struct numbered *all, struct snd_key key)
{
    uint32_t number;

    if (snd_map_get(&all->numbers, key, &number))
        return number;
    number = (uint32_t)all->numbers.count;
    if (!snd_grow(&all->values, &all->room, number, sizeof *all->values) ||
        !snd_map_put(&all->numbers, key, number)) {
        w->failed = true;
        return 0;
    }
    all->values[number] = 0;
    return number;
}

static void release_numbered(struct numbered *all)
{
    snd_map_release(&all->numbers);
    free(all->values);
}

static uint32_t find_row(struct work *w, const struct snd_mixed_frame *f)
{
    struct snd_key key = place_of(&f->frame, f->frame.line);
    uint32_t       row;

    if (snd_map_get(&w->by_place, key, &row))
        return row;
    row = w->lines->count;
    if (!snd_grow(&w->lines->rows, &w->lines->room, row, sizeof *w->lines->rows) ||
        !snd_grow(&w->seen, &w->seen_room, row, sizeof *w->seen) ||
        !snd_grow(&w->of, &w->of_room, row, sizeof *w->of) ||
        !snd_grow(&w->line_of, &w->line_of_room, row, sizeof *w->line_of) ||
        !snd_map_put(&w->by_place, key, row)) {
        w->failed = true;
        return 0;
    }
    w->lines->rows[row] = (struct snd_sample_line){ .function = f->frame.function,
                                                    .file = f->frame.file,
                                                    .first_line = f->frame.first_line,
                                                    .line = f->frame.line,
                                                    .is_native = f->is_native };
    w->seen[row] = 0;
    w->of[row] = find_number(w, &w->functions, place_of(&f->frame, f->frame.first_line));
    w->line_of[row] =
        find_number(w, &w->places,
                    (struct snd_key){ (uint64_t)(uintptr_t)f->frame.file.bytes, 0, f->frame.line });
    return w->lines->count++;
}

/* A line that is in a stack twice, by recursion, counts once. */
static void add_stack(struct work *w, const struct snd_sample_count *row, uint32_t number,
                      const struct snd_mixed_frame *frames, size_t count)
{
    size_t inner = 0; /* a range has no line: its time goes to the frame around it */

    while (inner < count && frames[inner].is_range)
        inner++;
    for (size_t i = inner; i < count && !w->failed; i++) {
        if (frames[i].frame.line == 0 || frames[i].frame.file.length == 0)
            continue;
        uint32_t at = find_row(w, &frames[i]);
        if (w->failed)
            return;
        struct snd_sample_line *line = &w->lines->rows[at];
        if (i == inner) {
            line->self_ns = snd_add(line->self_ns, row->time_ns);
            int64_t *self_ns = &w->functions.values[w->of[at]];
            *self_ns = snd_add(*self_ns, row->time_ns);
        }
        if (w->seen[at] != number + 1) {
            line->total_ns = snd_add(line->total_ns, row->time_ns);
            line->samples = snd_count_add(line->samples, row->samples);
        }
        w->seen[at] = number + 1;
        int64_t *line_seen = &w->places.values[w->line_of[at]];
        if (*line_seen != (int64_t)number + 1) {
            line->once_ns = snd_add(line->once_ns, row->time_ns);
            line->once_samples = snd_count_add(line->once_samples, row->samples);
        }
        *line_seen = (int64_t)number + 1;
    }
}

struct order {
    struct snd_sample_line line;
    int64_t                self_ns;
    uint32_t               function;
};

static int compare(const void *left, const void *right)
{
    const struct order *x = left, *y = right;

    return SND_ORDER(SND_FALLING(x->self_ns, y->self_ns), SND_RISING(x->function, y->function),
                     SND_RISING(x->line.line, y->line.line));
}

static bool sort_rows(struct work *w)
{
    struct order *order = calloc((size_t)w->lines->count + 1, sizeof *order);

    for (uint32_t i = 0; order && i < w->lines->count; i++)
        order[i] = (struct order){ w->lines->rows[i], w->functions.values[w->of[i]], w->of[i] };
    if (order)
        snd_sort(order, w->lines->count, sizeof *order, compare);
    for (uint32_t i = 0; order && i < w->lines->count; i++)
        w->lines->rows[i] = order[i].line;
    free(order);
    return order != NULL;
}

enum sonde_status snd_sample_lines_make(struct snd_sample_lines *lines, struct sonde_trace *trace,
                                        struct sonde_error *err)
{
    struct work               w = { .lines = lines };
    struct snd_sample_counts *counts;
    struct snd_mixed_frame   *frames = malloc(SND_MIXED_FRAMES_MAX * sizeof *frames);

    *lines = (struct snd_sample_lines){ 0 };
    enum sonde_status st = snd_sample_counts_new(trace, &counts, err);
    for (uint32_t i = 0; st == SONDE_OK && frames && i < counts->count && !w.failed; i++) {
        const struct snd_sample_count *row = &counts->rows[i];
        uint32_t                       process = trace->threads[row->thread].shown.process;
        size_t                         count = row->waits ? 0
                                                          : snd_mixed_frames(&counts->mixed, process, row->stack,
                                                                             row->chain, frames, SND_MIXED_FRAMES_MAX);
        if (!row->waits)
            lines->whole_ns = snd_add(lines->whole_ns, row->time_ns);
        add_stack(&w, row, i, frames, count < SND_MIXED_FRAMES_MAX ? count : SND_MIXED_FRAMES_MAX);
    }
    if (st == SONDE_OK && (!frames || w.failed || !sort_rows(&w)))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines of the samples");
    snd_sample_counts_free(counts);
    snd_map_release(&w.by_place);
    release_numbered(&w.functions);
    release_numbered(&w.places);
    free(w.seen);
    free(w.of);
    free(w.line_of);
    free(frames);
    return st;
}

void snd_sample_lines_release(struct snd_sample_lines *lines)
{
    free(lines->rows);
    *lines = (struct snd_sample_lines){ 0 };
}
