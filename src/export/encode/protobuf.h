/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/protobuf.h - protobuf messages, written into a buffer field by field.
 *
 *     size_t event = snd_pb_open(&packet, 11);     track_event = 11
 *     snd_pb_uint(&packet, 9, 1);                      type = 9
 *     snd_pb_text(&packet, 23, name);                  name = 23
 *     snd_pb_close(&packet, event);
 *
 * The length of a message stands before it: its four bytes are reserved and filled in when it is
 * closed, as a varint that may have leading zeroes, which every decoder reads.
 *
 * Layer: export. Threads: a buffer belongs to one thread.
 */
#ifndef SND_EXPORT_ENCODE_PROTOBUF_H
#define SND_EXPORT_ENCODE_PROTOBUF_H

#include <stdint.h>
#include <string.h>

#include "export/encode/little_endian.h"
#include "sonde/trace.h"

/* ---- parts of what follows, inline: the compiler makes bytes of fields that it knows */

enum snd_pb_wire { SND_PB_VARINT = 0, SND_PB_64 = 1, SND_PB_BYTES = 2 };

#define SND_PB_VARINT_MAX 10
#define SND_PB_LENGTH_BYTES 4 /* reserved for the length of a message: 28 bits */

static inline char *snd_pb_put_varint(char *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (char)(value | 0x80);
    *to++ = (char)value;
    return to;
}

static inline char *snd_pb_put_tag(char *to, unsigned field, enum snd_pb_wire wire)
{
    return snd_pb_put_varint(to, (uint64_t)field << 3 | wire);
}

static inline char *snd_pb_put_uint(char *to, unsigned field, uint64_t value)
{
    return snd_pb_put_varint(snd_pb_put_tag(to, field, SND_PB_VARINT), value);
}

/* The begin of a message, up to its length, which snd_pb_close() fills in. */
static inline char *snd_pb_put_open(char *to, unsigned field)
{
    to = snd_pb_put_tag(to, field, SND_PB_BYTES);
    memset(to, 0, SND_PB_LENGTH_BYTES);
    return to + SND_PB_LENGTH_BYTES;
}

/* ---- fields */

void snd_pb_varint(struct sonde_buffer *buf, uint64_t value); /* alone, as in packed lists */

/* Also bool and enum. */
static inline void snd_pb_uint(struct sonde_buffer *buf, unsigned field, uint64_t value)
{
    char *to = snd_buf_room(buf, 2 * SND_PB_VARINT_MAX);

    if (to)
        snd_buf_end(buf, snd_pb_put_uint(to, field, value));
}

/* int32 and int64. */
static inline void snd_pb_int(struct sonde_buffer *buf, unsigned field, int64_t value)
{
    snd_pb_uint(buf, field, (uint64_t)value);
}

static inline void snd_pb_fixed64(struct sonde_buffer *buf, unsigned field, uint64_t value)
{
    char *to = snd_buf_room(buf, SND_PB_VARINT_MAX + 8);

    if (!to)
        return;
    snd_buf_end(buf, snd_put_le(snd_pb_put_tag(to, field, SND_PB_64), value, 8));
}

void snd_pb_double(struct sonde_buffer *buf, unsigned field, double value);
/* Protobuf's strings are UTF-8: bytes that are not become U+FFFD. */
void snd_pb_text(struct sonde_buffer *buf, unsigned field, struct sonde_text text);
void snd_pb_string(struct sonde_buffer *buf, unsigned field, const char *text);

/* A message inside, of less than 256 MiB: beyond, the buffer has failed. */
static inline size_t snd_pb_open(struct sonde_buffer *buf, unsigned field)
{
    char *to = snd_buf_room(buf, SND_PB_VARINT_MAX + SND_PB_LENGTH_BYTES);

    if (!to)
        return 0;
    snd_buf_end(buf, snd_pb_put_open(to, field));
    return buf->length;
}

static inline void snd_pb_close(struct sonde_buffer *buf, size_t at)
{
    size_t length = buf->length - at;

    if (buf->failed || length >> 7 * SND_PB_LENGTH_BYTES) {
        buf->failed = true;
        return;
    }
    for (size_t i = 0; i < SND_PB_LENGTH_BYTES; i++)
        buf->bytes[at - SND_PB_LENGTH_BYTES + i] = (char)((length >> 7 * i & 0x7f) |
                                                          (i + 1 < SND_PB_LENGTH_BYTES ? 0x80 : 0));
}

#endif
