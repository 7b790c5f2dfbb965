/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/leaf_calls.c - ranges of frameworks, by their call records.
 *
 * A record has what all calls of it share, so that it is set at once instead of by attributes. Calls and
 * spans without anything inside, which most are, are handed over in one piece.
 */
#include <stdlib.h>

#include "format/fields.h"
#include "model/ranges/open_ranges.h"

/*
 * What its record says of a call, besides its name and its shapes. A consumer may have given the range
 * its parent's stack and module, which it keeps where it has none of its own.
 */
static inline void describe(struct snd_range *r, const struct snd_call_record *call)
{
    r->strides = call->strides;
    r->arguments = call->arguments;
    r->overload = call->overload;
    r->stack = call->stack != 0 ? call->stack : r->stack;
    r->module = call->module != 0 ? call->module : r->module;
    r->compiled = call->compiled;
    r->keywords = call->keywords;
    r->fwd_thread = (uint32_t)call->fwd_thread;
    r->scope = snd_scope_of(call->scope);
    r->is_async = (call->flags & SND_CALL_ASYNC) != 0;
}

/* ------------------------------------------------------------ with a begin */

void snd_call_keep(const struct snd_table_call *call, const uint64_t *sequence, uint32_t *attr_mask,
                   uint64_t attrs[SND_RANGE_ATTRS])
{
    const struct snd_call_record *record = &call->record;

    attrs[SND_ATTR_STRIDES] = record->strides;
    attrs[SND_ATTR_ARGUMENTS] = record->arguments;
    attrs[SND_ATTR_OVERLOAD] = record->overload;
    attrs[SND_ATTR_STACK] = record->stack;
    attrs[SND_ATTR_MODULE] = record->module;
    attrs[SND_ATTR_KEYWORDS] = record->keywords;
    attrs[SND_ATTR_FWD_THREAD] = record->fwd_thread;
    attrs[SND_ATTR_SCOPE] = record->scope;
    attrs[SND_ATTR_ASYNC] = 1;
    attrs[SND_ATTR_SEQUENCE] = sequence ? *sequence : 0;
    *attr_mask = (call->attr_mask & ((1u << SND_RANGE_ATTRS) - 1)) | (uint32_t)(sequence != NULL)
                                                                         << SND_ATTR_SEQUENCE;
}

void snd_assembly_on_call(void *user, uint32_t thread, int64_t ns,
                          const struct snd_table_call *call, const uint64_t *sequence)
{
    struct snd_assembly   *a = user;
    struct snd_lane       *lane = snd_lane_see(a, thread, ns);
    struct snd_open_range *open = snd_lane_open(a, lane, ns, call->record.name, call->record.shapes,
                                                true);

    if (!open)
        return;
    if (a->as_recorded)
        snd_call_keep(call, sequence, &open->attr_mask, open->attrs);
    snd_lane_settle(a, lane);
    describe(&open->range, &call->record);
    if (sequence)
        open->range.sequence = (int64_t)(*sequence & INT64_MAX);
    if (open->range.scope == SONDE_SCOPE_USER) {
        lane->named++;
        snd_lane_named(a, lane);
    }
    if (open->range.is_async)
        snd_hand_attribute(a, lane, open, SND_ATTR_ASYNC);
}

/* ---------------------------------------------------------- in one piece */

/* Of spans, so many names are known by number; a trace with more has its spans go the long way. */
#define LEAF_NAMES_MAX (1u << 16)

static uint32_t span_names(const struct snd_process *process)
{
    return process->tables.file_names <= LEAF_NAMES_MAX ? process->tables.file_names : 0;
}

/* Asks the consumers what to call ranges like this one; false: out of memory. */
static bool ask_kinds(struct snd_assembly *a, struct snd_lane *lane, struct snd_range *r,
                      struct snd_known_leaf *known)
{
    const struct snd_leaf_calls *calls = &a->leaf_calls;

    snd_range_judge(a, lane, r);
    known->flops = r->flops;
    known->known = true;
    for (uint32_t i = 0; i < calls->count; i++) {
        known->kinds[i] = calls->items[i].kind ? calls->items[i].kind(calls->items[i].user, lane, r)
                                               : 0;
        known->known &= known->kinds[i] != UINT32_MAX;
    }
    if (!known->known)
        snd_assembly_stop(a);
    return known->known;
}

