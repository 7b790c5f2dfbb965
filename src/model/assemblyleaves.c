/* SPDX-License-Identifier: Apache-2.0 */
/* model/assemblyleaves.c - calls without anything inside, which most ranges of a framework are, in one piece. */
#include <stdlib.h>

#include "format/fields.h"
#include "model/assemblyparts.h"

/* Asks the consumer what to call ranges of this call record; false: out of memory. */
static bool ask_kind(struct snd_assembly *a, struct snd_lane *lane, const struct snd_leaf *leaf,
                     bool claimed, struct snd_known_call *known)
{
    const struct snd_call_record *call = &lane->from->tables.calls[leaf->id];
    struct snd_call_attr          attrs[SND_CALL_ATTRS];
    struct snd_range              r = { .name = snd_name_of(lane->from, call->name),
                                        .shapes = call->shapes,
                                        .sequence = SND_NO_SEQUENCE,
                                        .claimed = claimed,
                                        .is_op = true };
    size_t                        count = snd_call_attrs(call, attrs);

    for (size_t i = 0; i < count; i++)
        snd_range_attribute(a, lane, &r, attrs[i].key, attrs[i].value);
    snd_range_judge(a, lane, &r);
    uint32_t kind = a->consumer.kind(a->consumer.user, lane, &r);
    *known = (struct snd_known_call){ .flops = r.flops,
                                      .kind = kind,
                                      .known = kind != UINT32_MAX,
                                      .has_sequence = call->flags & SND_CALL_SEQUENCE };
    if (!known->known)
        snd_assembly_stop(a);
    return known->known;
}

/* Those that are more than a call in a call go the long way. */
static bool is_plain(const struct snd_assembly *a, const struct snd_lane *lane,
                     const struct snd_call_record *call)
{
    uint32_t name = snd_name_of(lane->from, call->name);

    return call->scope != SONDE_SCOPE_BACKWARD + 1 && !(call->flags & SND_CALL_ASYNC) &&
           name != UINT32_MAX && !(a->name_flags[name] & SND_NAME_HIDDEN);
}

/* What is known of calls like this one; NULL: it goes the long way. */
static __attribute__((noinline)) const struct snd_known_call *
learn(struct snd_assembly *a, struct snd_lane *lane, const struct snd_leaf *leaf, bool claimed)
{
    struct snd_known_call *known = &lane->calls[2 * (size_t)leaf->id + claimed];

    return is_plain(a, lane, &lane->from->tables.calls[leaf->id]) &&
                   ask_kind(a, lane, leaf, claimed, known)
               ? known
               : NULL;
}

/* The begin and the end. */
static inline void see_both(struct snd_lane *lane, const struct snd_leaf *leaf)
{
    if (lane->events == 0)
        lane->first_ns = leaf->start_ns;
    lane->events += 2;
    lane->last_ns = leaf->end_ns;
}

static inline void add_to_parent(struct snd_range *up, const struct snd_leaf *leaf, double flops)
{
    up->children++;
    up->child_ns = snd_add(up->child_ns, snd_sub(leaf->end_ns, leaf->start_ns));
    up->child_flops += flops;
}

/* What on_begin(), the attributes and on_end() come to, where nothing is inside. */
static bool on_leaf(void *user, uint32_t thread, const struct snd_leaf *leaf)
{
    struct snd_assembly   *a = user;
    struct snd_lane       *lane = &a->lanes[thread];
    struct snd_open_range *above = snd_innermost(lane), *parent = snd_parent_at(lane, lane->depth);
    bool                   claimed = false;

    if (above) {
        if (lane->depth == SND_DEPTH_MAX)
            return false;
        if (!above->range.judged)
            snd_range_judge(a, lane, &above->range);
        claimed = above->range.claimed || above->range.formula == SND_FLOPS_FOUND;
    }
    const struct snd_known_call *known = &lane->calls[2 * (size_t)leaf->id + claimed];
    if (!known->known && !(known = learn(a, lane, leaf, claimed)))
        return false;
    see_both(lane, leaf);
    lane->begins++;
    a->begins++;
    a->stats.ranges++;
    if (parent)
        add_to_parent(&parent->range, leaf, known->flops);
    a->consumer.leaf(a->consumer.user, lane, leaf, known, above, parent);
    return true;
}

bool snd_leaves_prepare(struct snd_assembly *a)
{
    a->calls = calloc((size_t)a->trace->process_count + 1, sizeof *a->calls);
    for (uint32_t i = 0; a->calls && i < a->trace->process_count; i++) {
        a->calls[i] = calloc(2 * (size_t)a->trace->processes[i].tables.call_count + 1,
                             sizeof **a->calls);
        if (!a->calls[i])
            return false;
    }
    for (uint32_t i = 0; a->calls && i < a->trace->thread_count; i++)
        a->lanes[i].calls = a->calls[a->lanes[i].process];
    a->visitor.leaf = on_leaf;
    return a->calls != NULL;
}

void snd_leaves_release(struct snd_assembly *a)
{
    for (uint32_t i = 0; a->calls && i < a->trace->process_count; i++)
        free(a->calls[i]);
    free(a->calls);
    a->calls = NULL;
}
