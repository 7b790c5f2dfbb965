/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/layers_facts.c - what a trace says of a model and its layers, as facts: LAYERS, and a LAYER
 * for each. A model may have any number of tensors at a border: a layer's fact is as long as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "model/network/layers.h"
#include "read/said/trace_facts.h"

#define DIMS_MAX 64u

/* ---------------------------------------------------------------------- rows */

static int compare_numbers(const void *left, const void *right)
{
    const struct sonde_layer *x = left, *y = right;

    return SND_RISING(x->number, y->number);
}

struct sonde_layer *snd_layers_add(struct sonde_layers *l, uint32_t number)
{
    if (!snd_grow(&l->rows, &l->row_room, l->count, sizeof *l->rows) ||
        !snd_grow(&l->owns, &l->own_room, l->count, sizeof *l->owns))
        return NULL;
    struct sonde_layer *row = &l->rows[l->count];
    *row = (struct sonde_layer){ .number = number, .name = { "", 0 }, .rss_bytes = -1 };
    l->owns[l->count++] = (struct snd_layer_own){ 0 };
    return row;
}

static int64_t sum_bytes(const struct sonde_layer_tensor *list, uint32_t count)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum = snd_add(sum, list[i].size_bytes);
    return sum;
}

void snd_layers_sort(struct sonde_layers *l)
{
    snd_sort(l->rows, l->count, sizeof *l->rows, compare_numbers);
    for (uint32_t i = 0; i < l->count; i++) {
        l->rows[i].in_bytes = sum_bytes(l->rows[i].in, l->rows[i].in_count);
        l->rows[i].out_bytes = sum_bytes(l->rows[i].out, l->rows[i].out_count);
    }
}

uint32_t snd_layers_find(const struct sonde_layers *l, uint32_t number)
{
    const struct sonde_layer  key = { .number = number };
    const struct sonde_layer *row =
        l->count ? bsearch(&key, l->rows, l->count, sizeof key, compare_numbers) : NULL;

    return row ? (uint32_t)(row - l->rows) : SND_LAYERS_NONE;
}

enum sonde_status snd_layers_set_count(struct sonde_layers *l, int64_t count,
                                       struct sonde_error *err)
{
    if (l->head.batch_size < 1 || count < 1 || count > UINT32_MAX)
        return snd_fail(err, SONDE_E_FORMAT,
                        "the profile of layers tells no batch size or number of layers");
    l->head.layers = (uint32_t)count;
    return SONDE_OK;
}

static enum sonde_status no_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the layers");
}

/* ------------------------------------------------------------------- tensors */

static enum sonde_status read_tensor(struct sonde_layers *l, const struct snd_fact_value *value,
                                     struct sonde_text dtype, struct sonde_layer_tensor *out,
                                     struct sonde_error *err)
{
    struct sonde_argument shape = { 0 };

    if (sonde_trace_arguments(l->trace, l->process, value->shape, &shape, 1) != 1 || !shape.dims ||
        shape.count > DIMS_MAX || value->number < 0)
        return snd_fail(err, SONDE_E_FORMAT, "a tensor of a layer has no proper shape or size");
    int64_t *kept = snd_arena_take(&l->arena, (shape.count ? shape.count : 1) * sizeof *kept);
    if (!kept)
        return no_memory(err);
    memcpy(kept, shape.dims, shape.count * sizeof *kept);
    *out = (struct sonde_layer_tensor){
        .dtype = dtype, .ndim = shape.count, .dims = kept, .size_bytes = value->number
    };
    return SONDE_OK;
}

/* All tensors of a field; each has the type recorded last before it. */
static enum sonde_status read_tensors(struct sonde_layers *l, const struct snd_fact *fact,
                                      unsigned field, const struct sonde_layer_tensor **out,
                                      uint32_t *count, struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;
    struct sonde_text dtype = { "", 0 };
    uint32_t          n = 0;

    for (uint32_t i = 0; i < fact->count; i++)
        n += fact->values[i].field == field && fact->values[i].type == SND_FACT_TENSOR;
    struct sonde_layer_tensor *list = snd_arena_take(&l->arena, (n ? n : 1) * sizeof *list);
    if (!list)
        return no_memory(err);
    n = 0;
    for (uint32_t i = 0; i < fact->count && status == SONDE_OK; i++) {
        const struct snd_fact_value *value = &fact->values[i];
        if (value->field == SND_FIELD_LAYER_DTYPE && value->type == SND_FACT_TEXT)
            dtype = value->text;
        else if (value->field == field && value->type == SND_FACT_TENSOR)
            status = read_tensor(l, value, dtype, &list[n++], err);
    }
    *out = list;
    *count = n;
    return status;
}

