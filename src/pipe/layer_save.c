/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/layer_save.c - a profile of layers into a profiler_results.yml.
 *
 * PipeEdge's five keys of a row, and further ones beside them, which its converters and its
 * scheduler pass over: seconds begin with time, backward or copy, bytes end in _bytes.
 */
#include "pipe/results.h"
#include "base/count_of.h"
#include "base/struct_size.h"
#include "sonde/export.h"
#include "sonde/layers.h"

#define BYTES_OF_MB 1e6 /* PipeEdge's */
#define NS_OF_S 1e9

static void set_seconds(struct snd_document *doc, struct snd_node *row, const char *key, double ns)
{
    snd_node_set(doc, row, key, snd_node_real(doc, ns / NS_OF_S));
}

static void set_int(struct snd_document *doc, struct snd_node *row, const char *key, int64_t value)
{
    snd_node_set(doc, row, key, snd_node_int(doc, value));
}

static void set_text(struct snd_document *doc, struct snd_node *map, const char *key,
                     struct sonde_text text)
{
    snd_node_set(doc, map, key, snd_node_bytes(doc, text.bytes, text.length));
}

static void set_tensors(struct snd_document *doc, struct snd_node *row, const char *shapes_key,
                        const char *dtypes_key, const struct sonde_layer_tensor *list,
                        uint32_t count)
{
    struct snd_node *shapes = snd_node_list(doc), *dtypes = snd_node_list(doc);

    for (uint32_t i = 0; i < count; i++) {
        snd_node_add(doc, shapes, snd_node_ints(doc, list[i].dims, list[i].ndim));
        snd_node_add(doc, dtypes, snd_node_bytes(doc, list[i].dtype.bytes, list[i].dtype.length));
    }
    snd_node_set(doc, row, shapes_key, shapes);
    snd_node_set(doc, row, dtypes_key, dtypes);
}

static void set_spread(struct snd_document *doc, struct snd_node *row,
                       const struct sonde_spread *time)
{
    set_seconds(doc, row, "time", time->mean_ns);
    set_seconds(doc, row, "time_median", time->median_ns);
    set_seconds(doc, row, "time_min", (double)time->min_ns);
    set_seconds(doc, row, "time_max", (double)time->max_ns);
    set_seconds(doc, row, "time_std", time->std_ns);
    set_seconds(doc, row, "time_p90", (double)time->p90_ns);
    set_seconds(doc, row, "time_p99", (double)time->p99_ns);
    set_int(doc, row, "count", (int64_t)time->count);
}

/* What was measured only on request, or on some machines. */
static void set_others(struct snd_document *doc, struct snd_node *row,
                       const struct sonde_layer *layer)
{
    const struct sonde_spread *back = &layer->time[SONDE_LAYER_BACKWARD];
    const struct sonde_spread *copy = &layer->time[SONDE_LAYER_COPY];
    const struct sonde_spread *host = &layer->time[SONDE_LAYER_HOST];

    if (back->count > 0) {
        set_seconds(doc, row, "backward_time", back->mean_ns);
        set_seconds(doc, row, "backward_median", back->median_ns);
        set_seconds(doc, row, "backward_min", (double)back->min_ns);
        set_seconds(doc, row, "backward_std", back->std_ns);
    }
    if (copy->count > 0) {
        set_seconds(doc, row, "copy_time", copy->mean_ns);
        set_seconds(doc, row, "copy_median", copy->median_ns);
    }
    if (host->count > 0)
        set_seconds(doc, row, "time_host", host->mean_ns);
    if (layer->rss_bytes >= 0)
        set_int(doc, row, "rss_bytes", layer->rss_bytes);
    if (layer->same_as)
        set_int(doc, row, "same_as", layer->same_as);
}

static struct snd_node *make_row(struct snd_document *doc, const struct sonde_layers_head *head,
                                 const struct sonde_layer *layer)
{
    struct snd_node *row = snd_node_map(doc);
    int64_t          weights = layer->parameter_bytes + layer->buffer_bytes;
    int64_t          memory = head->memory_is_rss ? layer->rss_bytes : weights;

    set_int(doc, row, "layer", layer->number);
    snd_node_set(doc, row, "memory", snd_node_real(doc, (double)memory / BYTES_OF_MB));
    set_tensors(doc, row, "shape_in", "dtype_in", layer->in, layer->in_count);
    set_tensors(doc, row, "shape_out", "dtype_out", layer->out, layer->out_count);
    set_spread(doc, row, &layer->time[SONDE_LAYER_FORWARD]);
    set_text(doc, row, "name", layer->name);
    set_int(doc, row, "parameters", layer->parameter_count);
    set_int(doc, row, "weight_bytes", weights);
    set_int(doc, row, "input_bytes", layer->in_bytes);
    set_int(doc, row, "activation_bytes", layer->out_bytes);
    set_others(doc, row, layer);
    return row;
}

/* A whole one: a version such as 3.10 is none, but a text. */
static bool is_number(struct sonde_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
    return text.length > 0 && text.length <= 18;
}

