/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/samples/sample_trees.c - sampled stacks as a tree for each thread, for each process or for all.
 *
 * A stack is a chain of records, parent before child, so the node of a stack is a child of the
 * node of its parent stack. Nodes of stacks that were met are remembered by tree: of a new
 * stack only the part that is new is walked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "base/struct_size.h"
#include "model/samples/sample_counts.h"
#include "model/samples/sample_order.h"
#include "read/said/trace_metadata.h"
#include "read/reader.h"
#include "read/file/scale.h"
#include "sonde/model.h"

#define NODES_MAX (1u << 22) /* beyond: what is deeper counts for the node that is there */

/* Where a stack is in its tree. */
struct spot {
    uint32_t node;
    uint32_t levels; /* calls of its innermost function by itself, up to here */
};

struct sonde_samples {
    struct sonde_trace          *trace;
    struct sonde_sample_node    *nodes;  /* 0: not used */
    uint32_t                    *places; /* of each node: the number of its function */
    uint32_t                     count, room, place_room;
    struct spot                 *spots; /* of each stack that was met */
    uint32_t                     spot_count, spot_room;
    struct sonde_sample_thread  *threads;
    uint32_t                     thread_count, thread_room;
    struct snd_sample_counts    *counts;
    uint32_t                    *tree_of;  /* by thread or process, plus one; 0: no samples yet */
    struct snd_map               by_stack; /* (root, process, stack and open ranges) to a spot */
    struct snd_map               by_child; /* (parent, place) to a node */
    struct snd_map               by_place; /* (file, line, function) to a number */
    uint32_t                     place_count;
    uint32_t                    *chain; /* stacks on the way down to the one asked for */
    uint32_t                     chain_room;
    struct snd_mixed_step       *steps; /* of the stack at hand, innermost first */
    uint32_t                     step_room;
    double                       rate;
    struct sonde_samples_options options;
    bool                         failed;
};

/* --------------------------------------------------------------------- nodes */

static uint32_t add_node(struct sonde_samples *s, uint32_t parent)
{
    if (!snd_grow(&s->nodes, &s->room, s->count, sizeof *s->nodes) ||
        !snd_grow(&s->places, &s->place_room, s->count, sizeof *s->places)) {
        s->failed = true;
        return 0;
    }
    s->nodes[s->count] = (struct sonde_sample_node){
        .parent = parent, .depth = parent ? s->nodes[parent].depth + 1 : 0, .levels = 1
    };
    s->places[s->count] = UINT32_MAX;
    if (parent) {
        s->nodes[s->count].next_sibling = s->nodes[parent].first_child;
        s->nodes[parent].first_child = s->count;
    }
    return s->count++;
}

/* A number for a function, whatever process it was seen in. False when memory is out. */
static bool find_place(struct sonde_samples *s, const struct sonde_frame *frame, uint32_t *place)
{
    struct snd_key key = { (uint64_t)(uintptr_t)frame->file.bytes,
                           frame->first_line ? frame->first_line : frame->line,
                           (uint64_t)(uintptr_t)frame->function.bytes };

    if (snd_map_get(&s->by_place, key, place))
        return true;
    *place = s->place_count++;
    return snd_map_put(&s->by_place, key, *place);
}

/* What an import runs between the line that asks for it and the module: ours waits for torch. */
static bool is_import(struct sonde_text file)
{
    static const char *const parts[] = { "<frozen importlib._bootstrap", "/sonde/_autostart/" };

    for (size_t i = 0; file.length > 0 && i < SND_COUNT_OF(parts); i++)
        if (memmem(file.bytes, file.length, parts[i], strlen(parts[i])))
            return true;
    return false;
}

static uint32_t add_child(struct sonde_samples *s, uint32_t parent, struct snd_key key,
                          const struct sonde_frame *frame, bool native)
{
    uint32_t node = add_node(s, parent);

    if (node == 0 || !snd_map_put(&s->by_child, key, node)) {
        s->failed = true;
        return parent;
    }
    s->places[node] = (uint32_t)key.b;
    s->nodes[node].function = frame->function;
    s->nodes[node].file = frame->file;
    s->nodes[node].line = frame->first_line ? frame->first_line : frame->line;
    s->nodes[node].is_native = native;
    return node;
}

