/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/network_graph.c - what each node of a model's graph costs (sonde/graph.h).
 *
 * Ranges: "model.graph batch=N" around a timed run, "model.graph_pass batch=N" around a pass with
 * operators, "model.node K" around node K in either. Facts: GRAPH tells tracer and batch
 * size, or why there is no graph; NODE what node K is. A folder may have graphs of several
 * batch sizes: the largest is taken.
 *
 * What happens while a node is open, on any thread of its process, is the node's. Only blocks that
 * were taken in a pass count as memory.
 */
#include "sonde/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "format/fields.h"
#include "format/known.h"
#include "model/ranges/assembly.h"
#include "model/spread.h"
#include "read/said/trace_facts.h"

#define NODES_MAX (1u << 20)
#define NO_NODE UINT32_MAX

enum part { PART_NONE, PART_RUN, PART_PASS, PART_NODE };

struct label { /* what a name of the trace means */
    enum part part;
    uint64_t  number;
};

struct samples {
    int64_t *ns;
    uint32_t count, room;
};

struct block {
    int64_t  bytes;
    uint32_t node; /* that took it, or NO_NODE */
};

struct process {
    uint64_t       batch; /* of its graph; 0: it has none */
    enum part      part;  /* what is under way: PART_RUN, PART_PASS or PART_NONE */
    uint32_t       node;  /* NO_NODE: none */
    double         flops, macs;
    int64_t        taken_bytes, live_bytes, peak_bytes; /* taken, peak: of the node */
    struct snd_map by_address;
    struct block  *blocks;
    uint32_t       block_count, block_room;
};

struct sonde_graph {
    struct sonde_trace      *trace;
    struct sonde_graph_info  info;
    struct sonde_graph_node *nodes;
    struct samples          *samples; /* by node */
    uint64_t                *passes;  /* by node: that it ran in */
    uint32_t                 count, node_room;
    struct samples           runs;
    uint32_t                 device_type;
    struct label            *labels;    /* by name of the trace */
    struct process          *processes; /* by process */
    struct snd_texts         texts;
    struct snd_assembly      assembly;
};

/* ---------------------------------------------------------------------- names */

static struct label read_label(const char *name)
{
    static const struct {
        enum snd_known name;
        enum part      part;
    } parts[] = {
        { SND_KNOWN_MODEL_GRAPH, PART_RUN },
        { SND_KNOWN_MODEL_GRAPH_PASS, PART_PASS },
        { SND_KNOWN_MODEL_NODE, PART_NODE },
    };

    for (size_t i = 0; i < SND_COUNT_OF(parts); i++) {
        const char *prefix = snd_known_name(parts[i].name);
        size_t      length = strlen(prefix);
        char       *end;
        if (strncmp(name, prefix, length) != 0)
            continue;
        unsigned long long number = strtoull(name + length, &end, 10);
        if (end != name + length && *end == '\0')
            return (struct label){ parts[i].part, number };
    }
    return (struct label){ PART_NONE, 0 };
}

/* ------------------------------------------------------------------- metadata */

static struct sonde_text text_of(struct sonde_graph *g, const struct snd_fact *fact, unsigned field)
{
    struct sonde_text text = snd_fact_text(fact, field);
    uint32_t          number;

    if (!snd_texts_add(&g->texts, text.bytes, text.length, &number)) {
        g->assembly.out_of_memory = true;
        return (struct sonde_text){ "", 0 };
    }
    return (struct sonde_text){ g->texts.items[number].bytes, text.length };
}

static void add_node(struct sonde_graph *g, const struct snd_fact *fact)
{
    const uint32_t number = fact->number;

    if (number >= NODES_MAX)
        return;
    while (g->count <= number) {
        if (!snd_grow(&g->nodes, &g->node_room, g->count, sizeof *g->nodes)) {
            g->assembly.out_of_memory = true;
            return;
        }
        const struct sonde_text none = { "", 0 };
        g->nodes[g->count++] = (struct sonde_graph_node){ .name = none,
                                                          .kind = none,
                                                          .target = none,
                                                          .module = none,
                                                          .input_shapes = none,
                                                          .output_shapes = none,
                                                          .input_bytes = -1,
                                                          .output_bytes = -1,
                                                          .weights_bytes = -1 };
    }
    struct sonde_graph_node *n = &g->nodes[number];
    n->name = text_of(g, fact, SND_FIELD_NODE_NAME);
    n->kind = text_of(g, fact, SND_FIELD_NODE_KIND);
    n->target = text_of(g, fact, SND_FIELD_NODE_TARGET);
    n->module = text_of(g, fact, SND_FIELD_NODE_MODULE);
    n->input_shapes = text_of(g, fact, SND_FIELD_NODE_IN);
    n->output_shapes = text_of(g, fact, SND_FIELD_NODE_OUT);
    n->input_bytes = snd_fact_number(fact, SND_FIELD_NODE_IN_BYTES, -1);
    n->output_bytes = snd_fact_number(fact, SND_FIELD_NODE_OUT_BYTES, -1);
    n->weights_bytes = snd_fact_number(fact, SND_FIELD_NODE_PARAMETER_BYTES, -1);
}

