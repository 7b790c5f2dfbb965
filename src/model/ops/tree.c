/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/tree.c - the call tree with equal paths merged.
 *
 * A node is found by its parent and its name. A range remembers its node while it is open, so
 * that nothing is searched when it closes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "base/text/buf.h"
#include "format/fields.h"
#include "model/ranges/assembly.h"
#include "model/kept.h"
#include "model/ops/ops_wait.h"
#include "read/said/trace_metadata.h"

#define NODES_MAX (1u << 20) /* different paths; what is beyond counts for its parent only */
#define NO_NODE UINT32_MAX

#define RECENT 64u

/* A child of a node; all 0: none, as the root is nobody's. */
struct recent {
    uint32_t parent, name, node;
};

struct sonde_tree {
    struct sonde_trace  *trace;
    struct sonde_node   *nodes;
    uint32_t             count, room;
    uint32_t            *last_child; /* of each node, while the tree grows */
    uint32_t             last_room;
    struct snd_map       children; /* (parent, name) to node */
    struct recent        recent[RECENT];
    struct snd_arena     arena; /* names of threads */
    bool                 per_thread;
    uint32_t            *thread_node; /* of each thread, 0 none yet */
    struct snd_assembly *assembly;    /* while the walk lasts */
    struct snd_consumer  consumer;
    bool                 is_done; /* the walk is */
};

static uint32_t add_node(struct sonde_tree *t, uint32_t parent, struct sonde_text name)
{
    if (t->count >= NODES_MAX)
        return NO_NODE;
    if (!snd_grow(&t->nodes, &t->room, t->count, sizeof *t->nodes) ||
        !snd_grow(&t->last_child, &t->last_room, t->count, sizeof *t->last_child)) {
        snd_assembly_stop(t->assembly);
        return NO_NODE;
    }
    uint32_t node = t->count++;
    t->last_child[node] = 0;
    t->nodes[node] = (struct sonde_node){ .name = name, .parent = parent };
    if (node == 0)
        return node;
    t->nodes[node].depth = t->nodes[parent].depth + 1;
    if (t->last_child[parent] == 0)
        t->nodes[parent].first_child = node;
    else
        t->nodes[t->last_child[parent]].next_sibling = node;
    t->last_child[parent] = node;
    return node;
}

/* Where a child that was met lately is remembered. */
static inline struct recent *recent_of(struct sonde_tree *t, uint32_t parent, uint32_t name)
{
    return &t->recent[(parent * 31 + name) % RECENT];
}

static uint32_t look_up(struct sonde_tree *t, uint32_t parent, uint32_t name)
{
    struct snd_key key = { parent, name, 0 };
    uint32_t       node;

    if (snd_map_get(&t->children, key, &node))
        return node;
    const struct snd_text *text = &t->trace->names.items[name];
    node = add_node(t, parent, (struct sonde_text){ text->bytes, text->length });
    if (node != NO_NODE && !snd_map_put(&t->children, key, node))
        snd_assembly_stop(t->assembly);
    return node;
}

static inline uint32_t find_child(struct sonde_tree *t, uint32_t parent, uint32_t name)
{
    if (parent == NO_NODE)
        return NO_NODE;
    struct recent *recent = recent_of(t, parent, name);
    if (recent->node == 0 || recent->parent != parent || recent->name != name)
        *recent = (struct recent){ parent, name, look_up(t, parent, name) };
    return recent->node;
}

/* "main" or "thread 4242"; of a job, "rank 3 on HOST, main". */
static struct sonde_text name_thread(struct sonde_tree *t, const struct snd_lane *lane)
{
    const struct sonde_thread *shown = &t->trace->threads[lane->thread].shown;
    struct sonde_buffer        text = { 0 };
    char                       place[SND_RANK_TEXT];
    const char                *rank = snd_meta_rank(t->trace, lane->process, place);

    if (shown->name.length > 0 && !rank[0])
        return shown->name;
    snd_buf_format(&text, "%s%s", rank, rank[0] ? ", " : "");
    if (shown->name.length > 0)
        snd_buf_put(&text, shown->name.bytes, shown->name.length);
    else
        snd_buf_format(&text, "thread %u", shown->tid);
    char  *copy = text.failed ? NULL : snd_arena_copy(&t->arena, text.bytes, text.length);
    size_t length = text.length;
    sonde_buffer_release(&text);
    if (!copy)
        snd_assembly_stop(t->assembly);
    return copy ? (struct sonde_text){ copy, length } : (struct sonde_text){ "", 0 };
}

