/* SPDX-License-Identifier: Apache-2.0 */
#include "model/samples/sample_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "base/text/compare.h"
#include "model/samples/sample_counts.h"
#include "read/reader.h"
#include "read/file/scale.h"

struct work {
    struct snd_sample_places *places;
    struct snd_sample_counts *counts;
    struct snd_map            by_address; /* (object, function, address) to a row */
    bool                      failed;
};

/* The record of a native frame that is known by address; NULL: it is none. */
static const struct snd_frame_record *record_of(const struct snd_tables      *tables,
                                                const struct snd_mixed_frame *frame)
{
    bool known = frame->is_native && frame->id != 0 && frame->id < tables->frame_count;

    return known && tables->frames[frame->id].address != 0 ? &tables->frames[frame->id] : NULL;
}

static uint32_t object_of(const struct snd_frame_record *record)
{
    return record->reserved ? record->reserved : record->file;
}

static void add_place(struct work *w, const struct snd_sample_place *place)
{
    struct snd_key key = { (uint64_t)(uintptr_t)place->object.bytes,
                           (uint64_t)(uintptr_t)place->function.bytes, place->address };
    uint32_t       at;

    if (!snd_map_get(&w->by_address, key, &at)) {
        at = w->places->count;
        if (!snd_grow(&w->places->rows, &w->places->room, at, sizeof *w->places->rows) ||
            !snd_map_put(&w->by_address, key, at)) {
            w->failed = true;
            return;
        }
        w->places->rows[at] = *place;
        w->places->count++;
        return;
    }
    w->places->rows[at].samples += place->samples;
    w->places->rows[at].self_ns = snd_add(w->places->rows[at].self_ns, place->self_ns);
}

static void add_row(struct work *w, const struct snd_sample_count *row,
                    struct snd_mixed_frame *frames)
{
    struct sonde_trace      *trace = w->counts->trace;
    uint32_t                 process = trace->threads[row->thread].shown.process;
    const struct snd_tables *tables = &trace->processes[process].tables;
    size_t inner = 0, count = snd_mixed_frames(&w->counts->mixed, process, row->stack, row->chain,
                                               frames, SND_MIXED_FRAMES_MAX);

    w->places->whole_ns = snd_add(w->places->whole_ns, row->time_ns);
    count = count < SND_MIXED_FRAMES_MAX ? count : SND_MIXED_FRAMES_MAX;
    while (inner < count && frames[inner].is_range)
        inner++;
    const struct snd_frame_record *leaf = inner < count ? record_of(tables, &frames[inner]) : NULL;
    if (!leaf)
        return;
    size_t outer = inner; /* what is inlined there has the same address */
    for (const struct snd_frame_record *next; outer + 1 < count; outer++) {
        next = record_of(tables, &frames[outer + 1]);
        if (!next || next->address != leaf->address || object_of(next) != object_of(leaf))
            break;
    }
    const struct snd_sample_place place = {
        .function = frames[outer].frame.function,
        .object = sonde_trace_string(trace, process, object_of(leaf)),
        .build_id = leaf->build_id ? sonde_trace_string(trace, process, leaf->build_id)
                                   : (struct sonde_text){ "", 0 },
        .address = leaf->address,
        .samples = row->samples,
        .self_ns = row->time_ns,
    };
    add_place(w, &place);
}

static struct snd_key function_key(const struct snd_sample_place *place)
{
    return (struct snd_key){ (uint64_t)(uintptr_t)place->object.bytes,
                             (uint64_t)(uintptr_t)place->function.bytes, 0 };
}

static int compare_texts(struct sonde_text x, struct sonde_text y)
{
    return snd_order_at(x.bytes, x.length, y.bytes, y.length);
}

static int compare(const void *left, const void *right)
{
    const struct snd_sample_place *x = left, *y = right;

    int order = SND_FALLING(x->function_ns, y->function_ns);

    if (order == 0)
        order = compare_texts(x->function, y->function);
    if (order == 0)
        order = compare_texts(x->object, y->object);
    return order ? order : SND_RISING(x->address, y->address);
}

/* Rows of a function follow each other: its first row by number holds its sum meanwhile. */
static void sort_rows(struct work *w)
{
    struct snd_map           functions = { 0 };
    struct snd_sample_place *rows = w->places->rows;
    uint32_t                 first;

    for (uint32_t i = 0; i < w->places->count && !w->failed; i++) {
        if (!snd_map_get(&functions, function_key(&rows[i]), &first)) {
            first = i;
            w->failed |= !snd_map_put(&functions, function_key(&rows[i]), i);
        }
        rows[first].function_ns = snd_add(rows[first].function_ns, rows[i].self_ns);
    }
    for (uint32_t i = 0; i < w->places->count && !w->failed; i++)
        if (snd_map_get(&functions, function_key(&rows[i]), &first))
            rows[i].function_ns = rows[first].function_ns;
    snd_map_release(&functions);
    snd_sort(rows, w->places->count, sizeof *rows, compare);
}

enum sonde_status snd_sample_places_make(struct snd_sample_places *places,
                                         struct sonde_trace *trace, struct sonde_error *err)
{
    struct work             w = { .places = places };
    struct snd_mixed_frame *frames = malloc(SND_MIXED_FRAMES_MAX * sizeof *frames);

    *places = (struct snd_sample_places){ 0 };
    enum sonde_status st = snd_sample_counts_new(trace, &w.counts, err);
    for (uint32_t i = 0; st == SONDE_OK && frames && i < w.counts->count && !w.failed; i++)
        if (!w.counts->rows[i].waits)
            add_row(&w, &w.counts->rows[i], frames);
    if (st == SONDE_OK)
        sort_rows(&w);
    if (st == SONDE_OK && (!frames || w.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the instructions");
    snd_sample_counts_free(w.counts);
    snd_map_release(&w.by_address);
    free(frames);
    return st;
}

void snd_sample_places_release(struct snd_sample_places *places)
{
    free(places->rows);
    *places = (struct snd_sample_places){ 0 };
}