static const char *memory_kind(const struct sonde_layers_head *head)
{
    return head->memory_is_rss ? "rss" : "weights";
}

static const char *borders_kind(const struct sonde_layers_head *head)
{
    return head->paired ? "paired" : "single";
}

/* Under which conditions the latest rows were measured. */
static enum sonde_status set_environment(struct snd_results        *results,
                                         const struct sonde_layers *layers, struct sonde_error *err)
{
    const struct sonde_layers_head *head = sonde_layers_head(layers);
    struct snd_document            *doc = snd_results_doc(results);
    struct snd_node                *map = snd_node_map(doc);
    struct sonde_text               key, value;

    set_text(doc, map, "device", head->device);
    snd_node_set(doc, map, "memory", snd_node_text(doc, memory_kind(head)));
    snd_node_set(doc, map, "borders", snd_node_text(doc, borders_kind(head)));
    snd_node_set(doc, map, "sonde", snd_node_text(doc, sonde_version()));
    for (size_t n = 0; sonde_layers_environment(layers, n, &key, &value); n++)
        snd_node_set(doc, map, key.bytes,
                     is_number(value) ? snd_node_plain(doc, value.bytes, value.length)
                                      : snd_node_bytes(doc, value.bytes, value.length));
    if (head->pass.count > 0)
        set_seconds(doc, map, "pass_time_median", head->pass.median_ns);
    if (head->model.count > 0)
        set_seconds(doc, map, "model_time_median", head->model.median_ns);
    return snd_results_set(results, "environment", map, err);
}

/* Rows of different kinds in one column would be taken for alike; another program's do not say. */
static enum sonde_status check_environment(struct snd_results             *results,
                                           const struct sonde_layers_head *head,
                                           struct sonde_error             *err)
{
    const struct {
        const char *key, *value;
    } kept[] = { { "memory", memory_kind(head) },
                 { "device", head->device.bytes },
                 { "borders", borders_kind(head) } };
    const struct snd_node *has = snd_node_get(snd_results_doc(results)->root, "environment");

    for (size_t i = 0; snd_results_count(results) > 0 && i < SND_COUNT_OF(kept); i++) {
        const struct snd_node *old = snd_node_get(has, kept[i].key);
        if (snd_node_is(old, SND_NODE_TEXT) && !snd_node_is_text(old, kept[i].value))
            return snd_fail(err, SONDE_E_STATE,
                            "%s holds results of %s %.80s, not %s; give another file with -o",
                            snd_results_path(results), kept[i].key, old->text, kept[i].value);
    }
    return SONDE_OK;
}

enum sonde_status sonde_layers_save(const struct sonde_layers *layers, const char *path,
                                    size_t *saved, struct sonde_error *err)
{
    const struct sonde_layers_head *head = sonde_layers_head(layers);
    const struct snd_results_head   of = { head->model_name.bytes, head->dtype.bytes,
                                           head->batch_size, head->layers };
    struct snd_results             *results;
    size_t                          done = 0;

    enum sonde_status status = snd_results_open(path, &of, &results, err);
    if (status != SONDE_OK)
        return status;
    status = check_environment(results, head, err);
    for (size_t i = 0; status == SONDE_OK && i < sonde_layers_count(layers); i++) {
        const struct sonde_layer *layer = sonde_layers_row(layers, i);
        if (layer->time[SONDE_LAYER_FORWARD].count == 0)
            continue;
        if (head->memory_is_rss && layer->rss_bytes < 0) {
            status = snd_fail(err, SONDE_E_FORMAT, "layer %u has no resident size", layer->number);
            break;
        }
        status = snd_results_put(results, make_row(snd_results_doc(results), head, layer), err);
        done++;
    }
    if (status == SONDE_OK)
        status = set_environment(results, layers, err);
    if (status == SONDE_OK)
        status = snd_results_save(results, err);
    snd_results_free(results);
    if (saved)
        *saved = status == SONDE_OK ? done : 0;
    return status;
}

enum sonde_status sonde_results_layers(const char *path, const struct sonde_results_head *head,
                                       struct sonde_results_row *rows, size_t size, size_t *count,
                                       struct sonde_error *err)
{
    struct sonde_results_head used = SONDE_RESULTS_HEAD_INIT;
    struct snd_results       *results;

    *count = 0;
    enum sonde_status status = snd_struct_take(head, &used, sizeof used, "SONDE_RESULTS_HEAD_INIT",
                                               err);
    if (status != SONDE_OK)
        return status;
    const struct snd_results_head of = { used.model_name, used.dtype, used.batch_size,
                                         used.layers };
    status = snd_results_open(path, &of, &results, err);
    if (status != SONDE_OK)
        return status;
    *count = snd_results_count(results);
    for (uint32_t i = 0; i < *count && i < size; i++) {
        const struct snd_node *row = snd_results_row(results, i);
        const struct snd_node *runs = snd_node_get(row, "count");
        rows[i].layer = snd_row_layer(row);
        rows[i].runs = snd_node_is(runs, SND_NODE_INT) ? runs->integer : 0;
    }
    snd_results_free(results);
    return SONDE_OK;
}
