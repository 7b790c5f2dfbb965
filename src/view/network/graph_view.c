/* SPDX-License-Identifier: Apache-2.0 */
/* The graph view: what each node of a model's graph costs, in the order in which they run. */
#include "read/file/scale.h"
#include "sonde/graph.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "name", "Node", SND_TEXT, SND_FIT_CONTENT },
    { "kind", "Kind", SND_TEXT, SND_FIT_CONTENT },
    { "target", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "class", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "time_percent", "Time %", SND_SHARE, SND_FIT_FIXED },
    { "mean_ns", "Mean", SND_TIME, SND_FIT_FIXED },
    { "median_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "min_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "std_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "runs", NULL, SND_COUNT, SND_FIT_FIXED },
    { "macs", NULL, SND_REAL, SND_FIT_FIXED },
    { "flops", "", SND_FLOPS, SND_FIT_FIXED },
    { "bytes", "Bytes", SND_BYTES, SND_FIT_FIXED },
    { "input_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "output_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "parameter_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "activation_bytes", "Activations", SND_BYTES, SND_FIT_FIXED },
    { "held_bytes", "Mem held", SND_BYTES, SND_FIT_FIXED },
    { "peak_bytes", "Peak Mem", SND_BYTES, SND_FIT_FIXED },
    { "input_shapes", "Input", SND_SHAPES, SND_FIT_SHAPES },
    { "output_shapes", "Output", SND_SHAPES, SND_FIT_SHAPES },
    { NULL, "Target", SND_TEXT, SND_FIT_CONTENT },
};

/* What a narrow terminal does without, in this order. */
static const char *const spare[] = { "Peak Mem", "Input", "Activations", "Output", "Kind", "Bytes",
                                     "Mem held", "",      "Target",      NULL };

/* A hostile trace may have times that no int64_t holds once they are summed. */
static int64_t round_ns(double ns)
{
    return ns < 9e18 ? (int64_t)(ns + 0.5) : INT64_MAX;
}

static struct snd_cell show_known(int64_t value, bool known)
{
    return known ? snd_cell_number(value) : snd_cell_none();
}

static struct snd_cell show_shapes(struct sonde_text shapes)
{
    return shapes.length ? snd_cell_text(shapes) : snd_cell_none();
}

/* "layer1.0.conv1 (Conv2d)" */
static struct snd_cell show_target(struct snd_doc *doc, const struct sonde_graph_node *n)
{
    return n->module.length == 0
               ? snd_cell_text(n->target)
               : snd_cell_string(snd_doc_format(doc, "%s (%s)", n->target.bytes, n->module.bytes));
}

static struct snd_cell *add_times(struct snd_cell *cell, const struct sonde_graph_node *n,
                                  const struct sonde_spread *whole)
{
    const double times[] = { n->time.mean_ns, n->time.median_ns, (double)n->time.min_ns,
                             n->time.std_ns };
    bool         known = n->time.count > 0;

    *cell++ = known && whole->mean_ns > 0 ? snd_cell_real(n->time.mean_ns * 100 / whole->mean_ns)
                                          : snd_cell_none();
    for (size_t i = 0; i < SND_COUNT_OF(times); i++)
        *cell++ = show_known(round_ns(times[i]), known);
    *cell++ = show_known((int64_t)n->time.count, known);
    return cell;
}

static void add_row(struct snd_doc *doc, const struct sonde_graph_node *n,
                    const struct sonde_graph_info *info)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);
    bool             told = n->input_bytes >= 0 && n->output_bytes >= 0, ran = info->passes > 0;
    int64_t          weights = n->weights_bytes < 0 ? 0 : n->weights_bytes;

    *cell++ = snd_cell_text(n->name);
    *cell++ = snd_cell_text(n->kind);
    *cell++ = snd_cell_text(n->target);
    *cell++ = snd_cell_text(n->module);
    cell = add_times(cell, n, &info->time);
    *cell++ = ran ? snd_cell_real(n->macs) : snd_cell_none();
    *cell++ = ran ? snd_cell_real(n->flops) : snd_cell_none();
    *cell++ = show_known(snd_add(snd_add(n->input_bytes, n->output_bytes), weights), told);
    *cell++ = show_known(n->input_bytes, n->input_bytes >= 0);
    *cell++ = show_known(n->output_bytes, n->output_bytes >= 0);
    *cell++ = show_known(n->weights_bytes, n->weights_bytes >= 0);
    *cell++ = show_known(n->taken_bytes, ran);
    *cell++ = show_known(n->held_bytes, ran);
    *cell++ = show_known(n->peak_bytes, ran);
    *cell++ = show_shapes(n->input_shapes);
    *cell++ = show_shapes(n->output_shapes);
    *cell++ = show_target(doc, n);
}

SND_DOC_RELEASE(free_graph, sonde_graph_free)

SND_VIEW_BUILD(snd_view_graph)
{
    double  flops = 0;
    int64_t nodes_ns = 0;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->rows.spare = spare;
    struct sonde_graph *graph = NULL;
    enum sonde_status   st = sonde_graph_new(trace, &graph, err);
    snd_doc_keep(doc, graph, free_graph);
    if (st != SONDE_OK)
        return st;
    const struct sonde_graph_info *info = sonde_graph_info(graph);
    for (size_t i = 0; i < sonde_graph_count(graph); i++) {
        const struct sonde_graph_node *n = sonde_graph_node(graph, i);
        add_row(doc, n, info);
        flops += n->flops;
        nodes_ns = snd_add(nodes_ns, round_ns(n->time.mean_ns));
    }
    if (info->absent.length > 0) {
        doc->empty = info->absent.bytes;
        snd_doc_total(doc, "absent", NULL, SND_TEXT, snd_cell_text(info->absent));
        return SONDE_OK;
    }
    if (doc->rows.row_count == 0)
        return SONDE_OK;
    snd_doc_total(doc, "mean_ns", "Mean of a run, node by node", SND_TIME,
                  show_known(round_ns(info->time.mean_ns), info->time.count > 0));
    snd_doc_total(doc, "nodes_ns", "Of it in the nodes", SND_TIME,
                  show_known(nodes_ns, info->time.count > 0));
    snd_doc_total(doc, "runs", "Runs", SND_COUNT, snd_cell_number((int64_t)info->time.count));
    snd_doc_total(doc, "passes", NULL, SND_COUNT, snd_cell_number((int64_t)info->passes));
    snd_doc_total(doc, "batch_size", NULL, SND_COUNT, snd_cell_number((int64_t)info->batch));
    snd_doc_total(doc, "flops", NULL, SND_REAL, snd_cell_real(flops));
    snd_doc_total(doc, "tracer", "Traced by", SND_TEXT, snd_cell_text(info->tracer));
    return SONDE_OK;
}
