/* SPDX-License-Identifier: Apache-2.0 */
/* model/assemblyleaves.c - calls without anything inside, which most ranges of a framework are, in one piece. */
#include <stdlib.h>

#include "format/fields.h"
#include "model/assemblyparts.h"

/* Asks the consumer what to call ranges of this call record; false: out of memory. */
static bool ask_kind(struct snd_assembly *a, struct snd_lane *lane, const struct snd_leaf *leaf,
                     bool claimed, struct snd_known_call *known)
{
    struct snd_call_attr attrs[SND_CALL_ATTRS];
    struct snd_range     r = { .name = snd_name_of(lane->from, leaf->call->name),
                               .shapes = leaf->call->shapes,
                               .sequence = SND_NO_SEQUENCE,
                               .claimed = claimed,
                               .is_op = true };
    size_t               count = snd_call_attrs(leaf->call, attrs);

    for (size_t i = 0; i < count; i++)
        snd_range_attribute(a, lane, &r, attrs[i].key, attrs[i].value);
    snd_range_judge(a, lane, &r);
    uint32_t kind = a->consumer.kind(a->consumer.user, lane, &r);
    *known = (struct snd_known_call){ r.flops, kind + 1 };
    if (kind == UINT32_MAX)
        snd_assembly_stop(a);
    return kind != UINT32_MAX;
}

/* Those that are more than a call in a call go the long way. */
static bool is_plain(const struct snd_assembly *a, const struct snd_lane *lane,
                     const struct snd_call_record *call)
{
    uint32_t name = snd_name_of(lane->from, call->name);

    return call->scope != SONDE_SCOPE_BACKWARD + 1 && !(call->flags & SND_CALL_ASYNC) &&
           name != UINT32_MAX && !(a->name_flags[name] & SND_NAME_HIDDEN);
}

/* What on_begin(), the attributes and on_end() come to, where nothing is inside. */
static bool on_leaf(void *user, uint32_t thread, const struct snd_leaf *leaf)
{
    struct snd_assembly   *a = user;
    struct snd_lane       *lane = &a->lanes[thread];
    struct snd_open_range *above = snd_innermost(lane), *parent = snd_parent_at(lane, lane->depth);

    if (lane->depth == SND_DEPTH_MAX)
        return false;
    if (above && !above->range.judged)
        snd_range_judge(a, lane, &above->range);
    bool claimed = above && (above->range.claimed || above->range.formula == SND_FLOPS_FOUND);
    struct snd_known_call *known = &a->calls[lane->process][2 * (size_t)leaf->id + claimed];
    if (known->kind == 0 &&
        (!is_plain(a, lane, leaf->call) || !ask_kind(a, lane, leaf, claimed, known)))
        return false;
    snd_lane_see(a, thread, leaf->start_ns);
    snd_lane_see(a, thread, leaf->end_ns);
    lane->begins++;
    a->begins++;
    a->stats.ranges++;
    if (parent) {
        parent->range.children++;
        parent->range.child_ns = snd_add(parent->range.child_ns,
                                         snd_sub(leaf->end_ns, leaf->start_ns));
        parent->range.child_flops += known->flops;
    }
    bool has_sequence = (leaf->call->flags & SND_CALL_SEQUENCE) && leaf->has_sequence;
    const struct snd_leaf_range range = { leaf->start_ns, leaf->end_ns,
                                          has_sequence ? (int64_t)(leaf->sequence & INT64_MAX)
                                                       : SND_NO_SEQUENCE,
                                          known->kind - 1 };
    a->consumer.leaf(a->consumer.user, lane, &range, above, parent);
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
