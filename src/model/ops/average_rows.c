/* SPDX-License-Identifier: Apache-2.0 */
/* model/ops/average_rows.c - the rows of averages, shown by value; declared in averages.h. */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "base/system/crew.h"
#include "model/ops/averages.h"

static const struct sonde_text own_names[SND_AVERAGE_NAMES] = {
    [SND_AVERAGE_STEP] = { "ProfilerStep*", 13 },
    [SND_AVERAGE_MEMORY] = { "[memory]", 8 },
};

static_assert(sizeof(struct snd_average_row) <= 80, "a million of them are kept");

/* -------------------------------------------------------------------- as kept */

uint32_t snd_average_add_row(struct sonde_averages *a, const struct snd_average_group *group)
{
    if (!snd_grow(&a->rows, &a->row_room, a->row_count, sizeof *a->rows) ||
        (a->options.groups != 0 &&
         !snd_grow(&a->group_list, &a->group_room, a->row_count, sizeof *a->group_list))) {
        snd_average_give_up(a);
        return 0;
    }
    if (a->options.groups != 0)
        a->group_list[a->row_count] = *group;
    a->rows[a->row_count] = (struct snd_average_row){ .first_ns = INT64_MAX,
                                                      .group = a->options.groups != 0 ? a->row_count
                                                                                      : group->name,
                                                      .user = group->user,
                                                      .on_device = group->on_device };
    return ++a->row_count;
}

/* A double counts by ones up to 2^53, and as many parts as there can be are added. */
#define WHOLE_MAX ((double)((uint64_t)1 << 53))
#define PART_MAX (WHOLE_MAX / SND_CREW_MAX)

static bool is_whole(double sum, double added, double most)
{
    return added >= 0 && sum <= most && (double)(uint64_t)added == added;
}

/* Whether sums come to the same in any order: what parts add must, or the walk is not divided. */
static void check_sum(struct sonde_averages *a, const struct snd_average_more *sum,
                      const struct snd_average_more *added)
{
    double most = a->is_part ? PART_MAX : WHOLE_MAX;

    if (is_whole(sum->flops, added->flops, most) && is_whole(sum->macs, added->macs, most) &&
        is_whole(sum->moved_bytes, added->moved_bytes, most))
        return;
    a->is_inexact = true;
    if (a->is_part)
        snd_assembly_undivide(a->assembly);
}

bool snd_average_add_more(struct sonde_averages *a, struct snd_average_row *row,
                          const struct snd_average_more *more)
{
    if (more->cpu_bytes == 0 && more->self_cpu_bytes == 0 && more->device_bytes == 0 &&
        more->self_device_bytes == 0 && more->device_ns == 0 && more->self_device_ns == 0 &&
        more->flops == 0 && more->macs == 0 && more->moved_bytes == 0)
        return true;
    if (row->more == 0) {
        if (!snd_grow(&a->mores, &a->more_room, a->more_count, sizeof *a->mores))
            return false;
        a->mores[a->more_count] = (struct snd_average_more){ 0 };
        row->more = ++a->more_count;
    }
    struct snd_average_more *sum = &a->mores[row->more - 1];
    sum->cpu_bytes = snd_add(sum->cpu_bytes, more->cpu_bytes);
    sum->self_cpu_bytes = snd_add(sum->self_cpu_bytes, more->self_cpu_bytes);
    sum->device_bytes = snd_add(sum->device_bytes, more->device_bytes);
    sum->self_device_bytes = snd_add(sum->self_device_bytes, more->self_device_bytes);
    sum->device_ns = snd_add(sum->device_ns, more->device_ns);
    sum->self_device_ns = snd_add(sum->self_device_ns, more->self_device_ns);
    sum->flops += more->flops;
    sum->macs += more->macs;
    sum->moved_bytes += more->moved_bytes;
    check_sum(a, sum, more);
    return true;
}

static int compare_rows(const void *x, const void *y)
{
    const struct snd_average_row *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->first_ns, b->first_ns),
                     SND_FALLING(a->first_end_ns, b->first_end_ns),
                     SND_RISING(a->first_thread, b->first_thread),
                     SND_RISING(a->first_serial, b->first_serial));
}

void snd_average_sort(struct sonde_averages *a)
{
    snd_sort(a->rows, a->row_count, sizeof *a->rows, compare_rows);
}

/* ------------------------------------------------------------------- as shown */

