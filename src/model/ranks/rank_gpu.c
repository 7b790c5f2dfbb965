/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/rank_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/compare.h"

enum { COMPUTE, COMMUNICATION, BOTH, COPY, ANY, SUMS };

/* A part of a rank's time, and what its GPU did in it so far. */
struct window {
    int64_t from_ns, until_ns;
    int64_t sums[SUMS];
    int64_t covered[SUMS]; /* until when each has been counted */
    int64_t first_ns, last_ns;
};

static void open_window(struct window *w, int64_t from_ns, int64_t until_ns)
{
    *w = (struct window){
        .from_ns = from_ns, .until_ns = until_ns, .first_ns = INT64_MAX, .last_ns = INT64_MIN
    };
    for (int i = 0; i < SUMS; i++)
        w->covered[i] = INT64_MIN;
}

/* Union of intervals that come in the order of their begin. */
static void cover(struct window *w, int kind, int64_t start, int64_t end)
{
    int64_t *until = &w->covered[kind];

    if (end <= *until)
        return;
    w->sums[kind] = snd_add(w->sums[kind], snd_sub(end, start > *until ? start : *until));
    *until = end;
}

static void add_item(struct window *w, int kind, int64_t start, int64_t end)
{
    start = start > w->from_ns ? start : w->from_ns;
    end = end < w->until_ns ? end : w->until_ns;
    if (end < start)
        return;
    w->first_ns = start < w->first_ns ? start : w->first_ns;
    w->last_ns = end > w->last_ns ? end : w->last_ns;
    cover(w, kind, start, end);
    if (kind != COPY)
        cover(w, BOTH, start, end);
    cover(w, ANY, start, end);
}

static bool is_communication(struct sonde_trace *trace, const struct snd_device_item *item)
{
    struct snd_text name = trace->names.items[snd_device_name(trace, item)];

    return snd_begins_with_at(name.bytes, name.length, "nccl") &&
           memmem(name.bytes, name.length, "Kernel", 6);
}

/* The works of one process, by begin. */
struct works {
    struct sonde_trace       *trace;
    const struct snd_devices *devices;
    uint32_t                  from, to; /* of devices->by_time */
};

/* Windows follow each other. */
static void divide(const struct works *works, struct window *windows, uint32_t count)
{
    uint32_t first = 0;

    for (uint32_t i = works->from; i < works->to; i++) {
        const struct snd_device_item *item = &works->devices->items[works->devices->by_time[i]];
        const struct snd_work_record *work = snd_device_work(works->trace, item);
        int64_t                       end = snd_add(item->start_ns, item->duration_ns);
        if (!snd_work_counts(work))
            continue;
        int kind = work->kind != SND_WORK_KERNEL          ? COPY
                   : is_communication(works->trace, item) ? COMMUNICATION
                                                          : COMPUTE;
        while (first < count && windows[first].until_ns <= item->start_ns)
            first++;
        for (uint32_t k = first; k < count && windows[k].from_ns <= end; k++)
            add_item(&windows[k], kind, item->start_ns, end);
    }
}

static void fill_row(struct snd_rank_row *row, const struct window *w)
{
    row->compute_ns = w->sums[COMPUTE];
    row->communication_ns = w->sums[COMMUNICATION];
    row->exposed_ns = snd_sub(w->sums[BOTH], w->sums[COMPUTE]);
    row->copy_ns = w->sums[COPY];
    row->idle_ns = snd_sub(row->span_ns, w->sums[ANY]);
}

/* False: it did nothing. */
static bool divide_whole(const struct works *works, struct snd_rank_row *row)
{
    struct window all;

    open_window(&all, INT64_MIN, INT64_MAX);
    divide(works, &all, 1);
    if (all.last_ns == INT64_MIN)
        return false;
    row->start_ns = all.first_ns;
    row->span_ns = snd_sub(all.last_ns, all.first_ns);
    fill_row(row, &all);
    return true;
}

/* False: no memory. */
static bool divide_steps(const struct works *works, struct snd_rank_row *rows, uint32_t count)
{
    struct window *windows = calloc((size_t)count + 1, sizeof *windows);

    if (!windows)
        return false;
    for (uint32_t i = 0; i < count; i++)
        open_window(&windows[i], rows[i].start_ns, snd_add(rows[i].start_ns, rows[i].span_ns));
    divide(works, windows, count);
    for (uint32_t i = 0; i < count; i++)
        fill_row(&rows[i], &windows[i]);
    free(windows);
    return true;
}

enum sonde_status snd_rank_gpu_divide(struct sonde_trace *trace, struct snd_rank_times *times,
                                      const uint32_t *row_of, struct sonde_error *err)
{
    struct works      works = { .trace = trace };
    enum sonde_status status = snd_trace_devices_by_time(trace, &works.devices, err);
    uint32_t          step = 0;

    for (; status == SONDE_OK && works.devices && works.from < works.devices->count;
         works.from = works.to) {
        const struct snd_devices *devices = works.devices;
        uint32_t                  process = devices->items[devices->by_time[works.from]].process;
        for (works.to = works.from; works.to < devices->count &&
                                    devices->items[devices->by_time[works.to]].process == process;)
            works.to++;
        if (row_of[process] == SONDE_NONE || !divide_whole(&works, &times->rows[row_of[process]]))
            continue;
        while (step < times->step_count && times->steps[step].process < process)
            step++;
        uint32_t first = step;
        while (step < times->step_count && times->steps[step].process == process)
            step++;
        if (step > first && !divide_steps(&works, &times->steps[first], step - first))
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the steps of the ranks");
    }
    return status;
}