/* One step down the tree: from the spot of a stack to that of the stack with one frame more. */
static struct spot find_child(struct sonde_samples *s, struct spot at, uint32_t process,
                              uint32_t frame_id)
{
    struct sonde_frame frame;
    uint32_t           place, node;

    sonde_trace_frame(s->trace, process, frame_id, &frame);
    if (s->options.hide_imports && s->nodes[at.node].parent != 0 && is_import(frame.file))
        return at;
    if (!find_place(s, &frame, &place)) {
        s->failed = true;
        return at;
    }
    if (s->options.fold_recursion && s->places[at.node] == place) {
        if (++at.levels > s->nodes[at.node].levels)
            s->nodes[at.node].levels = at.levels;
        return at;
    }
    struct snd_key key = { at.node, place, 0 };
    if (!snd_map_get(&s->by_child, key, &node)) {
        if (s->count >= NODES_MAX)
            return at;
        node = add_child(s, at.node, key, &frame,
                         snd_frame_is_native(&s->trace->processes[process].tables, frame_id));
    }
    return (struct spot){ node, 1 };
}

static bool find_spot(const struct sonde_samples *s, struct snd_key key, struct spot *spot)
{
    uint32_t index;

    if (!snd_map_get(&s->by_stack, key, &index))
        return false;
    *spot = s->spots[index];
    return true;
}

static void keep_spot(struct sonde_samples *s, struct snd_key key, struct spot spot)
{
    if (!snd_grow(&s->spots, &s->spot_room, s->spot_count, sizeof *s->spots) ||
        !snd_map_put(&s->by_stack, key, s->spot_count)) {
        s->failed = true;
        return;
    }
    s->spots[s->spot_count++] = spot;
}

/* A range, as a frame that has a name alone. */
static struct spot find_range(struct sonde_samples *s, const struct snd_mixed *mixed,
                              struct spot at, uint32_t chain)
{
    struct sonde_frame frame = { .function = snd_chain_name(mixed, chain), .file = { "", 0 } };
    uint32_t           place, node;

    frame.file.bytes = frame.function.bytes; /* no function has the place of a range */
    if (s->failed || !find_place(s, &frame, &place)) {
        s->failed = true;
        return at;
    }
    struct snd_key key = { at.node, place, 0 };
    if (!snd_map_get(&s->by_child, key, &node)) {
        if (s->count >= NODES_MAX)
            return at;
        frame.file = (struct sonde_text){ "", 0 };
        node = add_child(s, at.node, key, &frame, false);
        s->nodes[node].is_range = true;
    }
    return (struct spot){ node, 1 };
}

/* Puts a stack on the way down; false: there is no room. */
static bool keep_way(struct sonde_samples *s, uint32_t *depth, uint32_t stack)
{
    if (*depth >= SND_STACK_MAX || !snd_grow(&s->chain, &s->chain_room, *depth, sizeof *s->chain)) {
        s->failed |= *depth < SND_STACK_MAX;
        return false;
    }
    s->chain[(*depth)++] = stack;
    return true;
}

static struct spot find_plain(struct sonde_samples *s, uint32_t root, uint32_t process,
                              uint32_t stack)
{
    const struct snd_tables *t = &s->trace->processes[process].tables;
    struct spot              at = { root, 1 };
    uint32_t                 depth = 0;

    for (; stack != 0 && stack < t->stack_count; stack = t->stacks[stack].parent)
        if (find_spot(s, (struct snd_key){ root, process, stack }, &at) ||
            !keep_way(s, &depth, stack))
            break;
    while (depth-- > 0 && !s->failed) {
        at = find_child(s, at, process, t->stacks[s->chain[depth]].frame);
        keep_spot(s, (struct snd_key){ root, process, s->chain[depth] }, at);
    }
    return at;
}

