/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline/torch_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "format/layout.h"

#define ITEMS_MAX 4096 /* as many as a recorder writes */
#define LIST_SHOWN 30  /* torch shows a longer list of tensors as [] */

bool snd_tensors_text(const struct sonde_trace *trace, uint32_t process, uint32_t shapes,
                      struct sonde_buffer *text)
{
    snd_buf_clear(text);
    if (shapes == 0)
        return false;
    /* Reserves room, then writes; most lists fit at the first try. */
    snd_buf_put(text, "", 0);
    size_t length = sonde_trace_shapes(trace, process, shapes, text->bytes,
                                       text->failed ? 0 : text->capacity);
    if (!text->failed && length >= text->capacity) {
        char *bytes = realloc(text->bytes, length + 1);
        if (!bytes) {
            text->failed = true;
        } else {
            text->bytes = bytes;
            text->capacity = length + 1;
            length = sonde_trace_shapes(trace, process, shapes, bytes, text->capacity);
        }
    }
    text->length = text->failed ? 0 : length;
    return text->length > 0;
}

/* ------------------------------------------------------------ for Chrome traces */

/* A tensor's dims, or the strides that it has when it is row-major. */
static void put_dims(struct snd_out *out, const struct sonde_argument *a, bool as_strides)
{
    snd_out_text(out, "[");
    for (uint32_t i = 0; i < a->count; i++) {
        int64_t value = a->dims[i];
        if (as_strides) {
            value = 1;
            for (uint32_t k = i + 1; k < a->count && k < i + 64; k++)
                value = (int64_t)((uint64_t)value * (uint64_t)a->dims[k]);
        }
        snd_out_text(out, i ? ", " : "");
        snd_out_int(out, value);
    }
    snd_out_text(out, "]");
}

/* "[[5, 3], [], [[2], [2]]]", as torch spaces it. */
static void put_tensors(struct snd_json *json, const char *key, const struct sonde_argument *items,
                        size_t count, const struct snd_call_ids *ids, bool as_strides)
{
    struct snd_out *out = json->out;

    snd_json_raw(json, key, "[", 1);
    for (size_t i = 0; i < count; i++) {
        const struct sonde_argument *a = &items[i];
        size_t inside = a->kind == SND_SHAPE_LIST && a->count < count - i ? a->count : 0;
        snd_out_text(out, i ? ", " : "");
        if (a->kind == SND_SHAPE_TENSOR) {
            put_dims(out, a, as_strides);
            continue;
        }
        bool any = false;
        snd_out_text(out, "[");
        for (size_t k = 1; k <= inside && !(ids->all && inside > LIST_SHOWN); k++) {
            if (a[k].kind != SND_SHAPE_TENSOR)
                continue;
            snd_out_text(out, any ? ", " : "");
            put_dims(out, &a[k], as_strides);
            any = true;
        }
        snd_out_text(out, "]");
        i += inside;
    }
    snd_out_text(out, "]");
}

/* Whether the argument at `place` is a list, by its text. */
static bool is_list(struct sonde_text json, size_t place)
{
    const char *at = json.bytes, *end = json.bytes + json.length;

    for (size_t n = 0; at < end; n++) {
        at = memchr(at, '"', (size_t)(end - at));
        if (!at)
            return false;
        if (n == place)
            return at + 1 < end && at[1] == '[';
        for (at++; at < end && *at != '"'; at++)
            at += *at == '\\';
        at++;
    }
    return false;
}

/* One name for each argument; the elements of a list are not named singly. */
static void put_types(struct snd_json *json, const struct sonde_argument *items, size_t count,
                      struct sonde_text arguments)
{
    size_t place = 0;

    snd_json_array(json, "Input type");
    for (size_t i = 0; i < count; i++, place++) {
        const char *type = sonde_argument_type(items, count, i);
        if (!*type && is_list(arguments, place))
            type = "ScalarList";
        snd_json_text(json, NULL, type);
        if (items[i].kind == SND_SHAPE_LIST)
            i += items[i].count < count - i ? items[i].count : 0;
    }
    snd_json_end(json);
}

static size_t count_arguments(const struct sonde_argument *items, size_t count)
{
    size_t arguments = 0;

    for (size_t i = 0; i < count; i++, arguments++)
        if (items[i].kind == SND_SHAPE_LIST)
            i += items[i].count < count - i ? items[i].count : 0;
    return arguments;
}

static void put_concrete(struct snd_json *json, struct sonde_text arguments, size_t count)
{
    if (arguments.length > 0 && snd_json_is_value(arguments.bytes, arguments.length)) {
        snd_json_raw(json, "Concrete Inputs", arguments.bytes, arguments.length);
        return;
    }
    if (arguments.length > 0) {
        snd_json_string(json, "Concrete Inputs", arguments.bytes, arguments.length);
        return;
    }
    snd_json_array(json, "Concrete Inputs");
    for (size_t i = 0; i < count; i++)
        snd_json_text(json, NULL, "");
    snd_json_end(json);
}

void snd_tensors_json(struct snd_json *json, const struct sonde_trace *trace, uint32_t process,
                      const struct snd_call_ids *ids, struct sonde_buffer *scratch)
{
    struct sonde_text      arguments = { "", 0 };
    struct sonde_argument *items, *strides;
    size_t                 room = ITEMS_MAX * sizeof *items;

    if (ids->arguments != 0)
        arguments = sonde_trace_string(trace, process, ids->arguments);
    /* Room for the items of both lists, in the buffer that the exporter has anyway. */
    if (scratch->capacity < 2 * room) {
        char *bytes = realloc(scratch->bytes, 2 * room);
        if (!bytes) {
            scratch->failed = true;
            return;
        }
        scratch->bytes = bytes;
        scratch->capacity = 2 * room;
    }
    items = (struct sonde_argument *)(void *)scratch->bytes;
    strides = items + ITEMS_MAX;
    size_t count = sonde_trace_arguments(trace, process, ids->shapes, items, ITEMS_MAX);
    size_t stride_count = sonde_trace_arguments(trace, process, ids->strides, strides, ITEMS_MAX);
    count = count < ITEMS_MAX ? count : ITEMS_MAX;
    stride_count = stride_count < ITEMS_MAX ? stride_count : ITEMS_MAX;
    if (ids->shapes != 0) {
        put_tensors(json, "Input Dims", items, count, ids, false);
        put_types(json, items, count, arguments);
    }
    if (stride_count > 0)
        put_tensors(json, "Input Strides", strides, stride_count, ids, false);
    else if (ids->all && ids->shapes != 0)
        put_tensors(json, "Input Strides", items, count, ids, true);
    if (arguments.length > 0 || (ids->all && ids->shapes != 0))
        put_concrete(json, arguments, count_arguments(items, count));
    scratch->length = 0;
}