/* -------------------------------------------------------------------- layers */

static enum sonde_status read_layer(struct sonde_layers *l, const struct snd_fact *fact,
                                    struct sonde_error *err)
{
    struct sonde_layer *row = fact->number >= 1 && fact->number <= SND_LAYERS_MOST
                                  ? snd_layers_add(l, fact->number)
                                  : NULL;

    if (!row)
        return fact->number >= 1 && fact->number <= SND_LAYERS_MOST ? no_memory(err) : SONDE_OK;
    const struct {
        unsigned    field;
        const char *word;
        int64_t    *place;
    } numbers[] = {
        { SND_FIELD_LAYER_PARAMETER_COUNT, "parameter_count", &row->parameter_count },
        { SND_FIELD_LAYER_PARAMETER_BYTES, "parameter_bytes", &row->parameter_bytes },
        { SND_FIELD_LAYER_BUFFER_BYTES, "buffer_bytes", &row->buffer_bytes },
        { SND_FIELD_LAYER_RSS_BYTES, "rss_bytes", &row->rss_bytes },
    };
    for (size_t i = 0; i < SND_COUNT_OF(numbers); i++) {
        int64_t number = snd_fact_number(fact, numbers[i].field, *numbers[i].place);
        if (number < *numbers[i].place)
            return snd_fail(err, SONDE_E_FORMAT, "layer %u: %s is less than 0", row->number,
                            numbers[i].word);
        *numbers[i].place = number;
    }
    int64_t same_as = snd_fact_number(fact, SND_FIELD_LAYER_SAME_AS, 0);
    row->same_as = same_as > 0 && same_as < row->number ? (uint32_t)same_as : 0;
    row->name = snd_fact_text(fact, SND_FIELD_LAYER_NAME);
    enum sonde_status status = read_tensors(l, fact, SND_FIELD_LAYER_IN, &row->in, &row->in_count,
                                            err);
    if (status == SONDE_OK)
        status = read_tensors(l, fact, SND_FIELD_LAYER_OUT, &row->out, &row->out_count, err);
    return status;
}

/* Pairs of a key and the value after it. */
static enum sonde_status read_environment(struct sonde_layers *l, const struct snd_fact *fact,
                                          struct sonde_error *err)
{
    for (uint32_t i = 0; i + 1 < fact->count; i++) {
        const struct snd_fact_value *key = &fact->values[i], *value = key + 1;
        if (key->field != SND_FIELD_LAYERS_KEY || value->field != SND_FIELD_LAYERS_VALUE)
            continue;
        if (!snd_grow(&l->environment, &l->environment_room, l->environment_count,
                      sizeof *l->environment))
            return no_memory(err);
        l->environment[l->environment_count++] = (struct snd_layer_pair){ key->text, value->text };
    }
    return SONDE_OK;
}

static enum sonde_status read_head(struct sonde_layers *l, const struct snd_fact *fact,
                                   struct sonde_error *err)
{
    struct sonde_layers_head *head = &l->head;

    head->model_name = snd_fact_text(fact, SND_FIELD_LAYERS_MODEL_NAME);
    head->dtype = snd_fact_text(fact, SND_FIELD_LAYERS_DTYPE);
    head->device = snd_fact_text(fact, SND_FIELD_LAYERS_DEVICE);
    head->batch_size = snd_fact_number(fact, SND_FIELD_LAYERS_BATCH_SIZE, 0);
    head->memory_is_rss = snd_text_is(snd_fact_text(fact, SND_FIELD_LAYERS_MEMORY), "rss");
    head->paired = snd_fact_number(fact, SND_FIELD_LAYERS_PAIRED, 0) == 1;
    enum sonde_status status = read_environment(l, fact, err);
    if (status == SONDE_OK)
        status = snd_layers_set_count(l, snd_fact_number(fact, SND_FIELD_LAYERS_COUNT, 0), err);
    return status;
}

enum sonde_status snd_layers_read_facts(struct sonde_layers *l, struct sonde_error *err)
{
    const struct snd_fact *fact = NULL;
    uint32_t               at = 0;

    for (l->process = 0; l->process < l->trace->process_count; l->process++, at = 0)
        if ((fact = snd_fact_next(l->trace, l->process, SND_FACT_OF_LAYERS, &at)))
            break;
    if (!fact) {
        l->process = SND_LAYERS_NONE;
        return SONDE_OK;
    }
    enum sonde_status status = read_head(l, fact, err);
    for (at = 0; status == SONDE_OK &&
                 (fact = snd_fact_next(l->trace, l->process, SND_FACT_OF_LAYER, &at));)
        status = read_layer(l, fact, err);
    return status;
}
