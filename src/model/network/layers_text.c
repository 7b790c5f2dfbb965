/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/layers_text.c - what an older trace says of a model and its layers: lines of key=value in
 * its metadata. Newer ones have facts (layers_facts.c).
 *
 *     layers    model_name=.. dtype=.. batch_size=8 layers=48 device=cpu memory=weights
 *               environment.torch=..
 *     layer 1   name=.. in=torch.float32 [3, 224, 224] 4816896  out=.. parameter_bytes=..
 *
 * Lines that are not known are passed over; numbers that are none are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "format/known.h"
#include "model/network/layers.h"
#include "read/said/trace_metadata.h"

/* ------------------------------------------------------------------ words */

/* The next line of `text`, taken apart; false at its end. */
static bool next_line(struct sonde_text *text, struct snd_layer_pair *line)
{
    if (text->length == 0)
        return false;
    const char *end = memchr(text->bytes, '\n', text->length);
    size_t      length = end ? (size_t)(end - text->bytes) : text->length;
    const char *equals = memchr(text->bytes, '=', length);
    size_t      key = equals ? (size_t)(equals - text->bytes) : length;

    line->key = (struct sonde_text){ text->bytes, key };
    line->value = (struct sonde_text){ text->bytes + key + (equals != NULL),
                                       length - key - (equals != NULL) };
    text->bytes += length + (end != NULL);
    text->length -= length + (end != NULL);
    return true;
}

/* A number of at most 18 digits from `*at` on; -1 for none. */
static int64_t take_number(const char **at, const char *end)
{
    const char *start = *at;
    int64_t     number = 0;

    while (*at < end && **at >= '0' && **at <= '9' && *at - start < 18)
        number = 10 * number + (*(*at)++ - '0');
    return *at == start ? -1 : number;
}

static int64_t whole_number(struct sonde_text text)
{
    const char *at = text.bytes, *end = text.bytes + text.length;
    int64_t     number = take_number(&at, end);

    return at == end ? number : -1;
}

/* The text with a NUL after it, for as long as the layers live; NULL: memory is out. */
static const char *keep(struct sonde_layers *l, struct sonde_text text)
{
    return snd_arena_copy(&l->arena, text.bytes, text.length);
}

static enum sonde_status no_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the layers");
}

static enum sonde_status set_text(struct sonde_layers *l, struct sonde_text *place,
                                  struct sonde_text value, struct sonde_error *err)
{
    place->bytes = keep(l, value);
    place->length = value.length;
    return place->bytes ? SONDE_OK : no_memory(err);
}

/* ----------------------------------------------------------------- tensors */

/* "torch.float32 [197, 768] 4841472" */
static enum sonde_status read_tensor(struct sonde_layers *l, struct sonde_text text,
                                     struct sonde_layer_tensor *out, struct sonde_error *err)
{
    const char *end = text.bytes + text.length, *open = memchr(text.bytes, '[', text.length);
    int64_t     dims[64];
    uint32_t    ndim = 0;

    if (!open || open == text.bytes)
        return snd_fail(err, SONDE_E_FORMAT, "a tensor of a layer is not described as one");
    const char *at = open + 1;
    while (at < end && *at != ']' && ndim < 64) {
        dims[ndim] = take_number(&at, end);
        if (dims[ndim++] < 0)
            return snd_fail(err, SONDE_E_FORMAT, "a tensor of a layer has no proper shape");
        while (at < end && (*at == ',' || *at == ' '))
            at++;
    }
    if (at + 2 >= end || *at != ']' || at[1] != ' ')
        return snd_fail(err, SONDE_E_FORMAT, "a tensor of a layer has no proper size");
    out->size_bytes = whole_number((struct sonde_text){ at + 2, (size_t)(end - at - 2) });
    if (out->size_bytes < 0)
        return snd_fail(err, SONDE_E_FORMAT, "a tensor of a layer has no proper size");
    int64_t *kept = snd_arena_take(&l->arena, (ndim ? ndim : 1) * sizeof *kept);
    if (!kept)
        return no_memory(err);
    memcpy(kept, dims, ndim * sizeof *kept);
    out->dims = kept;
    out->ndim = ndim;
    size_t dtype = (size_t)(open - text.bytes);
    while (dtype > 0 && text.bytes[dtype - 1] == ' ')
        dtype--;
    return set_text(l, &out->dtype, (struct sonde_text){ text.bytes, dtype }, err);
}

/* All lines `key`=TENSOR of `text`. */
static enum sonde_status read_tensors(struct sonde_layers *l, struct sonde_text text,
                                      const char *key, const struct sonde_layer_tensor **out,
                                      uint32_t *count, struct sonde_error *err)
{
    struct sonde_text     again = text;
    struct snd_layer_pair line;
    uint32_t              n = 0;

    while (next_line(&again, &line))
        n += snd_text_is(line.key, key);
    struct sonde_layer_tensor *list = snd_arena_take(&l->arena, (n ? n : 1) * sizeof *list);
    if (!list)
        return no_memory(err);
    n = 0;
    while (next_line(&text, &line)) {
        if (!snd_text_is(line.key, key))
            continue;
        enum sonde_status status = read_tensor(l, line.value, &list[n++], err);
        if (status != SONDE_OK)
            return status;
    }
    *out = list;
    *count = n;
    return SONDE_OK;
}

