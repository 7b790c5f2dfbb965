/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/thrift.h - writes Thrift's compact protocol, in which Parquet has its headers.
 *
 * Failure sticks in the buffer. Fields of a struct are written in ascending order.
 *
 * Layer: export. Threads: a writer belongs to one thread.
 */
#ifndef SND_EXPORT_ENCODE_THRIFT_H
#define SND_EXPORT_ENCODE_THRIFT_H

#include <stdint.h>

#include "base/text/buf.h"

#define SND_THRIFT_DEPTH 8

struct snd_thrift {
    struct sonde_buffer *out;
    int                  last[SND_THRIFT_DEPTH]; /* field of each open struct */
    int                  depth;
};

enum snd_thrift_type { SND_THRIFT_I32 = 5, SND_THRIFT_BINARY = 8, SND_THRIFT_STRUCT = 12 };

/* Begins the outermost struct. */
void snd_thrift_begin(struct snd_thrift *t, struct sonde_buffer *out);
/* Ends the innermost open struct. */
void snd_thrift_end(struct snd_thrift *t);

void snd_thrift_bool(struct snd_thrift *t, int field, bool value);
void snd_thrift_i16(struct snd_thrift *t, int field, int16_t value);
void snd_thrift_i32(struct snd_thrift *t, int field, int32_t value);
void snd_thrift_i64(struct snd_thrift *t, int field, int64_t value);
void snd_thrift_bytes(struct snd_thrift *t, int field, const void *bytes, size_t length);
void snd_thrift_struct(struct snd_thrift *t, int field);

/* Of a list, its head; then as many elements, each of structs begun with `element`. */
void snd_thrift_list(struct snd_thrift *t, int field, enum snd_thrift_type type, size_t count);
void snd_thrift_element(struct snd_thrift *t);
void snd_thrift_element_i32(struct snd_thrift *t, int32_t value);
void snd_thrift_element_text(struct snd_thrift *t, const char *text);

/* Numbers as Thrift and Parquet have them: 7 bits a byte, lowest first; signed ones in zigzag. */
void snd_put_varint(struct sonde_buffer *out, uint64_t value);
void snd_put_zigzag(struct sonde_buffer *out, int64_t value);

#endif