static struct sonde_text text_of(const struct snd_texts *texts, uint32_t id)
{
    if (id == SONDE_NONE)
        return (struct sonde_text){ "", 0 };
    return (struct sonde_text){ texts->items[id].bytes, texts->items[id].length };
}

static void show_group(const struct sonde_averages *a, const struct snd_average_group *g,
                       struct sonde_average *shown)
{
    const struct snd_texts *names = &a->trace->names;

    shown->name = g->name < names->count ? text_of(names, g->name)
                                         : own_names[g->name - names->count];
    shown->process = g->process;
    shown->thread = g->thread;
    shown->module = text_of(names, g->module);
    shown->shapes = text_of(&a->texts, g->shapes);
    shown->stack = text_of(&a->texts, g->stack);
    shown->overload = text_of(names, g->overload);
}

struct sonde_average sonde_averages_get(const struct sonde_averages *a, size_t index)
{
    static const struct snd_average_more none;

    if (index >= a->row_count)
        return (struct sonde_average){ 0 };
    const struct snd_average_row  *row = &a->rows[index];
    const struct snd_average_more *more = row->more != 0 ? &a->mores[row->more - 1] : &none;
    const struct snd_average_group by_name = { row->group, SONDE_NONE, SONDE_NONE,
                                               SONDE_NONE, SONDE_NONE, SONDE_NONE,
                                               SONDE_NONE, row->user,  row->on_device };
    struct sonde_average           shown = { .count = row->count,
                                             .total_ns = row->total_ns,
                                             .self_ns = row->self_ns,
                                             .min_ns = row->min_ns,
                                             .max_ns = row->max_ns,
                                             .cpu_bytes = more->cpu_bytes,
                                             .self_cpu_bytes = more->self_cpu_bytes,
                                             .device_bytes = more->device_bytes,
                                             .self_device_bytes = more->self_device_bytes,
                                             .device_ns = more->device_ns,
                                             .self_device_ns = more->self_device_ns,
                                             .flops = more->flops,
                                             .macs = more->macs,
                                             .moved_bytes = more->moved_bytes,
                                             .scope = row->scope,
                                             .is_async = row->is_async,
                                             .has_parent = row->has_parent,
                                             .is_user_annotation = row->user,
                                             .on_device = row->on_device,
                                             .uses_gpu = a->totals.uses_gpu };
    show_group(a, a->options.groups != 0 ? &a->group_list[row->group] : &by_name, &shown);
    return shown;
}

/* Made when first asked for, and kept until the averages are freed. */
const struct sonde_average *sonde_averages_row(const struct sonde_averages *a, size_t index)
{
    struct snd_average_shown *shown = a->shown;

    if (index >= a->row_count)
        return NULL;
    if (!shown->rows)
        shown->rows = calloc(a->row_count, sizeof *shown->rows);
    if (!shown->rows)
        return NULL;
    if (!shown->rows[index]) {
        struct sonde_average *row = snd_arena_take(&shown->arena, sizeof *row);
        if (!row)
            return NULL;
        *row = sonde_averages_get(a, index);
        shown->rows[index] = row;
    }
    return shown->rows[index];
}

/* ---------------------------------------------------- passes of a benchmark */

uint64_t sonde_averages_passes(const struct sonde_averages *averages)
{
    uint64_t passes = 0;

    for (size_t i = 0; i < averages->row_count; i++) {
        struct sonde_average  row = sonde_averages_get(averages, i);
        const struct snd_text name = { row.name.bytes, row.name.length };
        if (snd_name_judge(name) & SND_NAME_PASS)
            passes += row.count;
    }
    return passes < INT32_MAX ? passes : 0;
}

struct sonde_average sonde_average_of_pass(const struct sonde_average *row, uint64_t passes)
{
    struct sonde_average mean = *row;

    if (passes < 2)
        return mean;
    int64_t *const numbers[] = { &mean.total_ns,       &mean.self_ns,       &mean.cpu_bytes,
                                 &mean.self_cpu_bytes, &mean.device_bytes,  &mean.self_device_bytes,
                                 &mean.device_ns,      &mean.self_device_ns };
    for (size_t i = 0; i < SND_COUNT_OF(numbers); i++)
        *numbers[i] /= (int64_t)passes;
    mean.count = (row->count + passes / 2) / passes;
    mean.flops /= (double)passes;
    mean.macs /= (double)passes;
    mean.moved_bytes /= (double)passes;
    return mean;
}