/* -------------------------------------------------------------- one layer's */

static enum sonde_status read_layer(struct sonde_layers *l, struct sonde_layer *row,
                                    struct sonde_text text, struct sonde_error *err)
{
    const struct {
        const char *key;
        int64_t    *place;
    } numbers[] = {
        { "parameter_count", &row->parameter_count },
        { "parameter_bytes", &row->parameter_bytes },
        { "buffer_bytes", &row->buffer_bytes },
        { "rss_bytes", &row->rss_bytes },
    };
    struct sonde_text     again = text;
    struct snd_layer_pair line;

    enum sonde_status status = read_tensors(l, text, "in", &row->in, &row->in_count, err);
    if (status == SONDE_OK)
        status = read_tensors(l, text, "out", &row->out, &row->out_count, err);
    while (status == SONDE_OK && next_line(&again, &line)) {
        for (size_t i = 0; i < SND_COUNT_OF(numbers); i++)
            if (snd_text_is(line.key, numbers[i].key) &&
                (*numbers[i].place = whole_number(line.value)) < 0)
                return snd_fail(err, SONDE_E_FORMAT, "layer %u: %s is not a number", row->number,
                                numbers[i].key);
        if (snd_text_is(line.key, "same_as") && whole_number(line.value) < row->number)
            row->same_as = (uint32_t)whole_number(line.value);
        if (snd_text_is(line.key, "name"))
            status = set_text(l, &row->name, line.value, err);
    }
    return status;
}

static enum sonde_status add_layer(struct sonde_layers *l, uint32_t number, struct sonde_text text,
                                   struct sonde_error *err)
{
    struct sonde_layer *row = snd_layers_add(l, number);

    return row ? read_layer(l, row, text, err) : no_memory(err);
}

/* ----------------------------------------------------------------- metadata */

static enum sonde_status read_head(struct sonde_layers *l, struct sonde_text text,
                                   struct sonde_error *err)
{
    static const char     about[] = "environment.";
    enum sonde_status     status = SONDE_OK;
    int64_t               layers = 0;
    struct snd_layer_pair line;

    while (status == SONDE_OK && next_line(&text, &line)) {
        if (snd_text_is(line.key, "model_name"))
            status = set_text(l, &l->head.model_name, line.value, err);
        else if (snd_text_is(line.key, "dtype"))
            status = set_text(l, &l->head.dtype, line.value, err);
        else if (snd_text_is(line.key, "device"))
            status = set_text(l, &l->head.device, line.value, err);
        else if (snd_text_is(line.key, "batch_size"))
            l->head.batch_size = whole_number(line.value);
        else if (snd_text_is(line.key, "layers"))
            layers = whole_number(line.value);
        else if (snd_text_is(line.key, "memory"))
            l->head.memory_is_rss = snd_text_is(line.value, "rss");
        else if (snd_text_is(line.key, "paired"))
            l->head.paired = snd_text_is(line.value, "1");
        else if (line.key.length > sizeof about - 1 &&
                 memcmp(line.key.bytes, about, sizeof about - 1) == 0) {
            if (!snd_grow(&l->environment, &l->environment_room, l->environment_count,
                          sizeof *l->environment))
                return no_memory(err);
            struct snd_layer_pair *kept = &l->environment[l->environment_count++];
            *kept = (struct snd_layer_pair){ { "", 0 }, { "", 0 } };
            line.key.bytes += sizeof about - 1;
            line.key.length -= sizeof about - 1;
            status = set_text(l, &kept->key, line.key, err);
            if (status == SONDE_OK)
                status = set_text(l, &kept->value, line.value, err);
        }
    }
    return status == SONDE_OK ? snd_layers_set_count(l, layers, err) : status;
}

/* The first process that has a profile. */
static bool find_head(struct sonde_layers *l, struct sonde_text *head)
{
    for (l->process = 0; l->process < l->trace->process_count; l->process++)
        if (snd_meta_find(l->trace, l->process, SND_META_LAYERS, head))
            return true;
    l->process = SND_LAYERS_NONE;
    return false;
}

enum sonde_status snd_layers_read_text(struct sonde_layers *l, struct sonde_error *err)
{
    struct sonde_text of, value;
    enum sonde_status status = SONDE_OK;

    if (!find_head(l, &value))
        return SONDE_OK;
    status = read_head(l, value, err);
    for (uint32_t n = 0; status == SONDE_OK &&
                         snd_meta_next(l->trace, l->process, SND_META_LAYER, &n, &of, &value);) {
        int64_t number = whole_number(of);
        if (number >= 1 && number <= SND_LAYERS_MOST)
            status = add_layer(l, (uint32_t)number, value, err);
    }
    return status;
}
