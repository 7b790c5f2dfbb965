/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/results.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "pipe/results_rows.h"
#include "pipe/yaml/yaml.h"

struct snd_results {
    struct snd_document doc;
    char               *path; /* owned */
    struct snd_node    *rows; /* profile_data */
};

#define KEY_BATCH "batch_size"
#define KEY_DTYPE "dtype"
#define KEY_LAYERS "layers"
#define KEY_MODEL "model_name"
#define KEY_ROWS "profile_data"

/* PipeEdge's names and the layers it cuts them into (model_cfg.py). */
static const struct {
    const char *name;
    int64_t     layers;
} known[] = {
    { "google/vit-base-patch16-224", 48 },
    { "google/vit-large-patch16-224", 96 },
    { "google/vit-huge-patch14-224-in21k", 128 },
    { "bert-base-uncased", 48 },
    { "bert-large-uncased", 96 },
    { "textattack/bert-base-uncased-CoLA", 48 },
    { "facebook/deit-base-distilled-patch16-224", 48 },
    { "facebook/deit-small-distilled-patch16-224", 48 },
    { "facebook/deit-tiny-distilled-patch16-224", 48 },
};

int64_t snd_known_layers(const char *model_name)
{
    for (size_t i = 0; i < SND_COUNT_OF(known); i++)
        if (strcmp(known[i].name, model_name) == 0)
            return known[i].layers;
    return 0;
}

/* --------------------------------------------------------------- the file */

static enum sonde_status check_text(const struct snd_results *r, const char *key,
                                    struct sonde_error *err)
{
    const struct snd_node *value = snd_node_get(r->doc.root, key);
    char                   said[SND_NODE_SAID_MAX];

    if (snd_node_is(value, SND_NODE_TEXT) && value->length > 0 &&
        strlen(value->text) == value->length)
        return SONDE_OK;
    if (!value)
        return snd_fail(err, SONDE_E_FORMAT, "%s has no %s: not a results file", r->path, key);
    return snd_fail(err, SONDE_E_FORMAT, "%s: %s is %s, not a string", r->path, key,
                    snd_node_said(value, said));
}

static enum sonde_status check_count(const struct snd_results *r, const char *key, int64_t least,
                                     struct sonde_error *err)
{
    const struct snd_node *value = snd_node_get(r->doc.root, key);
    char                   said[SND_NODE_SAID_MAX];

    if (snd_node_is(value, SND_NODE_INT) && value->in_range && value->integer >= least)
        return SONDE_OK;
    if (!value)
        return snd_fail(err, SONDE_E_FORMAT, "%s has no %s: not a results file", r->path, key);
    return snd_fail(err, SONDE_E_FORMAT, "%s: %s is %s, not an integer >= %" PRId64, r->path, key,
                    snd_node_said(value, said), least);
}

/* Keys and kinds; amounts, and whether layers are missing, are other matters. */
static enum sonde_status check_file(struct snd_results *r, struct sonde_error *err)
{
    char              said[SND_NODE_SAID_MAX];
    enum sonde_status status = check_count(r, KEY_BATCH, 1, err);

    if (status == SONDE_OK)
        status = check_text(r, KEY_DTYPE, err);
    if (status == SONDE_OK)
        status = check_count(r, KEY_LAYERS, 0, err);
    if (status == SONDE_OK)
        status = check_text(r, KEY_MODEL, err);
    if (status != SONDE_OK)
        return status;
    r->rows = snd_node_get(r->doc.root, KEY_ROWS);
    if (!snd_node_is(r->rows, SND_NODE_LIST))
        return snd_fail(err, SONDE_E_FORMAT, "%s: %s is %s, not a list of rows", r->path, KEY_ROWS,
                        snd_node_said(r->rows, said));
    for (uint32_t i = 0; i < r->rows->count && status == SONDE_OK; i++)
        status = snd_row_check(r->path, r->rows->items[i], SONDE_E_FORMAT, err);
    return status;
}

static struct snd_results *make(const char *path, struct sonde_error *err)
{
    struct snd_results *r = calloc(1, sizeof *r);

    if (r)
        r->path = strdup(path);
    if (r && r->path)
        return r;
    free(r);
    (void)snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", path);
    return NULL;
}

void snd_results_free(struct snd_results *results)
{
    if (!results)
        return;
    snd_document_release(&results->doc);
    free(results->path);
    free(results);
}

/* Hands over `r` when all is well, and ends it otherwise. */
static enum sonde_status hand_over(struct snd_results *r, enum sonde_status status,
                                   struct snd_results **out)
{
    if (status == SONDE_OK)
        *out = r;
    else
        snd_results_free(r);
    return status;
}

enum sonde_status snd_results_load(const char *path, struct snd_results **out,
                                   struct sonde_error *err)
{
    struct snd_results *r = make(path, err);

