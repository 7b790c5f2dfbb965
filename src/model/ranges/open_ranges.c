/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranges/open_ranges.h"

#include <string.h>

static bool make_room(struct snd_lane *lane)
{
    return snd_grow(&lane->open, &lane->room, lane->depth, sizeof *lane->open);
}

struct snd_open_range *snd_lane_open(struct snd_assembly *a, struct snd_lane *lane, int64_t ns,
                                     uint32_t name, uint32_t shapes, bool is_op)
{
    uint32_t number = snd_name_of(lane->from, name);

    if (number == UINT32_MAX) {
        a->stats.missing_names++;
        number = a->trace->unknown_name;
    }
    if (lane->depth == SND_DEPTH_MAX) {
        lane->deeper++;
        a->stats.too_deep++;
        return NULL;
    }
    if (lane->depth == lane->room && !make_room(lane)) {
        snd_assembly_stop(a);
        return NULL;
    }
    struct snd_open_range *above = snd_innermost(lane);
    struct snd_open_range *r = &lane->open[lane->depth++];
    memset(&r->range, 0, sizeof r->range);
    r->range.start_ns = ns;
    r->range.name = number;
    r->range.shapes = shapes;
    r->range.sequence = SND_NO_SEQUENCE;
    r->range.collective_sequence = SND_NO_SEQUENCE;
    r->range.serial = ++lane->begins;
    r->range.is_op = is_op;
    r->range.hidden = !a->as_recorded && (a->name_flags[number] & SND_NAME_HIDDEN) &&
                      !(above && above->range.hidden);
    r->holds = false;
    r->attr_mask = 0;
    r->order = ++a->begins;
    if (above) {
        if (!above->range.judged)
            snd_range_judge(a, lane, &above->range);
        r->range.claimed = above->range.claimed || above->range.formula == SND_FLOPS_FOUND;
        r->range.is_back = above->range.is_back;
        r->range.back_sequence = above->range.back_sequence;
        r->range.back_thread = above->range.back_thread;
    }
    struct snd_open_range *parent = snd_parent_at(lane, lane->depth - 1);
    if (r->range.hidden)
        return r;
    if (parent)
        parent->range.children++;
    snd_range_call(&a->opens, lane, r, parent);
    return r;
}

/* ------------------------------------------------- walks that open no range */

static void pass_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    (void)user, (void)thread, (void)ns, (void)name, (void)shapes;
}

static void pass_call(void *user, uint32_t thread, int64_t ns, const struct snd_table_call *call,
                      const uint64_t *sequence)
{
    (void)user, (void)thread, (void)ns, (void)call, (void)sequence;
}

static void pass_end(void *user, uint32_t thread, int64_t ns)
{
    (void)user, (void)thread, (void)ns;
}

static bool pass_leaf(void *user, uint32_t thread, const struct snd_leaf *leaf)
{
    (void)user, (void)thread, (void)leaf;
    return true;
}

void snd_assembly_pass_ranges(struct snd_visitor *visitor)
{
    visitor->begin = pass_begin;
    visitor->call = pass_call;
    visitor->end = pass_end;
    visitor->leaf = pass_leaf;
}