/* The batch size of a process's graph; 0: it has none. */
static uint64_t read_graph(struct sonde_graph *g, uint32_t process, struct sonde_text *tracer)
{
    const struct snd_fact *fact;
    int64_t                batch = 0;

    for (uint32_t at = 0; (fact = snd_fact_next(g->trace, process, SND_FACT_OF_MODEL, &at));) {
        struct sonde_text device = snd_fact_text(fact, SND_FIELD_MODEL_DEVICE);
        g->device_type |= device.length >= 4 && memcmp(device.bytes, "cuda", 4) == 0;
    }
    for (uint32_t at = 0; (fact = snd_fact_next(g->trace, process, SND_FACT_OF_GRAPH, &at));) {
        struct sonde_text absent = text_of(g, fact, SND_FIELD_GRAPH_ABSENT);
        if (absent.length > 0)
            g->info.absent = absent;
        else
            batch = snd_fact_number(fact, SND_FIELD_GRAPH_BATCH, 0);
        *tracer = text_of(g, fact, SND_FIELD_GRAPH_TRACER);
    }
    return batch > 0 ? (uint64_t)batch : 0;
}

/* The largest batch size is taken. */
static void choose(struct sonde_graph *g)
{
    struct sonde_text tracer = { "", 0 };

    for (uint32_t p = 0; p < g->trace->process_count; p++) {
        uint64_t batch = read_graph(g, p, &tracer);
        g->processes[p].batch = batch;
        g->processes[p].node = NO_NODE;
        if (batch > g->info.batch) {
            g->info.batch = batch;
            g->info.tracer = tracer;
        }
    }
}

static bool is_chosen(const struct sonde_graph *g, uint32_t process)
{
    return g->info.batch > 0 && g->processes[process].batch == g->info.batch;
}

static void read_nodes(struct sonde_graph *g)
{
    const struct snd_fact *fact;

    choose(g);
    for (uint32_t p = 0; p < g->trace->process_count; p++)
        for (uint32_t at = 0;
             is_chosen(g, p) && (fact = snd_fact_next(g->trace, p, SND_FACT_OF_NODE, &at));)
            add_node(g, fact);
}

/* --------------------------------------------------------------------- memory */

static void take(struct sonde_graph *g, struct process *p, struct snd_key key, int64_t bytes)
{
    if (!snd_grow(&p->blocks, &p->block_room, p->block_count, sizeof *p->blocks) ||
        !snd_map_put(&p->by_address, key, p->block_count)) {
        snd_assembly_stop(&g->assembly);
        return;
    }
    p->blocks[p->block_count++] = (struct block){ bytes, p->node };
    p->taken_bytes = snd_add(p->taken_bytes, bytes);
    p->live_bytes = snd_add(p->live_bytes, bytes);
    if (p->live_bytes > p->peak_bytes)
        p->peak_bytes = p->live_bytes;
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_graph *g = user;
    struct process     *p = &g->processes[lane->process];
    struct snd_key      key = { SND_LOW(words[1]), words[2], 0 };
    uint32_t            place;

    (void)ns, (void)innermost;
    if (SND_DEVICE_TYPE(SND_LOW(words[1])) != g->device_type || p->part != PART_PASS)
        return;
    if (snd_map_get(&p->by_address, key, &place)) {
        struct block *b = &p->blocks[place];
        p->live_bytes = snd_sub(p->live_bytes, b->bytes);
        if (b->node == p->node)
            p->taken_bytes = snd_sub(p->taken_bytes, b->bytes);
        snd_map_remove(&p->by_address, key);
    }
    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC)
        take(g, p, key, snd_net_bytes(words));
}

/* --------------------------------------------------------------------- ranges */

static void begin_node(struct process *p, uint32_t node)
{
    p->node = node;
    p->flops = p->macs = 0;
    p->taken_bytes = 0;
    p->peak_bytes = p->live_bytes;
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_graph *g = user;
    struct process     *p = &g->processes[lane->process];
    const struct label *label = &g->labels[range->range.name];

    (void)parent;
    if (!is_chosen(g, lane->process))
        return;
    if (label->part == PART_NODE && label->number < g->count && p->part != PART_NONE) {
        begin_node(p, (uint32_t)label->number);
    } else if (label->part == PART_RUN || label->part == PART_PASS) {
        p->part = label->number == g->info.batch ? label->part : PART_NONE;
        snd_map_release(&p->by_address);
        memset(&p->by_address, 0, sizeof p->by_address);
        p->block_count = 0;
        p->live_bytes = 0;
        p->node = NO_NODE;
    }
}