static uint32_t find_thread(struct sonde_tree *t, const struct snd_lane *lane)
{
    if (!t->per_thread)
        return 0;
    if (t->thread_node[lane->thread] == 0)
        t->thread_node[lane->thread] = add_node(t, 0, name_thread(t, lane));
    return t->thread_node[lane->thread];
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_tree *t = user;
    uint32_t           above = parent ? parent->range.node : find_thread(t, lane);

    range->range.node = find_child(t, above, range->range.name);
}

/* An asynchronous range waits while others work: its time is kept apart from theirs. */
static void add_waiting(struct sonde_tree *t, const struct snd_lane *lane,
                        const struct snd_range *r)
{
    uint32_t thread = t->per_thread ? find_thread(t, lane) : NO_NODE;

    if (thread != NO_NODE)
        t->nodes[thread].waiting_ns = snd_add(t->nodes[thread].waiting_ns, r->total_ns);
    if (r->node == NO_NODE)
        return;
    t->nodes[r->node].count++;
    t->nodes[r->node].waiting_ns = snd_add(t->nodes[r->node].waiting_ns, r->total_ns);
    t->nodes[r->node].cpu_bytes = snd_add(t->nodes[r->node].cpu_bytes, r->told_cpu_bytes);
}

/* Adds a range to a node; NO_NODE: there is none for it. */
static void add_range(struct sonde_tree *t, uint32_t number, const struct snd_range *r)
{
    if (number == NO_NODE)
        return;
    struct sonde_node *node = &t->nodes[number];
    node->count++;
    node->total_ns = snd_add(node->total_ns, r->total_ns);
    node->cpu_bytes = snd_add(node->cpu_bytes, r->told_cpu_bytes);
    node->flops += r->flops + r->child_flops;
    node->device_ns = snd_add(node->device_ns, r->device_ns);
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_tree      *t = user;
    const struct snd_range *r = &range->range;

    if (r->is_async) {
        add_waiting(t, lane, r);
        return;
    }
    if (!parent && t->per_thread)
        add_range(t, find_thread(t, lane), r);
    add_range(t, r->node, r);
    if (r->node != NO_NODE)
        t->nodes[r->node].self_ns = snd_add(t->nodes[r->node].self_ns,
                                            snd_sub(r->total_ns, r->child_ns));
}

/* Leaves are told apart by their names alone. */
static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    (void)user, (void)lane;
    return shared->name;
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t name,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct sonde_tree *t = user;
    uint32_t           up = parent ? parent->range.node : find_thread(t, lane);
    uint32_t           number = find_child(t, up, name);
    int64_t            ns = snd_sub(leaf->end_ns, leaf->start_ns);

    (void)above;
    if (!parent && t->per_thread)
        add_range(t, up, &(struct snd_range){ .total_ns = ns, .flops = known->flops });
    if (number == NO_NODE)
        return;
    struct sonde_node *node = &t->nodes[number];
    node->count++;
    node->total_ns = snd_add(node->total_ns, ns);
    node->self_ns = snd_add(node->self_ns, ns);
    node->flops += known->flops;
}

/* ----------------------------------------------------------------- sorting */

struct sorted {
    int64_t  total_ns;
    uint32_t node;
};

static int compare(const void *x, const void *y)
{
    const struct sorted *a = x, *b = y;

    return SND_ORDER(SND_FALLING(a->total_ns, b->total_ns), SND_RISING(a->node, b->node));
}

static void sort_children(struct sonde_tree *t, uint32_t parent, struct sorted *list)
{
    uint32_t count = 0;

    for (uint32_t i = t->nodes[parent].first_child; i != 0; i = t->nodes[i].next_sibling)
        list[count++] = (struct sorted){ t->nodes[i].total_ns, i };
    snd_sort(list, count, sizeof *list, compare);
    t->nodes[parent].first_child = 0;
    while (count-- > 0) { /* from the last on, each in front of those that follow */
        t->nodes[list[count].node].next_sibling = t->nodes[parent].first_child;
        t->nodes[parent].first_child = list[count].node;
    }
}

static bool sort_all(struct sonde_tree *t)
{
    struct sorted *list = malloc(((size_t)t->count + 1) * sizeof *list);

    if (!list)
        return false;
    for (uint32_t i = 0; i < t->count; i++)
        sort_children(t, i, list);
    free(list);
    return true;
}

static void free_tree(void *tree)
{
    sonde_tree_free(tree);
}

