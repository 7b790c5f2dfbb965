/* SPDX-License-Identifier: Apache-2.0 */
/* The layers view: what each layer of a model cost, as `sonde layers` measured it. */
#include "base/text/buf.h"
#include "read/file/scale.h"
#include "sonde/layers.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "layer", "Layer", SND_COUNT, SND_FIT_FIXED },
    { "time_percent", "Time %", SND_SHARE, SND_FIT_FIXED },
    { "time_ns", "Mean", SND_TIME, SND_FIT_FIXED },
    { "median_ns", "Median", SND_TIME, SND_FIT_FIXED },
    { "min_ns", "Min", SND_TIME, SND_FIT_FIXED },
    { "max_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "std_ns", "Std", SND_TIME, SND_FIT_FIXED },
    { "p90_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "p99_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "count", "# of Runs", SND_COUNT, SND_FIT_FIXED },
    { "backward_ns", "Backward", SND_TIME, SND_FIT_FIXED },
    { "copy_ns", "Copies", SND_TIME, SND_FIT_FIXED },
    { "host_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "parameters", NULL, SND_COUNT, SND_FIT_FIXED },
    { "weight_bytes", "Weights", SND_BYTES, SND_FIT_FIXED },
    { "rss_bytes", "RSS", SND_BYTES, SND_FIT_FIXED },
    { "in_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "out_bytes", "Out", SND_BYTES, SND_FIT_FIXED },
    { "same_as", "Same as", SND_COUNT, SND_FIT_FIXED },
    { "shape_in", NULL, SND_SHAPES, SND_FIT_SHAPES },
    { "shape_out", "Shapes out", SND_SHAPES, SND_FIT_SHAPES },
    { "name", "Name", SND_TEXT, SND_FIT_CONTENT },
};
enum { COLUMN_BACKWARD = 10, COLUMN_COPY = 11, COLUMN_RSS = 15, COLUMN_SAME = 18 };

/* What a narrow terminal does without, in this order. */
static const char *const spare[] = { "Std",        "Min",      "Same as",   "RSS",
                                     "Shapes out", "Copies",   "# of Runs", "Median",
                                     "Out",        "Backward", "Weights",   NULL };

/* "[[197, 768], [197, 3072]]" */
static struct snd_cell show_shapes(struct snd_doc *doc, const struct sonde_layer_tensor *list,
                                   uint32_t count)
{
    struct sonde_buffer text = { 0 };

    snd_buf_text(&text, "[");
    for (uint32_t i = 0; i < count; i++) {
        snd_buf_text(&text, i ? ", [" : "[");
        for (uint32_t k = 0; k < list[i].ndim; k++)
            snd_buf_format(&text, "%s%lld", k ? ", " : "", (long long)list[i].dims[k]);
        snd_buf_text(&text, "]");
    }
    snd_buf_text(&text, "]");
    return snd_cell_string(snd_doc_take(doc, &text));
}

/* A hostile trace may have times that no int64_t holds once they are summed. */
static int64_t round_ns(double ns)
{
    return ns < 9e18 ? (int64_t)(ns + 0.5) : INT64_MAX;
}

static struct snd_cell show_ns(const struct sonde_spread *spread, double ns)
{
    return spread->count == 0 ? snd_cell_none() : snd_cell_number(round_ns(ns));
}

static void add_row(struct snd_doc *doc, const struct sonde_layer *layer, int64_t whole_ns)
{
    const struct sonde_spread *time = &layer->time[SONDE_LAYER_FORWARD];
    const struct sonde_spread *back = &layer->time[SONDE_LAYER_BACKWARD];
    const struct sonde_spread *copy = &layer->time[SONDE_LAYER_COPY];
    const struct sonde_spread *host = &layer->time[SONDE_LAYER_HOST];
    struct snd_cell           *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_number(layer->number);
    *cell++ = time->count ? snd_cell_share(round_ns(time->mean_ns), whole_ns) : snd_cell_none();
    *cell++ = show_ns(time, time->mean_ns);
    *cell++ = show_ns(time, time->median_ns);
    *cell++ = show_ns(time, (double)time->min_ns);
    *cell++ = show_ns(time, (double)time->max_ns);
    *cell++ = show_ns(time, time->std_ns);
    *cell++ = time->count < SONDE_P90_LEAST ? snd_cell_none() : show_ns(time, (double)time->p90_ns);
    *cell++ = time->count < SONDE_P99_LEAST ? snd_cell_none() : show_ns(time, (double)time->p99_ns);
    *cell++ = snd_cell_number((int64_t)time->count);
    *cell++ = show_ns(back, back->mean_ns);
    *cell++ = show_ns(copy, copy->mean_ns);
    *cell++ = show_ns(host, host->mean_ns);
    *cell++ = snd_cell_number(layer->parameter_count);
    *cell++ = snd_cell_number(layer->parameter_bytes + layer->buffer_bytes);
    *cell++ = layer->rss_bytes < 0 ? snd_cell_none() : snd_cell_number(layer->rss_bytes);
    *cell++ = snd_cell_number(layer->in_bytes);
    *cell++ = snd_cell_number(layer->out_bytes);
    *cell++ = layer->same_as ? snd_cell_number(layer->same_as) : snd_cell_none();
    *cell++ = show_shapes(doc, layer->in, layer->in_count);
    *cell++ = show_shapes(doc, layer->out, layer->out_count);
    *cell++ = snd_cell_text(layer->name);
}

static void add_spread(struct snd_doc *doc, const char *key, const char *title,
                       const struct sonde_spread *spread)
{
    if (spread->count > 0)
        snd_doc_total(doc, key, title, SND_TIME, show_ns(spread, spread->median_ns));
}

static void add_totals(struct snd_doc *doc, const struct sonde_layers *layers)
{
    const struct sonde_layers_head *head = sonde_layers_head(layers);
    int64_t                         weights = 0, parameters = 0;
    double                          medians = 0;

    for (size_t i = 0; i < sonde_layers_count(layers); i++) {
        const struct sonde_layer *layer = sonde_layers_row(layers, i);
        weights = snd_add(weights, layer->parameter_bytes + layer->buffer_bytes);
        parameters = snd_add(parameters, layer->parameter_count);
        medians += layer->time[SONDE_LAYER_FORWARD].median_ns;
    }
    snd_doc_total(doc, "model_name", "Model", SND_TEXT, snd_cell_text(head->model_name));
    snd_doc_total(doc, "batch_size", "Batch size", SND_COUNT, snd_cell_number(head->batch_size));
    snd_doc_total(doc, "dtype", "Data type", SND_TEXT, snd_cell_text(head->dtype));
    snd_doc_total(doc, "layers", "Layers", SND_COUNT, snd_cell_number(head->layers));
    snd_doc_total(doc, "parameters", "Parameters", SND_COUNT, snd_cell_number(parameters));
    snd_doc_total(doc, "weight_bytes", "Weights", SND_BYTES, snd_cell_number(weights));
    snd_doc_total(doc, "median_ns", "Sum of medians", SND_TIME, snd_cell_number(round_ns(medians)));
    add_spread(doc, "pass_ns", "Pass (median)", &head->pass);
    add_spread(doc, "model_ns", "Whole model (median)", &head->model);
}

SND_DOC_RELEASE(free_layers, sonde_layers_free)

SND_VIEW_BUILD(snd_view_layers)
{
    bool   backward = false, copy = false, rss = false, same = false;
    double whole = 0;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->rows.spare = spare;
    struct sonde_layers *layers = NULL;
    enum sonde_status    status = sonde_layers_new(trace, &layers, err);
    snd_doc_keep(doc, layers, free_layers);
    if (status != SONDE_OK)
        return status;
    for (size_t i = 0; i < sonde_layers_count(layers); i++)
        whole += sonde_layers_row(layers, i)->time[SONDE_LAYER_FORWARD].mean_ns;
    for (size_t i = 0; i < sonde_layers_count(layers); i++) {
        const struct sonde_layer *layer = sonde_layers_row(layers, i);
        add_row(doc, layer, round_ns(whole));
        backward |= layer->time[SONDE_LAYER_BACKWARD].count > 0;
        copy |= layer->time[SONDE_LAYER_COPY].count > 0;
        rss |= layer->rss_bytes >= 0;
        same |= layer->same_as != 0;
    }
    doc->rows.hidden[COLUMN_BACKWARD] = !backward;
    doc->rows.hidden[COLUMN_COPY] = !copy;
    doc->rows.hidden[COLUMN_RSS] = !rss;
    doc->rows.hidden[COLUMN_SAME] = !same;
    if (sonde_layers_count(layers) > 0)
        add_totals(doc, layers);
    return SONDE_OK;
}