/* Down to the outermost range as any stack, from there on step by step. */
static uint32_t find_node(struct sonde_samples *s, const struct snd_mixed *mixed, uint32_t root,
                          uint32_t process, const struct snd_sample_count *row)
{
    const struct snd_tables *t = &s->trace->processes[process].tables;
    struct snd_mixed_steps   way = snd_mixed_begin(mixed, process, row->stack, row->chain);
    struct snd_mixed_step    step;
    uint32_t                 count = 0;

    while (way.chain != 0 && snd_mixed_next(&way, &step)) {
        if (!snd_grow(&s->steps, &s->step_room, count, sizeof *s->steps)) {
            s->failed = true;
            return root;
        }
        s->steps[count++] = step;
    }
    struct spot at = find_plain(s, root, process, way.stack);
    while (count-- > 0 && !s->failed)
        at = s->steps[count].chain
                 ? find_range(s, mixed, at, s->steps[count].chain)
                 : find_child(s, at, process, t->stacks[s->steps[count].stack].frame);
    return at.node;
}

/* --------------------------------------------------------------------- trees */

/* The tree that a thread's samples go to: 0, or its number plus one. */
static uint32_t *find_tree(const struct sonde_samples *s, uint32_t thread)
{
    const uint32_t numbers[] = { [SONDE_SAMPLES_BY_THREAD] = thread,
                                 [SONDE_SAMPLES_BY_PROCESS] =
                                     s->trace->threads[thread].shown.process,
                                 [SONDE_SAMPLES_MERGED] = 0 };

    return &s->tree_of[numbers[s->options.by]];
}

static void add_thread(struct sonde_samples *s, const struct sonde_sample_thread *from)
{
    uint32_t *tree = find_tree(s, from->thread);

    if (*tree == 0) {
        uint32_t root = add_node(s, 0);
        if (root == 0 ||
            !snd_grow(&s->threads, &s->thread_room, s->thread_count, sizeof *s->threads)) {
            s->failed = true;
            return;
        }
        s->threads[s->thread_count] = *from;
        s->threads[s->thread_count].root = root;
        *tree = ++s->thread_count;
        return;
    }
    struct sonde_sample_thread *t = &s->threads[*tree - 1];
    t->threads += from->threads;
    t->samples += from->samples;
    t->time_ns = snd_add(t->time_ns, from->time_ns);
    t->cpu_ns = snd_add(t->cpu_ns, from->cpu_ns);
    t->gil_ns = snd_add(t->gil_ns, from->gil_ns);
    t->gil_wait_ns = snd_add(t->gil_wait_ns, from->gil_wait_ns);
    t->idle_ns = snd_add(t->idle_ns, from->idle_ns);
    t->first_ns = from->first_ns < t->first_ns ? from->first_ns : t->first_ns;
    t->last_ns = from->last_ns > t->last_ns ? from->last_ns : t->last_ns;
}

/* The innermost alone is counted here; what lies above it is added up at the end. */
static void add_stack(struct sonde_samples *s, const struct snd_mixed *mixed,
                      const struct snd_sample_count *row)
{
    uint32_t root = s->threads[*find_tree(s, row->thread) - 1].root;
    uint32_t node = find_node(s, mixed, root, s->trace->threads[row->thread].shown.process, row);
    struct sonde_sample_node *n = &s->nodes[node];

    n->samples += row->samples;
    n->self_ns = snd_add(n->self_ns, row->time_ns);
    n->cpu_ns = snd_add(n->cpu_ns, row->cpu_ns);
    n->gil_ns = snd_add(n->gil_ns, row->gil_ns);
}

static void add_counts(struct sonde_samples *s, const struct snd_sample_counts *counts)
{
    for (uint32_t i = 0; i < counts->seen_count && !s->failed; i++)
        add_thread(s, &counts->threads[counts->seen[i]]);
    for (uint32_t i = 0; i < counts->count && !s->failed; i++)
        if (!s->options.skip_idle || !counts->rows[i].waits)
            add_stack(s, &counts->mixed, &counts->rows[i]);
}

/* ----------------------------------------------------------------- the whole */

static void read_rate(struct sonde_samples *s)
{
    struct sonde_text value;

    for (uint32_t p = 0; p < s->trace->process_count; p++)
        if (snd_meta_find(s->trace, p, SND_META_PYTHON_SAMPLE_HZ, &value))
            s->rate = (double)strtoll(value.bytes, NULL, 10);
}

