/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/results_rows.h"

#include <math.h>
#include <stdio.h>

#include "pipe/yaml/scalar.h"

/* Which row a message is about: "row 3, line 12" of a file, or "the new row". */
struct place {
    const char            *path;
    const struct snd_node *row;
    enum sonde_status      status; /* what a fault is */
};

static const char *name_place(const struct place *place, char text[64])
{
    const struct snd_node *layer = snd_node_get(place->row, "layer");
    char                   number[24] = "", line[24] = "";

    if (layer && snd_node_is_scalar(layer))
        snprintf(number, sizeof number, " of layer %.8s", layer->text);
    if (place->row->line)
        snprintf(line, sizeof line, ", line %u", place->row->line);
    snprintf(text, 64, "the row%s%s", number, line);
    return text;
}

static enum sonde_status refuse_value(const struct place *place, const char *key,
                                      const struct snd_node *value, const char *expected,
                                      struct sonde_error *err)
{
    char        said[SND_NODE_SAID_MAX], where[64];
    const char *hint = "";

    if (snd_node_is(value, SND_NODE_TEXT) && snd_scalar_is_near_number(value->text, value->length))
        hint = "; YAML 1.1 takes it for text: write 1.0e-05, not 1e-05";
    if (!value)
        return snd_fail(err, place->status, "%s: %s has no %s", place->path,
                        name_place(place, where), key);
    return snd_fail(err, place->status, "%s: %s: %s is %s, not %s%s", place->path,
                    name_place(place, where), key, snd_node_said(value, said), expected, hint);
}

/* A number that a time or a size can be. */
static enum sonde_status check_amount(const struct place *place, const char *key,
                                      struct sonde_error *err)
{
    const struct snd_node *value = snd_node_get(place->row, key);

    if (!snd_node_is_number(value) || !isfinite(value->real) || value->real < 0)
        return refuse_value(place, key, value, "a number >= 0", err);
    return SONDE_OK;
}

static bool is_shape(const struct snd_node *node)
{
    if (!snd_node_is(node, SND_NODE_LIST))
        return false;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct snd_node *size = node->items[i];
        if (size->kind != SND_NODE_INT || !size->in_range || size->integer < 0)
            return false;
    }
    return true;
}

static enum sonde_status check_shapes(const struct place *place, const char *key,
                                      struct sonde_error *err)
{
    const struct snd_node *list = snd_node_get(place->row, key);

    if (!snd_node_is(list, SND_NODE_LIST))
        return refuse_value(place, key, list, "a list of shapes", err);
    for (uint32_t i = 0; i < list->count; i++)
        if (!is_shape(list->items[i]))
            return refuse_value(place, key, list->items[i],
                                "a list of shapes, such as [[197, 768]]", err);
    if (snd_shapes_elements(list) < 0)
        return refuse_value(place, key, list, "a number of elements below 2^63", err);
    return SONDE_OK;
}

enum sonde_status snd_row_check(const char *path, const struct snd_node *row,
                                enum sonde_status fault, struct sonde_error *err)
{
    struct place      place = { path, row, fault };
    char              said[SND_NODE_SAID_MAX];
    enum sonde_status status;

    if (!snd_node_is(row, SND_NODE_MAP))
        return snd_fail(err, fault, "%s: expected a map as row, got %s", path,
                        snd_node_said(row, said));
    const struct snd_node *layer = snd_node_get(row, "layer");
    if (!snd_node_is(layer, SND_NODE_INT) || !layer->in_range || layer->integer < 0)
        return refuse_value(&place, "layer", layer, "an integer >= 1", err);
    status = check_shapes(&place, "shape_in", err);
    return status == SONDE_OK ? check_shapes(&place, "shape_out", err) : status;
}

enum sonde_status snd_row_check_amount(const char *path, const struct snd_node *row,
                                       const char *key, enum sonde_status fault,
                                       struct sonde_error *err)
{
    struct place place = { path, row, fault };

    return check_amount(&place, key, err);
}

enum sonde_status snd_row_check_amounts(const char *path, const struct snd_node *row,
                                        enum sonde_status fault, struct sonde_error *err)
{
    enum sonde_status status = snd_row_check_amount(path, row, "memory", fault, err);

    return status == SONDE_OK ? snd_row_check_amount(path, row, "time", fault, err) : status;
}

int64_t snd_row_layer(const struct snd_node *row)
{
    return snd_node_get(row, "layer")->integer;
}

int64_t snd_shapes_elements(const struct snd_node *shapes)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < shapes->count; i++) {
        int64_t product = 1;
        for (uint32_t k = 0; k < shapes->items[i]->count; k++)
            if (__builtin_mul_overflow(product, shapes->items[i]->items[k]->integer, &product))
                return -1;
        if (__builtin_add_overflow(sum, product, &sum))
            return -1;
    }
    return sum;
}
