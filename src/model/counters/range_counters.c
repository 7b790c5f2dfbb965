/* SPDX-License-Identifier: Apache-2.0 */
#include "model/counters/range_counters.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "model/ranges/assembly.h"
#include "read/said/trace_metadata.h"

#define MOST SND_THREAD_COUNTERS_MOST

/* An open range; or the next free place. */
struct slot {
    uint64_t start[MOST], child[MOST];
    uint32_t next_free; /* plus one */
};

struct walk {
    struct snd_range_counts *out;
    struct snd_assembly      assembly;
    uint64_t (*now)[MOST];  /* of each thread, since the begin of the walk */
    uint8_t (*place)[MOST]; /* of each process: number in `out` plus one of its own numbers */
    uint32_t    *row_of;    /* of each name, plus one */
    struct slot *slots;
    uint32_t     slot_count, slot_room, free; /* free: plus one */
};

/* ------------------------------------------------------------- which there are */

bool snd_range_counts_there(const struct sonde_trace *trace)
{
    struct sonde_text names;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        if (snd_meta_find(trace, p, SND_META_COUNTERS_RANGES, &names))
            return true;
    return false;
}

/* ------------------------------------------------------------------ the walk */

static void on_counted(void *user, struct snd_lane *lane, uint64_t value)
{
    struct walk *w = user;
    uint32_t     number = (uint32_t)(value & 0xff);
    uint32_t     place = number < MOST ? w->place[lane->process][number] : 0;

    if (place != 0)
        w->now[lane->thread][place - 1] += value >> 8;
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct walk *w = user;
    uint32_t     at = w->free;

    (void)parent;
    if (at != 0) {
        w->free = w->slots[at - 1].next_free;
    } else if (snd_grow(&w->slots, &w->slot_room, w->slot_count, sizeof *w->slots)) {
        at = ++w->slot_count;
    } else {
        snd_assembly_stop(&w->assembly);
        return;
    }
    struct slot *slot = &w->slots[at - 1];
    *slot = (struct slot){ .next_free = 0 };
    memcpy(slot->start, w->now[lane->thread], sizeof slot->start);
    range->mark = at;
}

static struct snd_range_counts_row *find_row(struct walk *w, uint32_t name)
{
    struct snd_range_counts *out = w->out;

    if (w->row_of[name] == 0) {
        const struct snd_texts *names = &w->assembly.trace->names;
        if (!snd_grow(&out->rows, &out->room, out->count, sizeof *out->rows)) {
            snd_assembly_stop(&w->assembly);
            return NULL;
        }
        out->rows[out->count] = (struct snd_range_counts_row){
            .name = { names->items[name].bytes, names->items[name].length }
        };
        w->row_of[name] = ++out->count;
    }
    return &out->rows[w->row_of[name] - 1];
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct walk                 *w = user;
    struct snd_range_counts_row *row = range->mark ? find_row(w, range->range.name) : NULL;

    if (!row)
        return;
    struct slot *slot = &w->slots[range->mark - 1];
    row->count++;
    row->total_ns = snd_add(row->total_ns, range->range.total_ns);
    row->self_ns = snd_add(row->self_ns, snd_sub(range->range.total_ns, range->range.child_ns));
    for (uint32_t i = 0; i < w->out->names.count && !range->range.is_async; i++) {
        uint64_t rise = w->now[lane->thread][i] - slot->start[i];
        row->total[i] += rise;
        row->self[i] += rise > slot->child[i] ? rise - slot->child[i] : 0;
        if (parent && parent->mark)
            w->slots[parent->mark - 1].child[i] += rise;
    }
    slot->next_free = w->free;
    w->free = range->mark;
}

/* --------------------------------------------------------------------- whole */

static bool prepare(struct walk *w, struct sonde_trace *trace)
{
    struct sonde_text names;

    w->now = calloc((size_t)trace->thread_count + 1, sizeof *w->now);
    w->place = calloc((size_t)trace->process_count + 1, sizeof *w->place);
    w->row_of = calloc((size_t)trace->names.count + 1, sizeof *w->row_of);
    if (!w->now || !w->place || !w->row_of)
        return false;
    for (uint32_t p = 0; p < trace->process_count; p++)
        if (snd_meta_find(trace, p, SND_META_COUNTERS_RANGES, &names))
            snd_counter_names_add(&w->out->names, names, w->place[p]);
    return true;
}

static void release(struct walk *w)
{
    free(w->now);
    free(w->place);
    free(w->row_of);
    free(w->slots);
}

static enum sonde_status walk(struct sonde_trace *trace, struct snd_range_counts *out,
                              struct sonde_error *err)
{
    struct walk               w = { .out = out };
    const struct snd_consumer consumer = {
        .user = &w, .any_flops = true, .open = on_open, .close = on_close, .counted = on_counted
    };

    *out = (struct snd_range_counts){ .count = 0 };
    enum sonde_status status = SONDE_OK;
    if (!prepare(&w, trace))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the counters of ranges");
    if (status == SONDE_OK) {
        status = snd_assemble(&w.assembly, trace, SONDE_BY_THREAD, &consumer, 1, err);
        snd_assembly_release(&w.assembly);
    }
    release(&w);
    return status;
}

static int compare_rows(const void *x, const void *y)
{
    const struct snd_range_counts_row *a = x, *b = y;

    return SND_FALLING(a->total_ns, b->total_ns);
}

enum sonde_status snd_range_counts_make(struct sonde_trace *trace, struct snd_range_counts *out,
                                        struct sonde_error *err)
{
    enum sonde_status status = walk(trace, out, err);

    if (status == SONDE_OK)
        snd_sort(out->rows, out->count, sizeof *out->rows, compare_rows);
    return status;
}

void snd_range_counts_release(struct snd_range_counts *counts)
{
    free(counts->rows);
    *counts = (struct snd_range_counts){ .count = 0 };
}