/*
 * Those that are more than a call in a call go the long way. So does what a person named, which is charged
 * what other threads allocate meanwhile, unless nothing of theirs happens during a leaf.
 */
static bool is_plain(const struct snd_assembly *a, uint32_t name,
                     const struct snd_call_record *call)
{
    return call->scope != SONDE_SCOPE_BACKWARD + 1 && !(call->flags & SND_CALL_ASYNC) &&
           (call->scope != SONDE_SCOPE_USER + 1 || a->as_recorded) && name != UINT32_MAX &&
           (a->as_recorded || !(a->name_flags[name] & SND_NAME_HIDDEN));
}

/* What is known of ranges like this one; NULL: it goes the long way. */
static __attribute__((noinline)) const struct snd_known_leaf *
learn(struct snd_assembly *a, struct snd_lane *lane, const struct snd_leaf *leaf, bool claimed,
      struct snd_known_leaf *known)
{
    static const struct snd_call_record none;
    const struct snd_call_record *call = leaf->is_call ? &lane->from->tables.calls[leaf->id].record
                                                       : &none;
    struct snd_range r = { .name = snd_name_of(lane->from, leaf->is_call ? call->name : leaf->id),
                           .shapes = call->shapes,
                           .sequence = SND_NO_SEQUENCE,
                           .collective_sequence = SND_NO_SEQUENCE,
                           .claimed = claimed,
                           .is_op = leaf->is_call };

    if (!is_plain(a, r.name, call))
        return NULL;
    describe(&r, call);
    known->has_sequence = call->flags & SND_CALL_SEQUENCE;
    return ask_kinds(a, lane, &r, known) ? known : NULL;
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
    struct snd_open_range *above = snd_innermost(lane), *parent = snd_shown_of(lane, above);
    bool                   claimed = false;

    if (above) {
        if (lane->depth == SND_DEPTH_MAX)
            return false;
        snd_range_judge(a, lane, &above->range);
        claimed = above->range.claimed || above->range.formula == SND_FLOPS_FOUND;
    }
    if (!leaf->is_call && leaf->id >= span_names(lane->from))
        return false;
    size_t number = leaf->is_call ? leaf->id : (size_t)lane->from->tables.call_count + leaf->id;
    struct snd_known_leaf *known = &lane->leaves[2 * number + claimed];
    if (!known->known && !learn(a, lane, leaf, claimed, known))
        return false;
    see_both(lane, leaf);
    lane->begins++;
    a->begins++;
    a->stats.ranges++;
    if (parent) {
        add_to_parent(&parent->range, leaf, known->flops);
        snd_range_learn(a, lane, &parent->range,
                        leaf->is_call ? lane->from->tables.calls[leaf->id].record.arguments : 0);
    }
    for (uint32_t i = 0; i < a->leaf_calls.count; i++)
        a->leaf_calls.items[i].call(a->leaf_calls.items[i].user, lane, leaf, known, known->kinds[i],
                                    above, parent);
    return true;
}

bool snd_leaves_prepare(struct snd_assembly *a)
{
    a->leaves = calloc((size_t)a->trace->process_count + 1, sizeof *a->leaves);
    for (uint32_t i = 0; a->leaves && i < a->trace->process_count; i++) {
        const struct snd_process *p = &a->trace->processes[i];
        a->leaves[i] = calloc(2 * ((size_t)p->tables.call_count + span_names(p)) + 1,
                              sizeof **a->leaves);
        if (!a->leaves[i])
            return false;
    }
    for (uint32_t i = 0; a->leaves && i < a->trace->thread_count; i++)
        a->lanes[i].leaves = a->leaves[a->lanes[i].process];
    a->visitor.leaf = on_leaf;
    return a->leaves != NULL;
}

void snd_leaves_release(struct snd_assembly *a)
{
    for (uint32_t i = 0; a->leaves && i < a->trace->process_count; i++)
        free(a->leaves[i]);
    free(a->leaves);
    a->leaves = NULL;
}