    *out = NULL;
    if (!r)
        return SONDE_E_NOMEM;
    enum sonde_status status = snd_yaml_load_map(&r->doc, path, false, err);
    if (status == SONDE_OK)
        status = check_file(r, err);
    return hand_over(r, status, out);
}

static enum sonde_status start_file(struct snd_results *r, const struct snd_results_head *head,
                                    struct sonde_error *err)
{
    struct snd_document *doc = &r->doc;
    struct snd_node     *root = doc->root;

    snd_node_set(doc, root, KEY_BATCH, snd_node_int(doc, head->batch_size));
    snd_node_set(doc, root, KEY_DTYPE, snd_node_text(doc, head->dtype));
    snd_node_set(doc, root, KEY_LAYERS, snd_node_int(doc, head->layers));
    snd_node_set(doc, root, KEY_MODEL, snd_node_text(doc, head->model_name));
    r->rows = snd_node_list(doc);
    snd_node_set(doc, root, KEY_ROWS, r->rows);
    return doc->failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", r->path) : SONDE_OK;
}

static enum sonde_status check_agrees(const struct snd_results      *r,
                                      const struct snd_results_head *head, struct sonde_error *err)
{
    struct snd_results_head has = snd_results_head(r);
    static const char       hint[] = "give another file with -o";

    if (strcmp(has.model_name, head->model_name) != 0)
        return snd_fail(err, SONDE_E_STATE, "%s holds results of model_name %s, not %s; %s",
                        r->path, has.model_name, head->model_name, hint);
    if (strcmp(has.dtype, head->dtype) != 0)
        return snd_fail(err, SONDE_E_STATE, "%s holds results of dtype %s, not %s; %s", r->path,
                        has.dtype, head->dtype, hint);
    if (has.batch_size != head->batch_size)
        return snd_fail(err, SONDE_E_STATE,
                        "%s holds results of batch_size %" PRId64 ", not %" PRId64 "; %s", r->path,
                        has.batch_size, head->batch_size, hint);
    if (has.layers != head->layers)
        return snd_fail(err, SONDE_E_STATE,
                        "%s holds results of a model of %" PRId64 " layers, not %" PRId64 "; %s",
                        r->path, has.layers, head->layers, hint);
    return SONDE_OK;
}

static int compare_rows(const void *a, const void *b)
{
    int64_t left = snd_row_layer(*(struct snd_node *const *)a);
    int64_t right = snd_row_layer(*(struct snd_node *const *)b);

    return (left > right) - (left < right);
}

static enum sonde_status sort_rows(struct snd_results *r, struct sonde_error *err)
{
    if (r->rows->count > 1)
        qsort(r->rows->items, r->rows->count, sizeof *r->rows->items, compare_rows);
    for (uint32_t i = 1; i < r->rows->count; i++)
        if (compare_rows(&r->rows->items[i - 1], &r->rows->items[i]) == 0)
            return snd_fail(err, SONDE_E_FORMAT, "%s, lines %u and %u: duplicate layer %" PRId64,
                            r->path, r->rows->items[i - 1]->line, r->rows->items[i]->line,
                            snd_row_layer(r->rows->items[i]));
    return SONDE_OK;
}

static enum sonde_status check_existing(struct snd_results *r, const struct snd_results_head *head,
                                        struct sonde_error *err)
{
    enum sonde_status status = check_file(r, err);

    if (status == SONDE_OK)
        status = check_agrees(r, head, err);
    for (uint32_t i = 0; status == SONDE_OK && i < r->rows->count; i++)
        status = snd_row_check_amounts(r->path, r->rows->items[i], SONDE_E_FORMAT, err);
    return status == SONDE_OK ? sort_rows(r, err) : status;
}

enum sonde_status snd_results_open(const char *path, const struct snd_results_head *head,
                                   struct snd_results **out, struct sonde_error *err)
{
    *out = NULL;
    if (head->batch_size < 1 || head->layers < 1 || !*head->dtype || !*head->model_name)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "model_name and dtype are required, batch_size and layers must be >= 1");
    struct snd_results *r = make(path, err);
    if (!r)
        return SONDE_E_NOMEM;
    enum sonde_status status = snd_yaml_load_map(&r->doc, path, true, err);
    if (status == SONDE_OK)
        status = r->doc.root->count == 0 ? start_file(r, head, err) : check_existing(r, head, err);
    return hand_over(r, status, out);
}

/* ------------------------------------------------------------------ using */

struct snd_results_head snd_results_head(const struct snd_results *results)
{
    const struct snd_node *root = results->doc.root;

    return (struct snd_results_head){
        .model_name = snd_node_get(root, KEY_MODEL)->text,
        .dtype = snd_node_get(root, KEY_DTYPE)->text,
        .batch_size = snd_node_get(root, KEY_BATCH)->integer,
        .layers = snd_node_get(root, KEY_LAYERS)->integer,
    };
}

const char *snd_results_path(const struct snd_results *results)
{
    return results->path;
}

struct snd_document *snd_results_doc(struct snd_results *results)
{
    return &results->doc;
}