static void add_sample(struct sonde_graph *g, struct samples *s, const struct snd_range *r)
{
    if (r->unfinished)
        return;
    if (!snd_grow(&s->ns, &s->room, s->count, sizeof *s->ns)) {
        snd_assembly_stop(&g->assembly);
        return;
    }
    s->ns[s->count++] = r->total_ns;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void end_node(struct sonde_graph *g, struct process *p, const struct snd_range *r)
{
    struct sonde_graph_node *n = &g->nodes[p->node];

    if (p->part == PART_RUN) {
        add_sample(g, &g->samples[p->node], r);
    } else if (!r->unfinished) {
        double before = (double)g->passes[p->node]++;
        n->flops += (p->flops - n->flops) / (before + 1);
        n->macs += (p->macs - n->macs) / (before + 1);
        n->taken_bytes = larger(n->taken_bytes, p->taken_bytes);
        n->held_bytes = larger(n->held_bytes, p->live_bytes);
        n->peak_bytes = larger(n->peak_bytes, p->peak_bytes);
    }
    p->node = NO_NODE;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_graph     *g = user;
    struct process         *p = &g->processes[lane->process];
    const struct snd_range *r = &range->range;
    const struct label     *label = &g->labels[r->name];

    (void)parent;
    if (p->part == PART_NONE)
        return;
    if (label->part == PART_NODE && p->node == label->number) {
        end_node(g, p, r);
    } else if (label->part == p->part) {
        if (p->part == PART_RUN)
            add_sample(g, &g->runs, r);
        else
            g->info.passes += !r->unfinished;
        p->part = PART_NONE;
    } else if (p->node != NO_NODE) {
        p->flops += r->flops;
        p->macs += r->macs;
    }
}

/* ----------------------------------------------------------------- the whole */

static enum sonde_status build(struct sonde_graph *g, struct sonde_error *err)
{
    const struct snd_consumer consumer = { .user = g,
                                           .flops = SONDE_FLOPS_FULL,
                                           .open = on_open,
                                           .close = on_close,
                                           .memory = on_memory };

    read_nodes(g);
    g->samples = calloc((size_t)g->count + 1, sizeof *g->samples);
    g->passes = calloc((size_t)g->count + 1, sizeof *g->passes);
    if (g->assembly.out_of_memory || !g->samples || !g->passes)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the graph");
    if (g->count == 0)
        return SONDE_OK;
    enum sonde_status status = snd_assemble(&g->assembly, g->trace, SONDE_BY_TIME, &consumer, 1,
                                            err);
    snd_assembly_release(&g->assembly);
    if (status != SONDE_OK)
        return status;
    if (g->assembly.out_of_memory)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the graph");
    snd_spread(g->runs.ns, g->runs.count, &g->info.time);
    for (uint32_t i = 0; i < g->count; i++)
        snd_spread(g->samples[i].ns, g->samples[i].count, &g->nodes[i].time);
    return SONDE_OK;
}

enum sonde_status sonde_graph_new(struct sonde_trace *trace, struct sonde_graph **out,
                                  struct sonde_error *err)
{
    enum sonde_status   status = SONDE_E_NOMEM;
    struct sonde_graph *g = calloc(1, sizeof *g);

    *out = NULL;
    if (g) {
        g->trace = trace;
        g->info.tracer = g->info.absent = (struct sonde_text){ "", 0 };
        g->processes = calloc((size_t)trace->process_count + 1, sizeof *g->processes);
        g->labels = calloc((size_t)trace->names.count + 1, sizeof *g->labels);
    }
    if (g && g->processes && g->labels) {
        for (uint32_t i = 0; i < trace->names.count; i++)
            g->labels[i] = read_label(trace->names.items[i].bytes);
        status = build(g, err);
    } else {
        snd_fail(err, SONDE_E_NOMEM, "out of memory for the graph");
    }
    if (status == SONDE_OK)
        *out = g;
    else
        sonde_graph_free(g);
    return status;
}

void sonde_graph_free(struct sonde_graph *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; g->processes && i < g->trace->process_count; i++) {
        snd_map_release(&g->processes[i].by_address);
        free(g->processes[i].blocks);
    }
    for (uint32_t i = 0; g->samples && i < g->count; i++)
        free(g->samples[i].ns);
    free(g->samples);
    free(g->passes);
    free(g->runs.ns);
    free(g->nodes);
    free(g->processes);
    free(g->labels);
    snd_texts_release(&g->texts);
    free(g);
}

const struct sonde_graph_info *sonde_graph_info(const struct sonde_graph *graph)
{
    return &graph->info;
}

size_t sonde_graph_count(const struct sonde_graph *graph)
{
    return graph->count;
}

const struct sonde_graph_node *sonde_graph_node(const struct sonde_graph *graph, size_t index)
{
    return index < graph->count ? &graph->nodes[index] : NULL;
}