/* The root sums its children, so that shares have a whole to be of. */
static void sum_root(struct sonde_tree *t)
{
    struct sonde_node *root = &t->nodes[0];

    for (uint32_t i = root->first_child; i != 0; i = t->nodes[i].next_sibling) {
        root->count += t->nodes[i].count;
        root->total_ns = snd_add(root->total_ns, t->nodes[i].total_ns);
        root->cpu_bytes = snd_add(root->cpu_bytes, t->nodes[i].cpu_bytes);
        root->flops += t->nodes[i].flops;
        root->device_ns = snd_add(root->device_ns, t->nodes[i].device_ns);
    }
}

/* -------------------------------------------------------------------- walk */

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct sonde_tree *t = user;

    t->assembly = assembly;
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct sonde_tree *t = user;

    (void)assembly;
    t->is_done = true;
}

static enum sonde_status no_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the tree");
}

static enum sonde_status make(struct sonde_trace *trace, bool per_thread, struct sonde_tree **out,
                              struct sonde_error *err)
{
    struct sonde_tree *t = *out = calloc(1, sizeof *t);

    if (!t)
        return no_memory(err);
    t->trace = trace;
    t->per_thread = per_thread;
    t->thread_node = calloc((size_t)trace->thread_count + 1, sizeof *t->thread_node);
    t->consumer = (struct snd_consumer){ .user = t,
                                         .flops = SONDE_FLOPS_FULL,
                                         .begin = on_begin,
                                         .open = on_open,
                                         .close = on_close,
                                         .move = on_open,
                                         .kind = on_kind,
                                         .leaf = on_leaf,
                                         .end = on_end };
    if (t->thread_node && snd_grow(&t->nodes, &t->room, 0, sizeof *t->nodes) &&
        snd_grow(&t->last_child, &t->last_room, 0, sizeof *t->last_child) &&
        add_node(t, 0, (struct sonde_text){ "", 0 }) == 0)
        return SONDE_OK;
    sonde_tree_free(t);
    *out = NULL;
    return no_memory(err);
}

/* All ranges are in it. An error frees it. */
static enum sonde_status complete(struct sonde_tree **tree, enum sonde_status status,
                                  struct sonde_error *err)
{
    struct sonde_tree *t = *tree;

    t->assembly = NULL;
    if (status == SONDE_OK && (!t->is_done || !sort_all(t)))
        status = no_memory(err);
    if (status != SONDE_OK) {
        sonde_tree_free(t);
        *tree = NULL;
        return status;
    }
    sum_root(t);
    free(t->last_child);
    free(t->thread_node);
    t->last_child = t->thread_node = NULL;
    snd_kept_add(t->trace, free_tree, t->per_thread, t);
    return SONDE_OK;
}

enum sonde_status sonde_tree_new(struct sonde_trace *trace, bool per_thread,
                                 struct sonde_tree **out, struct sonde_error *err)
{
    struct snd_assembly assembly;

    *out = snd_kept_lend(trace, free_tree, per_thread);
    if (*out)
        return SONDE_OK;
    enum sonde_status status = make(trace, per_thread, out, err);
    if (status != SONDE_OK)
        return status;
    status = snd_assemble(&assembly, trace, SONDE_BY_THREAD, &(*out)->consumer, 1, err);
    snd_assembly_release(&assembly);
    return complete(out, status, err);
}

enum sonde_status snd_tree_wait(struct sonde_trace *trace, struct sonde_tree **out,
                                struct sonde_error *err)
{
    enum sonde_status status = make(trace, false, out, err);

    if (status == SONDE_OK)
        snd_wait(trace, &(*out)->consumer);
    return status;
}

enum sonde_status snd_tree_finish(struct sonde_tree **tree, struct sonde_error *err)
{
    return complete(tree, snd_wait_walk((*tree)->trace, (*tree)->is_done, err), err);
}

void sonde_tree_free(struct sonde_tree *t)
{
    if (!t || snd_kept_return(t->trace, t))
        return;
    snd_wait_end(t->trace, &t->consumer);
    free(t->nodes);
    free(t->last_child);
    free(t->thread_node);
    snd_map_release(&t->children);
    snd_arena_release(&t->arena);
    free(t);
}

size_t sonde_tree_count(const struct sonde_tree *tree)
{
    return tree->count;
}

const struct sonde_node *sonde_tree_node(const struct sonde_tree *tree, size_t index)
{
    return index < tree->count ? &tree->nodes[index] : NULL;
}
