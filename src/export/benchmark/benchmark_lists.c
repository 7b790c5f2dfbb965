/* SPDX-License-Identifier: Apache-2.0 */
#include "export/benchmark/benchmark_lists.h"

#include <math.h>
#include <stdio.h>

#include "sonde/graph.h"
#include "sonde/model.h"

const char *snd_batch_key(char text[48], uint64_t size)
{
    snprintf(text, 48, "batch_size_%llu", (unsigned long long)size);
    return text;
}

/* ------------------------------------------------------------ layers and operators */

static void put_layer(struct snd_emit *e, const struct sonde_module *m, double passes)
{
    double forward_ns = (double)m->forward_ns / passes;
    double work_ns = m->on_device ? (double)m->device_forward_ns : forward_ns;

    snd_emit_item(e);
    snd_emit_text(e, "path", m->path.bytes, m->path.length);
    snd_emit_text(e, "class", m->kind.bytes, m->kind.length);
    snd_emit_int(e, "depth", m->depth);
    snd_emit_shapes(e, "shape_in", m->input_shapes.bytes, m->input_shapes.length);
    snd_emit_shapes(e, "shape_out", m->output_shapes.bytes, m->output_shapes.length);
    snd_emit_int(e, "params", m->parameters < 0 ? 0 : m->parameters);
    snd_emit_int(e, "parameter_bytes", m->parameter_bytes);
    snd_emit_int(e, "macs", llround(m->macs / passes));
    snd_emit_int(e, "flops", llround(m->flops / passes));
    snd_emit_real(e, "forward_seconds", forward_ns / 1e9);
    if (m->device_forward_ns >= 0)
        snd_emit_real(e, "device_forward_seconds", (double)m->device_forward_ns / 1e9);
    if (m->backward_ns > 0) {
        snd_emit_real(e, "backward_seconds", (double)m->backward_ns / passes / 1e9);
        snd_emit_int(e, "backward_flops", llround(m->backward_flops / passes));
    }
    if (work_ns > 0)
        snd_emit_real(e, "flops_per_second", m->flops / passes * 1e9 / work_ns);
    snd_emit_int(e, "activation_bytes", llround((double)m->activation_bytes / passes));
    snd_emit_int(e, "peak_bytes", m->peak_bytes);
    snd_emit_end(e);
}

/* Depth first, children in the order in which they ran. */
static void put_tree(struct snd_emit *e, const struct sonde_modules *modules, double passes)
{
    uint32_t at = sonde_modules_node(modules, 0)->first_child;

    while (at != 0) {
        const struct sonde_module *m = sonde_modules_node(modules, at);
        put_layer(e, m, passes);
        at = m->first_child;
        while (at == 0 && m->depth > 0) {
            at = m->next_sibling;
            m = sonde_modules_node(modules, m->parent);
        }
    }
}

static enum sonde_status put_layers(struct snd_emit *e, struct sonde_trace *trace,
                                    struct sonde_error *err)
{
    struct sonde_modules *modules;
    enum sonde_status     st = sonde_modules_new(trace, SONDE_FLOPS_FULL, &modules, err);

    if (st != SONDE_OK)
        return st;
    uint64_t passes = sonde_modules_passes(modules);
    put_tree(e, modules, passes ? (double)passes : 1);
    sonde_modules_free(modules);
    return SONDE_OK;
}

static enum sonde_status put_operators(struct snd_emit *e, struct sonde_trace *trace,
                                       struct sonde_error *err)
{
    struct sonde_averages *averages;
    enum sonde_status      st = sonde_averages_new(trace, NULL, &averages, err);

    if (st != SONDE_OK)
        return st;
    uint64_t passes = sonde_averages_passes(averages);
    for (size_t i = 0; i < sonde_averages_count(averages); i++) {
        const struct sonde_average  sum = sonde_averages_get(averages, i);
        const struct sonde_average  mean = sonde_average_of_pass(&sum, passes);
        const struct sonde_average *row = &mean;
        snd_emit_item(e);
        snd_emit_text(e, "name", row->name.bytes, row->name.length);
        snd_emit_int(e, "count", (int64_t)row->count);
        snd_emit_real(e, "self_seconds", (double)row->self_ns / 1e9);
        snd_emit_real(e, "total_seconds", (double)row->total_ns / 1e9);
        snd_emit_int(e, "self_cpu_bytes", row->self_cpu_bytes);
        snd_emit_int(e, "self_device_bytes", row->self_device_bytes);
        snd_emit_int(e, "macs", llround(row->macs));
        snd_emit_int(e, "flops", llround(row->flops));
        snd_emit_end(e);
    }
    sonde_averages_free(averages);
    return SONDE_OK;
}

