/* SPDX-License-Identifier: Apache-2.0 */
#include "export/tensors.h"

#include <stdlib.h>
#include <string.h>

#include "format/layout.h"
#include "read/reader.h"

/* By enum sonde_dtype: the C++ names that torch prints. */
static const char *const dtype_names[] = {
    "unsigned char",
    "signed char",
    "short int",
    "int",
    "long int",
    "c10::Half",
    "float",
    "double",
    "c10::complex<c10::Half>",
    "c10::complex<float>",
    "c10::complex<double>",
    "bool",
    "c10::qint8",
    "c10::quint8",
    "c10::qint32",
    "c10::BFloat16",
};

static const char *type_name(const struct snd_shape_item *item)
{
    switch (item->kind) {
    case SND_SHAPE_TENSOR:
        return item->dtype < sizeof dtype_names / sizeof dtype_names[0] ? dtype_names[item->dtype]
                                                                        : "";
    case SND_SHAPE_LIST:
        return "TensorList";
    case SND_SHAPE_SCALAR:
        return "Scalar";
    default:
        return "";
    }
}

/* One name for each argument; the elements of a list are not named singly. */
static void put_types(struct snd_json *json, const struct snd_shape_record *record)
{
    uint64_t elements = 0; /* of the list under way */
    size_t   at = 0;

    snd_json_array(json, "Input type");
    for (uint32_t i = 0; i < record->items; i++) {
        struct snd_shape_item item;
        if (record->size - at < sizeof item)
            break;
        memcpy(&item, record->bytes + at, sizeof item);
        at += sizeof item;
        if (elements > 0)
            elements--;
        else
            snd_json_text(json, NULL, type_name(&item));
        if (item.kind == SND_SHAPE_LIST)
            elements += item.count;
        else if (item.kind == SND_SHAPE_TENSOR) {
            if (item.count > (record->size - at) / sizeof(int64_t))
                break;
            at += item.count * sizeof(int64_t);
        }
    }
    snd_json_end(json);
}

bool snd_tensors_text(const struct sonde_trace *trace, uint32_t process, uint32_t shapes,
                      struct sonde_buffer *text)
{
    snd_buf_clear(text);
    if (shapes == 0)
        return false;
    /* Make room, then have it written; most lists fit at the first try. */
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

void snd_tensors_json(struct snd_json *json, const struct sonde_trace *trace, uint32_t process,
                      uint32_t shapes, struct sonde_buffer *scratch)
{
    const struct snd_tables *tables = &trace->processes[process].tables;

    if (!snd_tensors_text(trace, process, shapes, scratch))
        return;
    if (snd_json_is_int_lists(scratch->bytes, scratch->length))
        snd_json_raw(json, "Input Dims", scratch->bytes, scratch->length);
    else
        snd_json_string(json, "Input Dims", scratch->bytes, scratch->length);
    if (shapes < tables->shape_count && tables->shapes[shapes].bytes)
        put_types(json, &tables->shapes[shapes]);
}
