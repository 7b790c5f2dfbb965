/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/protobuf.h - protobuf messages, written into a buffer field by field.
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
#ifndef SND_EXPORT_PROTOBUF_H
#define SND_EXPORT_PROTOBUF_H

#include <stdint.h>

#include "base/buf.h"
#include "sonde/trace.h"

void snd_pb_varint(struct sonde_buffer *buf, uint64_t value); /* alone, as in packed lists */

void snd_pb_uint(struct sonde_buffer *buf, unsigned field, uint64_t value); /* also bool, enum */
void snd_pb_int(struct sonde_buffer *buf, unsigned field, int64_t value);   /* int32, int64 */
void snd_pb_fixed64(struct sonde_buffer *buf, unsigned field, uint64_t value);
void snd_pb_double(struct sonde_buffer *buf, unsigned field, double value);
/* Protobuf's strings are UTF-8: bytes that are not become U+FFFD. */
void snd_pb_text(struct sonde_buffer *buf, unsigned field, struct sonde_text text);
void snd_pb_string(struct sonde_buffer *buf, unsigned field, const char *text);

/* A message inside, of less than 256 MiB: beyond, the buffer has failed. */
size_t snd_pb_open(struct sonde_buffer *buf, unsigned field);
void   snd_pb_close(struct sonde_buffer *buf, size_t at);

#endif
