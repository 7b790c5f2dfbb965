/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/open_ranges.h - what the files of the assembly share.
 *
 *     assemble.c          walks, for all consumers that want to
 *     assembly.c          closes ranges, and hands them on
 *     divided.c           the same by several threads, each with an assembly
 *     open_ranges.c       opens them; walks that open none
 *     range_attributes.c  their attributes
 *     leaf_calls.c        ranges of frameworks, by their call records; ranges with nothing inside
 *     torch_rules.c       what names mean to torch
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANGES_OPEN_RANGES_H
#define SND_MODEL_RANGES_OPEN_RANGES_H

#include <string.h>

#include "model/ranges/assembly.h"

static inline void snd_range_call(const struct snd_range_calls *calls, struct snd_lane *lane,
                                  struct snd_open_range *range, struct snd_open_range *parent)
{
    const struct snd_range_call *end = calls->items + calls->count;

    for (const struct snd_range_call *one = calls->items; one < end; one++)
        one->call(one->user, lane, range, parent);
}

static inline struct snd_open_range *snd_innermost(const struct snd_lane *lane)
{
    return lane->depth > 0 ? &lane->open[lane->depth - 1] : NULL;
}

/* The visible parent of what lies in this one; NULL for none. */
static inline struct snd_open_range *snd_shown_of(const struct snd_lane *lane,
                                                  struct snd_open_range *above)
{
    if (!above || !above->range.hidden)
        return above;
    return above > lane->open ? above - 1 : NULL; /* children of a hidden range are not hidden */
}

/* The visible parent of the range at `place`; NULL for none. */
static inline struct snd_open_range *snd_parent_at(const struct snd_lane *lane, uint32_t place)
{
    return place > 0 ? snd_shown_of(lane, &lane->open[place - 1]) : NULL;
}

/* An event of the thread, at this time. */
static inline struct snd_lane *snd_lane_see(struct snd_assembly *a, uint32_t thread, int64_t ns)
{
    struct snd_lane *lane = &a->lanes[thread];

    if (lane->events++ == 0)
        lane->first_ns = ns;
    lane->last_ns = ns;
    return lane;
}

/*
 * A range's attributes are recorded before its children, so its kind and formula are known when its
 * first child opens, or when it closes. The outermost operator with a formula counts; its
 * descendants are part of it.
 */
void snd_range_count(struct snd_assembly *a, const struct snd_lane *lane, struct snd_range *r);
static inline void snd_range_judge(struct snd_assembly *a, const struct snd_lane *lane,
                                   struct snd_range *r)
{
    if (r->judged)
        return;
    r->judged = true;
    if (r->scope == SONDE_SCOPE_BACKWARD) {
        r->is_back = true;
        r->back_sequence = r->sequence;
        r->back_thread = r->fwd_thread;
    }
    if (r->flops > 0)
        r->formula = SND_FLOPS_FOUND; /* marked by the program itself */
    else if ((a->name_flags[r->name] & SND_NAME_FORMULA) && !r->hidden)
        snd_range_count(a, lane, r);
}
/* A range has a child with these arguments, which may tell its FLOPs. */
void snd_range_learn_from(struct snd_assembly *a, const struct snd_lane *lane, struct snd_range *r,
                          uint32_t child_arguments);
static inline void snd_range_learn(struct snd_assembly *a, const struct snd_lane *lane,
                                   struct snd_range *r, uint32_t child_arguments)
{
    if (r->formula == SND_FLOPS_UNKNOWN && (a->name_flags[r->name] & SND_NAME_LEARNS))
        snd_range_learn_from(a, lane, r, child_arguments);
}

/* For one more open range. False: it is too deep, or memory is out. */
bool snd_lane_make_room(struct snd_assembly *a, struct snd_lane *lane);

/* Opens a range inside the innermost one of the lane. NULL: it is too deep, or memory is out. */
static inline struct snd_open_range *snd_lane_open(struct snd_assembly *a, struct snd_lane *lane,
                                                   int64_t ns, uint32_t name, uint32_t shapes,
                                                   bool is_op)
{
    uint32_t number = snd_name_of(lane->from, name);

    if (number == UINT32_MAX) {
        a->stats.missing_names++;
        number = a->trace->unknown_name;
    }
    static_assert(
        (SND_DEPTH_MAX & (SND_DEPTH_MAX - 1)) == 0,
        "rooms double: the greatest depth is one, and is looked at when there is none left");
    if (lane->depth == lane->room && !snd_lane_make_room(a, lane))
        return NULL;
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
        snd_range_judge(a, lane, &above->range);
        r->range.claimed = above->range.claimed || above->range.formula == SND_FLOPS_FOUND;
        r->range.is_back = above->range.is_back;
        r->range.back_sequence = above->range.back_sequence;
        r->range.back_thread = above->range.back_thread;
    }
    if (r->range.hidden)
        return r;
    struct snd_open_range *parent = snd_shown_of(lane, above);
    if (parent)
        parent->range.children++;
    snd_range_call(&a->opens, lane, r, parent);
    return r;
}
/* The visitor's `call`. */
void snd_assembly_on_call(void *user, uint32_t thread, int64_t ns,
                          const struct snd_table_call *call, const uint64_t *sequence);

/* Before the innermost range that a person named may be another: that one gets what was shared with it. */
void               snd_lane_give_shared(struct snd_assembly *a, struct snd_lane *lane);
static inline void snd_lane_settle(struct snd_assembly *a, struct snd_lane *lane)
{
    if (lane->shares)
        snd_lane_give_shared(a, lane);
}
/* After it: whether the thread has one. */
void snd_lane_named(struct snd_assembly *a, struct snd_lane *lane);
/* Tells the consumers of it. */
void snd_hand_attribute(const struct snd_assembly *a, struct snd_lane *lane,
                        struct snd_open_range *open, uint8_t key);
void snd_apply_attribute(struct snd_assembly *a, struct snd_lane *lane, uint8_t key,
                         uint64_t value);

/* Fills a->name_flags. False: out of memory. */
bool snd_assembly_names(struct snd_assembly *a);

/* The visitor, lanes, and what is known of names, for the consumers of the list. */
SND_CHECKED enum sonde_status snd_assembly_prepare(struct snd_assembly *a, struct sonde_error *err);
/* Which thread and process each lane is of. */
void snd_assembly_number_lanes(struct snd_assembly *a);
/* Puts a consumer at the end of the list. */
void snd_assembly_add(struct snd_assembly *a, const struct snd_consumer *consumer);
/* Closes what is open at the end of the trace. */
void snd_assembly_close_all(struct snd_assembly *a);
/*
 * divided.c: a walk by thread of all consumers by several threads. Then `done`, and all is as after a walk, but names are not judged.
 * Not if one of the list cannot be divided, or little would be gained. Errors: as snd_assemble().
 */
SND_CHECKED enum sonde_status snd_assembly_divide(struct snd_assembly *a, bool *done,
                                                  struct sonde_error *err);

/* Has the walk pass over ranges. */
void snd_assembly_pass_ranges(struct snd_visitor *visitor);

/* Makes the walk pass leaves; false: out of memory. */
bool snd_leaves_prepare(struct snd_assembly *a);
void snd_leaves_release(struct snd_assembly *a);

#endif
