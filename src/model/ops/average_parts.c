/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/average_parts.c - averages of some threads, made by a worker of a divided walk, and added up.
 *
 * Times are sums of whole numbers, and the first range of a row is the least of an order without equals, so that it does not matter who counted which
 * thread. Sums of FLOPs are floating-point: they are the same in any order as long as all that is added is whole, and no sum is beyond
 * what a double counts by ones. A part that meets anything else says that the walk cannot be divided.
 */
#include <stdlib.h>

#include "model/ops/averages.h"

/* ----------------------------------------------------------------------- a part */

static void begin_part(void *user, struct snd_assembly *assembly)
{
    struct sonde_averages *part = user;

    part->assembly = assembly;
}

static void free_part(void *user)
{
    snd_average_release_rows(user);
    free(user);
}

static bool split(void *user, struct snd_consumer *consumer)
{
    const struct sonde_averages *a = user;
    struct sonde_averages       *part = calloc(1, sizeof *part);

    if (!part)
        return false;
    part->trace = a->trace;
    part->options = a->options;
    part->is_part = true;
    if (!snd_average_begin_groups(part)) {
        free_part(part);
        return false;
    }
    consumer->user = part;
    consumer->begin = begin_part;
    consumer->other = NULL; /* calls of functions claim memory, of which there is none */
    return true;
}

/* A row for each name, at most. */
static uint64_t part_bytes(const void *user)
{
    const struct sonde_averages *a = user;
    uint64_t name = a->options.groups != 0 ? sizeof *a->latest + sizeof *a->group_list
                                           : 4 * sizeof *a->by_name;

    return a->trace->names.count * (name + sizeof *a->rows);
}

/* --------------------------------------------------------------------- together */

/* The group of a part's row, in the texts of the whole. False: out of memory. */
static bool take_group(struct sonde_averages *a, const struct sonde_averages *part,
                       const struct snd_average_row *row, struct snd_average_group *group)
{
    *group = (struct snd_average_group){ row->group, SONDE_NONE, SONDE_NONE,
                                         SONDE_NONE, SONDE_NONE, SONDE_NONE,
                                         SONDE_NONE, row->user,  row->on_device };
    if (a->options.groups == 0)
        return true;
    *group = part->group_list[row->group];
    if (group->shapes == SONDE_NONE)
        return true;
    const struct snd_text *text = &part->texts.items[group->shapes];
    return snd_texts_add(&a->texts, text->bytes, text->length, &group->shapes);
}

static void take_first(struct snd_average_row *row, const struct snd_average_row *one)
{
    if (!snd_average_is_first(row, one->first_ns, one->first_end_ns, one->first_thread,
                              one->first_serial))
        return;
    row->first_ns = one->first_ns;
    row->first_end_ns = one->first_end_ns;
    row->first_thread = one->first_thread;
    row->first_serial = one->first_serial;
    row->scope = one->scope;
    row->is_async = one->is_async;
    row->has_parent = one->has_parent;
}

/* Adds a row of `part` to that of the group. False: out of memory. */
static bool add_to_group(struct sonde_averages *a, const struct sonde_averages *part,
                         const struct snd_average_row *one, const struct snd_average_group *group)
{
    struct snd_average_row *row = snd_average_group_row(a, group);

    if (!row)
        return false;
    row->min_ns = row->count == 0 || one->min_ns < row->min_ns ? one->min_ns : row->min_ns;
    row->max_ns = row->count == 0 || one->max_ns > row->max_ns ? one->max_ns : row->max_ns;
    take_first(row, one);
    row->count += one->count;
    row->total_ns = snd_add(row->total_ns, one->total_ns);
    row->self_ns = snd_add(row->self_ns, one->self_ns);
    return one->more == 0 || snd_average_add_more(a, row, &part->mores[one->more - 1]);
}

static bool add_row(struct sonde_averages *a, const struct sonde_averages *part,
                    const struct snd_average_row *one)
{
    struct snd_average_group group;

    return take_group(a, part, one, &group) && add_to_group(a, part, one, &group);
}

static bool join(void *user, void *part_user)
{
    struct sonde_averages       *a = user;
    const struct sonde_averages *part = part_user;

    a->totals.self_ns = snd_add(a->totals.self_ns, part->totals.self_ns);
    a->totals.has_shapes |= part->totals.has_shapes;
    a->totals.has_stacks |= part->totals.has_stacks;
    a->totals.has_flops |= part->totals.has_flops;
    a->totals.has_overloads |= part->totals.has_overloads;
    for (uint32_t i = 0; i < part->row_count; i++)
        if (!add_row(a, part, &part->rows[i]))
            return false;
    return true;
}

const struct snd_division snd_average_division = {
    .split = split, .join = join, .free_part = free_part, .part_bytes = part_bytes
};

/* ----------------------------------------------------------- by name, of those by shape */

bool snd_average_sum_names(struct sonde_averages *a, const struct sonde_averages *by_shape,
                           bool *exact)
{
    struct snd_assembly nobodys = { .trace = a->trace }; /* takes note where memory is out */
    bool                good = snd_average_begin_groups(a);

    a->assembly = &nobodys;
    a->totals = by_shape->totals;
    for (uint32_t i = 0; good && i < by_shape->row_count; i++) {
        const struct snd_average_row *row = &by_shape->rows[i];
        struct snd_average_group      group = by_shape->group_list[row->group];
        group.shapes = SONDE_NONE;
        good = add_to_group(a, by_shape, row, &group);
    }
    a->assembly = NULL;
    *exact = !a->is_inexact;
    return good;
}