/* Node 0 is no node, so that 0 can stand for none. */
static enum sonde_status make(struct sonde_trace                 *trace,
                              const struct sonde_samples_options *options,
                              struct sonde_samples **out, struct sonde_error *err)
{
    struct sonde_samples_options used = SONDE_SAMPLES_OPTIONS_INIT;
    enum sonde_status            status = snd_struct_take(options, &used, sizeof used,
                                                          "SONDE_SAMPLES_OPTIONS_INIT", err);

    if (status != SONDE_OK)
        return status;
    struct sonde_samples *s = calloc(1, sizeof *s);
    if (!s)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    s->trace = trace;
    s->options = used;
    s->tree_of = calloc((size_t)trace->thread_count + trace->process_count + 1, sizeof *s->tree_of);
    s->failed = !s->tree_of;
    add_node(s, 0);
    *out = s;
    return SONDE_OK;
}

/* Builds the trees from the counted stacks. */
static enum sonde_status build(struct sonde_samples *s, const struct snd_sample_counts *counts,
                               struct sonde_error *err)
{
    add_counts(s, counts);
    if (s->failed || !snd_sample_nodes_settle(s->nodes, s->count) ||
        !snd_sample_threads_sort(s->threads, s->thread_count, s->trace))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    read_rate(s);
    return SONDE_OK;
}

/* Owns `s`: it is handed over, or freed. */
static enum sonde_status hand_over(struct sonde_samples *s, enum sonde_status status,
                                   struct sonde_samples **out)
{
    if (status == SONDE_OK)
        *out = s;
    else
        sonde_samples_free(s);
    return status;
}

enum sonde_status sonde_samples_new(struct sonde_trace                 *trace,
                                    const struct sonde_samples_options *options,
                                    struct sonde_samples **out, struct sonde_error *err)
{
    struct sonde_samples *s = NULL;

    *out = NULL;
    enum sonde_status status = make(trace, options, &s, err);
    if (status != SONDE_OK)
        return status;
    status = snd_sample_counts_new(trace, &s->counts, err);
    if (status == SONDE_OK)
        status = build(s, s->counts, err);
    return hand_over(s, status, out);
}

enum sonde_status sonde_samples_merge(const struct sonde_samples         *samples,
                                      const struct sonde_samples_options *options,
                                      struct sonde_samples **out, struct sonde_error *err)
{
    struct sonde_samples *s = NULL;

    *out = NULL;
    enum sonde_status status = make(samples->trace, options, &s, err);
    if (status != SONDE_OK)
        return status;
    return hand_over(s, build(s, samples->counts, err), out);
}

void sonde_samples_free(struct sonde_samples *s)
{
    if (!s)
        return;
    free(s->nodes);
    free(s->places);
    free(s->spots);
    free(s->threads);
    free(s->tree_of);
    free(s->chain);
    free(s->steps);
    snd_sample_counts_free(s->counts);
    snd_map_release(&s->by_stack);
    snd_map_release(&s->by_child);
    snd_map_release(&s->by_place);
    free(s);
}

size_t sonde_samples_thread_count(const struct sonde_samples *samples)
{
    return samples->thread_count;
}

const struct sonde_sample_thread *sonde_samples_thread(const struct sonde_samples *samples,
                                                       size_t                      index)
{
    return index < samples->thread_count ? &samples->threads[index] : NULL;
}

const struct sonde_sample_node *sonde_samples_node(const struct sonde_samples *samples,
                                                   size_t                      index)
{
    return index > 0 && index < samples->count ? &samples->nodes[index] : NULL;
}

uint32_t sonde_samples_next(const struct sonde_samples *samples, uint32_t at, uint32_t root)
{
    const struct sonde_sample_node *node = sonde_samples_node(samples, at);

    if (node->first_child != 0)
        return node->first_child;
    while (at != root && node->next_sibling == 0) {
        at = node->parent;
        node = sonde_samples_node(samples, at);
    }
    return at == root ? 0 : node->next_sibling;
}

double sonde_samples_rate(const struct sonde_samples *samples)
{
    return samples->rate;
}
