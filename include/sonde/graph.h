/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/graph.h - what each node of a model's graph costs, as `sonde model --level graph` and
 * sonde.graph() recorded it.
 *
 * A node is a call of a module, of a function (x + y, torch.flatten) or of a method; inputs,
 * attributes and the output are nodes too. Times come from runs in which nothing but the nodes is
 * marked, FLOPs and memory from passes with operators. docs/MODEL.md names ranges and facts.
 *
 * Threads: as a trace.
 */
#ifndef SONDE_GRAPH_H
#define SONDE_GRAPH_H

#include "sonde/layers.h"

SONDE_C_BEGIN_

struct sonde_graph_node {
    struct sonde_text   name, kind, target;          /* "add_1", "call_function", "operator.add" */
    struct sonde_text   module;                      /* class of a module that is called, or "" */
    struct sonde_text   input_shapes, output_shapes; /* "[[1, 3]]" */
    int64_t             input_bytes, output_bytes, weights_bytes; /* -1: unknown */
    struct sonde_spread time;                                     /* count 0: not timed */
    double              flops, macs;                              /* of one pass */
    int64_t             taken_bytes; /* allocated and not freed in it; maximum of all passes */
    int64_t             held_bytes;  /* live in the pass when the node ends */
    int64_t             peak_bytes;  /* peak of the pass while it ran */
};

struct sonde_graph_info {
    struct sonde_text   tracer; /* "torch.fx", "torch.export", or "" */
    struct sonde_text   absent; /* why there is no graph; "": there is one, or none was requested */
    uint64_t            batch, passes;
    struct sonde_spread time; /* of whole runs, node by node */
};

struct sonde_graph; /* opaque */
/* Owns: the caller, until sonde_graph_free(); its texts are valid until then. */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_graph_new(struct sonde_trace *trace, struct sonde_graph **out, struct sonde_error *err);
SONDE_API void                           sonde_graph_free(struct sonde_graph *graph);
SONDE_API const struct sonde_graph_info *sonde_graph_info(const struct sonde_graph *graph);
/* In the order in which they run. */
SONDE_API size_t                         sonde_graph_count(const struct sonde_graph *graph);
SONDE_API const struct sonde_graph_node *sonde_graph_node(const struct sonde_graph *graph,
                                                          size_t                    index);

SONDE_C_END_
#endif
