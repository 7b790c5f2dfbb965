/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/samples/sample_functions.c - the functions of sampled stacks, each once.
 *
 * The trees are walked in depth, and how often each function is on the way down is counted: its
 * time is added where it is there for the first time, so that recursion counts once.
 */
#include <stdlib.h>

#include "base/data/sort.h"
#include "base/error.h"
#include "base/data/map.h"
#include "read/file/scale.h"
#include "sonde/model.h"

struct tally {
    const struct sonde_samples    *samples;
    struct sonde_sample_functions *found;
    struct snd_map                 by_place;    /* (file, line, function) to a row */
    uint32_t                      *function_of; /* of each node: a row, or UINT32_MAX of a root */
    uint32_t                      *running;     /* of each row: how often it is on the way down */
    uint32_t                       room, node_room, running_room;
};

/* Texts of a trace are each there once: the same bytes have the same address. */
static bool find_row(struct tally *t, const struct sonde_sample_node *n, uint32_t *row)
{
    struct snd_key key = { (uint64_t)(uintptr_t)n->file.bytes, n->line,
                           (uint64_t)(uintptr_t)n->function.bytes };

    if (snd_map_get(&t->by_place, key, row))
        return true;
    *row = (uint32_t)t->found->count;
    if (!snd_grow(&t->found->rows, &t->room, *row, sizeof *t->found->rows) ||
        !snd_grow(&t->running, &t->running_room, *row, sizeof *t->running) ||
        !snd_map_put(&t->by_place, key, *row))
        return false;
    t->found->rows[*row] = (struct sonde_sample_function){
        .function = n->function, .file = n->file, .line = n->line, .is_native = n->is_native
    };
    t->running[*row] = 0;
    t->found->count++;
    return true;
}

static bool number_nodes(struct tally *t)
{
    const struct sonde_sample_node *n;

    for (uint32_t i = 1; (n = sonde_samples_node(t->samples, i)) != NULL; i++) {
        if (!snd_grow(&t->function_of, &t->node_room, i, sizeof *t->function_of))
            return false;
        t->function_of[i] = UINT32_MAX;
        if (n->parent != 0 && !find_row(t, n, &t->function_of[i]))
            return false;
    }
    return true;
}

static void enter(struct tally *t, uint32_t node)
{
    const struct sonde_sample_node *n = sonde_samples_node(t->samples, node);
    uint32_t                        row = t->function_of[node];

    if (row == UINT32_MAX)
        return;
    struct sonde_sample_function *f = &t->found->rows[row];
    f->self_ns = snd_add(f->self_ns, n->self_ns);
    if (t->running[row]++ == 0) {
        f->total_ns = snd_add(f->total_ns, n->time_ns);
        f->off_cpu_ns = snd_add(f->off_cpu_ns, snd_sub(n->time_ns, n->cpu_ns));
        f->samples += n->samples;
    }
}

static void leave(struct tally *t, uint32_t node)
{
    if (t->function_of[node] != UINT32_MAX)
        t->running[t->function_of[node]]--;
}

static void walk(struct tally *t, uint32_t root)
{
    uint32_t at = root;

    for (;;) {
        enter(t, at);
        const struct sonde_sample_node *n = sonde_samples_node(t->samples, at);
        if (n->first_child != 0) {
            at = n->first_child;
            continue;
        }
        while (at != root && n->next_sibling == 0) {
            leave(t, at);
            at = n->parent;
            n = sonde_samples_node(t->samples, at);
        }
        leave(t, at);
        if (at == root)
            return;
        at = n->next_sibling;
    }
}

static int compare(const void *left, const void *right)
{
    const struct sonde_sample_function *x = left, *y = right;

    return SND_ORDER(SND_FALLING(x->self_ns, y->self_ns), SND_FALLING(x->total_ns, y->total_ns));
}

enum sonde_status sonde_sample_functions_new(const struct sonde_samples     *samples,
                                             struct sonde_sample_functions **out,
                                             struct sonde_error             *err)
{
    struct tally t = { .samples = samples, .found = calloc(1, sizeof *t.found) };

    *out = t.found;
    bool done = t.found && number_nodes(&t);
    for (size_t i = 0; done && i < sonde_samples_thread_count(samples); i++) {
        uint32_t root = sonde_samples_thread(samples, i)->root;
        t.found->whole_ns = snd_add(t.found->whole_ns, sonde_samples_node(samples, root)->time_ns);
        walk(&t, root);
    }
    if (done)
        snd_sort(t.found->rows, t.found->count, sizeof *t.found->rows, compare);
    snd_map_release(&t.by_place);
    free(t.function_of);
    free(t.running);
    if (done)
        return SONDE_OK;
    sonde_sample_functions_free(t.found);
    *out = NULL;
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions of the samples");
}

void sonde_sample_functions_free(struct sonde_sample_functions *functions)
{
    if (functions)
        free(functions->rows);
    free(functions);
}
