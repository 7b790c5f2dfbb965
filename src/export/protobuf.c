/* SPDX-License-Identifier: Apache-2.0 */
#include "export/protobuf.h"

#include <string.h>

#include "base/utf8.h"

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

#define LENGTH_BYTES 4 /* reserved for the length of a message: 28 bits */

#define VARINT_MAX 10

static char *put_varint(char *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (char)(value | 0x80);
    *to++ = (char)value;
    return to;
}

static char *put_tag(char *to, unsigned field, enum wire wire)
{
    return put_varint(to, (uint64_t)field << 3 | wire);
}

void snd_pb_varint(struct sonde_buffer *buf, uint64_t value)
{
    char *to = snd_buf_room(buf, VARINT_MAX);

    if (to)
        snd_buf_end(buf, put_varint(to, value));
}

void snd_pb_uint(struct sonde_buffer *buf, unsigned field, uint64_t value)
{
    char *to = snd_buf_room(buf, 2 * VARINT_MAX);

    if (to)
        snd_buf_end(buf, put_varint(put_tag(to, field, WIRE_VARINT), value));
}

void snd_pb_int(struct sonde_buffer *buf, unsigned field, int64_t value)
{
    snd_pb_uint(buf, field, (uint64_t)value);
}

void snd_pb_fixed64(struct sonde_buffer *buf, unsigned field, uint64_t value)
{
    char *to = snd_buf_room(buf, VARINT_MAX + 8);

    if (!to)
        return;
    to = put_tag(to, field, WIRE_64);
    for (int i = 0; i < 8; i++)
        *to++ = (char)(value >> 8 * i);
    snd_buf_end(buf, to);
}

void snd_pb_double(struct sonde_buffer *buf, unsigned field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    snd_pb_fixed64(buf, field, bits);
}

void snd_pb_text(struct sonde_buffer *buf, unsigned field, struct sonde_text text)
{
    if (snd_utf8_valid(text.bytes, text.length) < text.length) {
        size_t at = snd_pb_open(buf, field);
        snd_utf8_clean(buf, text.bytes, text.length);
        snd_pb_close(buf, at);
        return;
    }
    char *to = snd_buf_room(buf, 2 * VARINT_MAX + text.length);
    if (!to)
        return;
    to = put_varint(put_tag(to, field, WIRE_BYTES), text.length);
    if (text.length > 0)
        memcpy(to, text.bytes, text.length);
    snd_buf_end(buf, to + text.length);
}

void snd_pb_string(struct sonde_buffer *buf, unsigned field, const char *text)
{
    snd_pb_text(buf, field, (struct sonde_text){ text, strlen(text) });
}

size_t snd_pb_open(struct sonde_buffer *buf, unsigned field)
{
    char *to = snd_buf_room(buf, VARINT_MAX + LENGTH_BYTES);

    if (!to)
        return 0;
    to = put_tag(to, field, WIRE_BYTES);
    memset(to, 0, LENGTH_BYTES);
    snd_buf_end(buf, to + LENGTH_BYTES);
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
