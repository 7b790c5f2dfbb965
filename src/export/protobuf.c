/* SPDX-License-Identifier: Apache-2.0 */
#include "export/protobuf.h"

#include <string.h>

#include "base/utf8.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

#define LENGTH_BYTES 4 /* reserved for the length of a message: 28 bits */

void snd_pb_varint(struct sonde_buffer *buf, uint64_t value)
{
    uint8_t bytes[10];
    size_t  count = 0;

    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    snd_buf_put(buf, bytes, count);
}

static void put_tag(struct sonde_buffer *buf, unsigned field, enum wire wire)
{
    snd_pb_varint(buf, (uint64_t)field << 3 | wire);
}

void snd_pb_uint(struct sonde_buffer *buf, unsigned field, uint64_t value)
{
    put_tag(buf, field, WIRE_VARINT);
    snd_pb_varint(buf, value);
}

void snd_pb_int(struct sonde_buffer *buf, unsigned field, int64_t value)
{
    snd_pb_uint(buf, field, (uint64_t)value);
}

void snd_pb_fixed64(struct sonde_buffer *buf, unsigned field, uint64_t value)
{
    uint8_t bytes[8];

    put_tag(buf, field, WIRE_64);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    snd_buf_put(buf, bytes, sizeof bytes);
}

void snd_pb_double(struct sonde_buffer *buf, unsigned field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    snd_pb_fixed64(buf, field, bits);
}

/* How many bytes at the begin of the text are UTF-8. */
static size_t count_valid(const char *bytes, size_t length)
{
    size_t   at = 0, step = 1;
    uint32_t point;

    while (at < length && step > 0) {
        step = (uint8_t)bytes[at] < 0x80 ? 1 : snd_utf8_next(bytes + at, length - at, &point);
        at += step;
    }
    return at;
}

void snd_pb_text(struct sonde_buffer *buf, unsigned field, struct sonde_text text)
{
    size_t valid = count_valid(text.bytes, text.length);

    if (valid == text.length) { /* nearly all */
        put_tag(buf, field, WIRE_BYTES);
        snd_pb_varint(buf, text.length);
        snd_buf_put(buf, text.bytes, text.length);
        return;
    }
    size_t at = snd_pb_open(buf, field);
    snd_utf8_clean(buf, text.bytes, text.length);
    snd_pb_close(buf, at);
}

void snd_pb_string(struct sonde_buffer *buf, unsigned field, const char *text)
{
    snd_pb_text(buf, field, (struct sonde_text){ text, strlen(text) });
}

size_t snd_pb_open(struct sonde_buffer *buf, unsigned field)
{
    static const char reserved[LENGTH_BYTES];

    put_tag(buf, field, WIRE_BYTES);
    snd_buf_put(buf, reserved, sizeof reserved);
    return buf->length;
}

void snd_pb_close(struct sonde_buffer *buf, size_t at)
{
    if (buf->failed)
        return;
    size_t length = buf->length - at;
    if (length >> 7 * LENGTH_BYTES) {
        buf->failed = true;
        return;
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        buf->bytes[at - LENGTH_BYTES + i] = (char)((length >> 7 * i & 0x7f) |
                                                   (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}
