/* SPDX-License-Identifier: Apache-2.0 */
#include "export/encode/thrift.h"

#include <assert.h>
#include <string.h>

/* The compact protocol's codes of field types that are not in the header. */
enum { TYPE_TRUE = 1, TYPE_FALSE = 2, TYPE_I16 = 4, TYPE_I64 = 6, TYPE_LIST = 9 };

void snd_put_varint(struct sonde_buffer *out, uint64_t value)
{
    char   bytes[10];
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    snd_buf_put(out, bytes, n);
}

void snd_put_zigzag(struct sonde_buffer *out, int64_t value)
{
    snd_put_varint(out, ((uint64_t)value << 1) ^ (uint64_t)(value < 0 ? -1 : 0));
}

static void put_byte(struct sonde_buffer *out, unsigned byte)
{
    char one = (char)byte;

    snd_buf_put(out, &one, 1);
}

static void put_field(struct snd_thrift *t, int field, unsigned type)
{
    int *last = &t->last[t->depth - 1], step = field - *last;

    assert(step > 0);
    if (step <= 15) {
        put_byte(t->out, (unsigned)step << 4 | type);
    } else {
        put_byte(t->out, type);
        snd_put_zigzag(t->out, field);
    }
    *last = field;
}

void snd_thrift_begin(struct snd_thrift *t, struct sonde_buffer *out)
{
    *t = (struct snd_thrift){ .out = out, .depth = 1 };
}

void snd_thrift_element(struct snd_thrift *t)
{
    assert(t->depth < SND_THRIFT_DEPTH);
    t->last[t->depth++] = 0;
}

void snd_thrift_end(struct snd_thrift *t)
{
    put_byte(t->out, 0);
    t->depth--;
}

void snd_thrift_bool(struct snd_thrift *t, int field, bool value)
{
    put_field(t, field, value ? TYPE_TRUE : TYPE_FALSE);
}

void snd_thrift_i16(struct snd_thrift *t, int field, int16_t value)
{
    put_field(t, field, TYPE_I16);
    snd_put_zigzag(t->out, value);
}

void snd_thrift_i32(struct snd_thrift *t, int field, int32_t value)
{
    put_field(t, field, SND_THRIFT_I32);
    snd_put_zigzag(t->out, value);
}

void snd_thrift_i64(struct snd_thrift *t, int field, int64_t value)
{
    put_field(t, field, TYPE_I64);
    snd_put_zigzag(t->out, value);
}

void snd_thrift_bytes(struct snd_thrift *t, int field, const void *bytes, size_t length)
{
    put_field(t, field, SND_THRIFT_BINARY);
    snd_put_varint(t->out, length);
    snd_buf_put(t->out, bytes, length);
}

void snd_thrift_struct(struct snd_thrift *t, int field)
{
    put_field(t, field, SND_THRIFT_STRUCT);
    snd_thrift_element(t);
}

void snd_thrift_list(struct snd_thrift *t, int field, enum snd_thrift_type type, size_t count)
{
    put_field(t, field, TYPE_LIST);
    if (count < 15) {
        put_byte(t->out, (unsigned)count << 4 | (unsigned)type);
    } else {
        put_byte(t->out, 0xf0 | (unsigned)type);
        snd_put_varint(t->out, count);
    }
}

void snd_thrift_element_i32(struct snd_thrift *t, int32_t value)
{
    snd_put_zigzag(t->out, value);
}

void snd_thrift_element_text(struct snd_thrift *t, const char *text)
{
    snd_put_varint(t->out, strlen(text));
    snd_buf_text(t->out, text);
}