typedef enum sonde_status put_fn(struct snd_emit *e, struct sonde_trace *trace,
                                 struct sonde_error *err);

/* `key`: a list for each batch size, from the file of its passes, with the backward pass if there is one. */
static enum sonde_status put_each(struct snd_emit *e, const char *key,
                                  const struct sonde_bench *bench, put_fn *put,
                                  struct sonde_error *err)
{
    enum sonde_status st = SONDE_OK;
    char              name[48];

    snd_emit_map(e, key);
    for (size_t i = 0; i < sonde_bench_count(bench) && st == SONDE_OK; i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        const char                     *path = b->train_path ? b->train_path : b->path;
        struct sonde_trace             *trace;
        if (!path)
            continue;
        st = sonde_trace_open(path, &trace, err);
        if (st != SONDE_OK)
            break;
        snd_emit_list(e, snd_batch_key(name, b->size));
        st = put(e, trace, err);
        snd_emit_end(e);
        sonde_trace_close(trace);
    }
    snd_emit_end(e);
    return st;
}

enum sonde_status snd_benchmark_layers(struct snd_emit *e, const struct sonde_bench *bench,
                                       struct sonde_error *err)
{
    return put_each(e, "layers", bench, put_layers, err);
}

enum sonde_status snd_benchmark_operators(struct snd_emit *e, const struct sonde_bench *bench,
                                          struct sonde_error *err)
{
    return put_each(e, "operators", bench, put_operators, err);
}

/* -------------------------------------------------------------------------- graph */

static void put_node(struct snd_emit *e, const struct sonde_graph_node *n, double whole_ns)
{
    snd_emit_item(e);
    snd_emit_text(e, "name", n->name.bytes, n->name.length);
    snd_emit_text(e, "kind", n->kind.bytes, n->kind.length);
    snd_emit_text(e, "target", n->target.bytes, n->target.length);
    snd_emit_text(e, "class", n->module.bytes, n->module.length);
    snd_emit_shapes(e, "shape_in", n->input_shapes.bytes, n->input_shapes.length);
    snd_emit_shapes(e, "shape_out", n->output_shapes.bytes, n->output_shapes.length);
    if (n->time.count > 0) {
        snd_emit_real(e, "seconds_mean", n->time.mean_ns / 1e9);
        snd_emit_real(e, "seconds_median", n->time.median_ns / 1e9);
    }
    if (n->time.count > 0 && whole_ns > 0)
        snd_emit_real(e, "share", n->time.mean_ns / whole_ns);
    snd_emit_int(e, "macs", llround(n->macs));
    snd_emit_int(e, "flops", llround(n->flops));
    snd_emit_int(e, "input_bytes", n->input_bytes);
    snd_emit_int(e, "output_bytes", n->output_bytes);
    snd_emit_int(e, "parameter_bytes", n->weights_bytes);
    snd_emit_int(e, "activation_bytes", n->taken_bytes);
    snd_emit_int(e, "held_bytes", n->held_bytes);
    snd_emit_int(e, "peak_bytes", n->peak_bytes);
    snd_emit_end(e);
}

enum sonde_status snd_benchmark_graph(struct snd_emit *e, struct sonde_trace *trace, bool is_asked,
                                      struct sonde_error *err)
{
    struct sonde_graph *graph;
    char                key[48];
    enum sonde_status   st = sonde_graph_new(trace, &graph, err);

    if (st != SONDE_OK)
        return st;
    const struct sonde_graph_info *info = sonde_graph_info(graph);
    if (is_asked || sonde_graph_count(graph) > 0) {
        snd_emit_map(e, "graph");
        snd_emit_text(e, info->absent.length ? "absent" : "tracer",
                      info->absent.length ? info->absent.bytes : info->tracer.bytes,
                      info->absent.length ? info->absent.length : info->tracer.length);
        if (sonde_graph_count(graph) > 0) {
            snd_emit_list(e, snd_batch_key(key, info->batch));
            for (size_t i = 0; i < sonde_graph_count(graph); i++)
                put_node(e, sonde_graph_node(graph, i), info->time.mean_ns);
            snd_emit_end(e);
        }
        snd_emit_end(e);
    }
    sonde_graph_free(graph);
    return SONDE_OK;
}
