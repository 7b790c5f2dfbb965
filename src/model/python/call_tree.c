/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/python/call_tree.c - a call tree from who calls whom.
 *
 * Pairs of caller and callee do not say by which path a function was reached. Its time is shared
 * out among the paths to it, as gprof shares it: a node has of its function's calls the part that
 * its own time is of the function's.
 */
#include <stdlib.h>

#include "base/data/sort.h"
#include "base/error.h"
#include "base/data/map.h"
#include "read/file/scale.h"
#include "sonde/model.h"

#define DEPTH_MAX 512u
#define NODES_MAX (1u << 16)
#define LEAST_SHARE 0.001 /* of the whole: what is below it is left out */

struct sonde_call_tree {
    const struct sonde_functions *functions;
    struct sonde_call_node       *nodes;
    uint32_t                      count, room;
    bool                         *on_path; /* of each function */
    double                        least_ns;
    bool                          failed;
};

/* A child to be, before it is known to be shown. */
struct child {
    const struct sonde_call *call;
    double                   total_ns, calls;
};

static int compare_children(const void *left, const void *right)
{
    const struct child *x = left, *y = right;

    return SND_ORDER(SND_FALLING(x->total_ns, y->total_ns),
                     SND_RISING(x->call->callee, y->call->callee));
}

/* Times of a damaged trace may add up to more than an int64_t holds. */
static int64_t whole_ns(double ns)
{
    if (ns >= 0x1p63)
        return INT64_MAX;
    return ns > -0x1p63 ? (int64_t)ns : INT64_MIN;
}

static uint32_t add_node(struct sonde_call_tree *t, uint32_t parent, uint32_t last,
                         const struct child *child)
{
    if (t->count >= NODES_MAX)
        return 0;
    if (!snd_grow(&t->nodes, &t->room, t->count, sizeof *t->nodes)) {
        t->failed = true;
        return 0;
    }
    const struct sonde_function *f = sonde_functions_row(t->functions, child->call->callee);
    double share = f->total_ns > 0 ? child->total_ns / (double)f->total_ns : 0;
    t->nodes[t->count] = (struct sonde_call_node){
        .function = child->call->callee,
        .parent = parent,
        .depth = t->nodes[parent].depth + 1,
        .calls = child->calls,
        .total_ns = whole_ns(child->total_ns),
        .self_ns = whole_ns((double)f->self_ns * (share > 1 ? 1 : share)),
    };
    if (last == 0)
        t->nodes[parent].first_child = t->count;
    else
        t->nodes[last].next_sibling = t->count;
    return t->count++;
}

static void expand(struct sonde_call_tree *t, uint32_t node);

/* Adds children that are long enough, longest first, and their descendants. */
static void add_children(struct sonde_call_tree *t, uint32_t node, struct child *children,
                         size_t count)
{
    uint32_t last = 0;

    snd_sort(children, count, sizeof *children, compare_children);
    for (size_t i = 0; i < count && !t->failed; i++) {
        if (children[i].total_ns < t->least_ns || t->on_path[children[i].call->callee])
            continue;
        uint32_t at = add_node(t, node, last, &children[i]);
        if (at == 0)
            return;
        last = at;
        expand(t, at);
    }
}

static void expand(struct sonde_call_tree *t, uint32_t node)
{
    struct sonde_call_node       n = t->nodes[node];
    const struct sonde_function *f = sonde_functions_row(t->functions, n.function);
    double share = f->total_ns > 0 ? (double)n.total_ns / (double)f->total_ns : 0;

    if (f->callee_count == 0 || n.depth >= DEPTH_MAX)
        return;
    struct child *children = calloc(f->callee_count, sizeof *children);
    if (!children) {
        t->failed = true;
        return;
    }
    for (uint32_t i = 0; i < f->callee_count; i++) {
        const struct sonde_call *call = sonde_functions_callee(t->functions, f->first_callee + i);
        children[i] = (struct child){ call, (double)call->total_ns * share,
                                      (double)call->calls * share };
    }
    t->on_path[n.function] = true;
    add_children(t, node, children, f->callee_count);
    t->on_path[n.function] = false;
    free(children);
}

/* Calls from outside; where the recording has none, those of the function that lasted longest. */
static size_t find_roots(const struct sonde_functions *functions, struct child *roots,
                         struct sonde_call *longest)
{
    const struct sonde_call *call;
    size_t                   count = 0;

    for (size_t i = 0; (call = sonde_functions_caller(functions, i)) != NULL; i++)
        if (call->caller == SONDE_NONE)
            roots[count++] = (struct child){ call, (double)call->total_ns, (double)call->calls };
    if (count > 0)
        return count;
    for (uint32_t i = 0; i < sonde_functions_count(functions); i++) {
        const struct sonde_function *f = sonde_functions_row(functions, i);
        if (i == 0 || f->total_ns > longest->total_ns)
            *longest = (struct sonde_call){
                .caller = SONDE_NONE, .callee = i, .calls = f->calls, .total_ns = f->total_ns
            };
    }
    roots[0] = (struct child){ longest, (double)longest->total_ns, (double)longest->calls };
    return 1;
}

static bool build(struct sonde_call_tree *t)
{
    size_t            calls = 0, functions = sonde_functions_count(t->functions);
    struct sonde_call longest = { 0 };

    t->nodes = calloc(1, sizeof *t->nodes);
    t->on_path = calloc(functions + 1, sizeof *t->on_path);
    while (sonde_functions_caller(t->functions, calls))
        calls++;
    struct child *roots = calloc(calls + 1, sizeof *roots);
    if (!t->nodes || !t->on_path || !roots) {
        free(roots);
        return false;
    }
    t->count = t->room = 1;
    t->nodes[0].function = SONDE_NONE;
    if (functions > 0) {
        size_t count = find_roots(t->functions, roots, &longest);
        double whole = 0;
        for (size_t i = 0; i < count; i++)
            whole += roots[i].total_ns;
        t->nodes[0].total_ns = whole_ns(whole);
        t->least_ns = whole * LEAST_SHARE;
        add_children(t, 0, roots, count);
    }
    free(roots);
    return !t->failed;
}

enum sonde_status sonde_call_tree_new(const struct sonde_functions *functions,
                                      struct sonde_call_tree **out, struct sonde_error *err)
{
    struct sonde_call_tree *t = calloc(1, sizeof *t);

    *out = NULL;
    if (t)
        t->functions = functions;
    if (!t || !build(t)) {
        sonde_call_tree_free(t);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the call tree");
    }
    *out = t;
    return SONDE_OK;
}

void sonde_call_tree_free(struct sonde_call_tree *t)
{
    if (!t)
        return;
    free(t->nodes);
    free(t->on_path);
    free(t);
}

size_t sonde_call_tree_count(const struct sonde_call_tree *tree)
{
    return tree->count;
}

const struct sonde_call_node *sonde_call_tree_node(const struct sonde_call_tree *tree, size_t index)
{
    return index < tree->count ? &tree->nodes[index] : NULL;
}
