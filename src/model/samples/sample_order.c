/* SPDX-License-Identifier: Apache-2.0 */
#include "model/samples/sample_order.h"

#include <stdlib.h>

#include "base/data/sort.h"
#include "read/reader.h"
#include "read/file/scale.h"

/* ------------------------------------------------------------------- nodes */

/* A child's number is greater than its parent's. */
static void add_up(struct sonde_sample_node *nodes, uint32_t count)
{
    for (uint32_t i = count; i-- > 1;) {
        struct sonde_sample_node *n = &nodes[i];
        n->time_ns = snd_add(n->time_ns, n->self_ns);
        if (n->parent == 0)
            continue;
        struct sonde_sample_node *up = &nodes[n->parent];
        up->samples += n->samples;
        up->time_ns = snd_add(up->time_ns, n->time_ns);
        up->cpu_ns = snd_add(up->cpu_ns, n->cpu_ns);
        up->gil_ns = snd_add(up->gil_ns, n->gil_ns);
    }
}

struct order {
    int64_t  time_ns;
    uint32_t parent, node;
};

static int compare_order(const void *left, const void *right)
{
    const struct order *x = left, *y = right;

    /* The shortest is put in front first. */
    return SND_ORDER(SND_RISING(x->parent, y->parent), SND_RISING(x->time_ns, y->time_ns),
                     SND_FALLING(x->node, y->node));
}

static bool sort_children(struct sonde_sample_node *nodes, uint32_t node_count)
{
    struct order *order = calloc((size_t)node_count + 1, sizeof *order);
    uint32_t      count = 0;

    if (!order)
        return false;
    for (uint32_t i = 1; i < node_count; i++) {
        nodes[i].first_child = 0;
        if (nodes[i].parent != 0)
            order[count++] = (struct order){ nodes[i].time_ns, nodes[i].parent, i };
    }
    snd_sort(order, count, sizeof *order, compare_order);
    for (uint32_t i = 0; i < count; i++) {
        struct sonde_sample_node *up = &nodes[order[i].parent];
        nodes[order[i].node].next_sibling = up->first_child;
        up->first_child = order[i].node;
    }
    free(order);
    return true;
}

bool snd_sample_nodes_settle(struct sonde_sample_node *nodes, uint32_t count)
{
    add_up(nodes, count);
    return sort_children(nodes, count);
}

/* ----------------------------------------------------------------- threads */

static bool is_main(const struct sonde_trace *trace, uint32_t thread)
{
    const struct sonde_thread *t = &trace->threads[thread].shown;

    return t->tid == trace->processes[t->process].shown.pid;
}

struct thread_order {
    struct sonde_sample_thread thread;
    uint32_t                   process;
    bool                       main;
};

static int compare_threads(const void *left, const void *right)
{
    const struct thread_order *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->process, y->process), SND_FALLING(x->main, y->main),
                     SND_RISING(x->thread.thread, y->thread.thread));
}

bool snd_sample_threads_sort(struct sonde_sample_thread *threads, uint32_t count,
                             const struct sonde_trace *trace)
{
    struct thread_order *order = calloc((size_t)count + 1, sizeof *order);

    if (!order)
        return false;
    for (uint32_t i = 0; i < count; i++)
        order[i] = (struct thread_order){ threads[i],
                                          trace->threads[threads[i].thread].shown.process,
                                          is_main(trace, threads[i].thread) };
    snd_sort(order, count, sizeof *order, compare_threads);
    for (uint32_t i = 0; i < count; i++)
        threads[i] = order[i].thread;
    free(order);
    return true;
}