uint32_t snd_results_count(const struct snd_results *results)
{
    return results->rows->count;
}

const struct snd_node *snd_results_row(const struct snd_results *results, uint32_t index)
{
    return results->rows->items[index];
}

/* Where the row of a layer is, or belongs. */
static uint32_t find_row(const struct snd_results *r, int64_t layer)
{
    uint32_t at = 0;

    while (at < r->rows->count && snd_row_layer(r->rows->items[at]) < layer)
        at++;
    return at;
}

enum sonde_status snd_results_put(struct snd_results *r, struct snd_node *row,
                                  struct sonde_error *err)
{
    enum sonde_status status;

    if (!row || r->doc.failed)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", r->path);
    status = snd_row_check(r->path, row, SONDE_E_ARGUMENT, err);
    if (status == SONDE_OK)
        status = snd_row_check_amounts(r->path, row, SONDE_E_ARGUMENT, err);
    if (status != SONDE_OK)
        return status;
    int64_t  layer = snd_row_layer(row), layers = snd_results_head(r).layers;
    uint32_t at = find_row(r, layer), last = r->rows->count;
    if (layer < 1 || layer > layers)
        return snd_fail(err, SONDE_E_ARGUMENT, "%s: layer %" PRId64 " is out of range 1..%" PRId64,
                        r->path, layer, layers);
    if (at < last && snd_row_layer(r->rows->items[at]) == layer) {
        r->rows->items[at] = row;
        return SONDE_OK;
    }
    snd_node_add(&r->doc, r->rows, row);
    if (r->doc.failed)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", r->path);
    memmove(r->rows->items + at + 1, r->rows->items + at, (last - at) * sizeof *r->rows->items);
    r->rows->items[at] = row;
    return SONDE_OK;
}

enum sonde_status snd_results_set(struct snd_results *results, const char *key,
                                  struct snd_node *value, struct sonde_error *err)
{
    static const char *const own[] = { KEY_BATCH, KEY_DTYPE, KEY_LAYERS, KEY_MODEL, KEY_ROWS };

    for (size_t i = 0; i < SND_COUNT_OF(own); i++)
        if (strcmp(key, own[i]) == 0)
            return snd_fail(err, SONDE_E_ARGUMENT,
                            "the key %s of a results file is set automatically", key);
    snd_node_set(&results->doc, results->doc.root, key, value);
    return results->doc.failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", results->path)
                               : SONDE_OK;
}

enum sonde_status snd_results_save(struct snd_results *results, struct sonde_error *err)
{
    return snd_yaml_save(&results->doc, results->path, err);
}

/* ------------------------------------------------------------------ whole */

static enum sonde_status check_order(const struct snd_results *r, uint32_t index,
                                     struct sonde_error *err)
{
    const struct snd_node *row = r->rows->items[index];
    int64_t                layer = snd_row_layer(row);

    if (layer == (int64_t)index + 1)
        return SONDE_OK;
    for (uint32_t i = 0; i < index; i++)
        if (snd_row_layer(r->rows->items[i]) == layer)
            return snd_fail(err, SONDE_E_FORMAT, "%s, lines %u and %u: duplicate layer %" PRId64,
                            r->path, r->rows->items[i]->line, row->line, layer);
    return snd_fail(err, SONDE_E_FORMAT,
                    "%s, line %u: row %u is layer %" PRId64 "; layers must be in order, from 1",
                    r->path, row->line, index + 1, layer);
}

enum sonde_status snd_results_check_whole(const struct snd_results *results,
                                          struct sonde_error       *err)
{
    struct snd_results_head head = snd_results_head(results);
    const struct snd_node  *rows = results->rows;
    enum sonde_status       status = SONDE_OK;

    if (head.layers != (int64_t)rows->count)
        return snd_fail(err, SONDE_E_STATE,
                        "%s declares %" PRId64
                        " layers and has %u rows; profile the other layers first",
                        results->path, head.layers, rows->count);
    if (rows->count == 0)
        return snd_fail(err, SONDE_E_STATE, "%s has no rows: there is nothing to convert",
                        results->path);
    for (uint32_t i = 0; i < rows->count && status == SONDE_OK; i++)
        status = check_order(results, i, err);
    for (uint32_t i = 1; i < rows->count && status == SONDE_OK; i++)
        if (!snd_node_equal(snd_node_get(rows->items[i - 1], "shape_out"),
                            snd_node_get(rows->items[i], "shape_in")))
            status = snd_fail(err, SONDE_E_FORMAT,
                              "%s, line %u: shape_in of layer %u is not shape_out of layer %u",
                              results->path, rows->items[i]->line, i + 1, i);
    return status;
}

enum sonde_status snd_results_check_amounts(const struct snd_results *results, const char *key,
                                            struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < results->rows->count && status == SONDE_OK; i++)
        status = snd_row_check_amount(results->path, results->rows->items[i], key, SONDE_E_FORMAT,
                                      err);
    return status;
}
