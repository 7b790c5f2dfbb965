/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/codec.h - packed chunks: events taken apart into columns, each compressed by zstd.
 *
 * Packing and unpacking give back exactly the same words. Unpacking trusts nothing: it reads
 * within its input, writes at most what the input announces, and what the input may announce
 * is bounded by its own size (SND_PACKED_RATIO_MAX), so that a small file cannot cost much.
 *
 * Payload of a packed chunk (docs/FORMAT.md):
 *
 *     struct snd_packed_head | columns x struct snd_packed_column | their bytes, in order
 *
 * Layer: format (sees base/; no I/O). Threads: one at a time uses a codec.
 */
#ifndef SND_FORMAT_CODEC_H
#define SND_FORMAT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/layout.h"

#define SND_PACKED_RAW_MAX ((size_t)4 << 20)  /* bytes in one packed chunk, unpacked */
#define SND_PACKED_RATIO_MAX ((size_t)256)    /* unpacked bytes for each packed one, at most ... */
#define SND_PACKED_RATIO_FREE ((size_t)65536) /* ... and this many more */

enum snd_coding {
    SND_CODING_BYTES = 1,   /* one column: the bytes as they are (tables) */
    SND_CODING_COLUMNS = 2, /* the columns of enum snd_codec_column (lanes) */
};

enum snd_codec_column {
    SND_COLUMN_KINDS,  /* one byte an event */
    SND_COLUMN_TIME0,  /* time deltas: first byte of the varint ... */
    SND_COLUMN_TIME1,  /* ... second byte, where there is one ... */
    SND_COLUMN_TIMES,  /* ... and the rest */
    SND_COLUMN_LOW,    /* low half of word 1 */
    SND_COLUMN_HIGH,   /* high half of word 1 */
    SND_COLUMN_VALUES, /* everything else */
    SND_COLUMN_COUNT,
};

struct snd_packed_head {
    uint32_t coding;     /* enum snd_coding */
    uint32_t raw_bytes;  /* unpacked */
    uint64_t first_time; /* lane: 56-bit time of the first timed event, or 0 */
    uint32_t events;     /* lane: how many */
    uint32_t columns;
};
static_assert(sizeof(struct snd_packed_head) == 24, "on disk");

struct snd_packed_column {
    uint32_t raw_bytes;
    uint32_t packed_bytes; /* equal: stored as it is; otherwise one zstd frame */
};

struct snd_codec; /* opaque: contexts and buffers, kept between chunks */

/* Owns: the caller, until snd_codec_free(). Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. */
SND_CHECKED enum sonde_status snd_codec_new(struct snd_codec **out, struct sonde_error *err);
void                          snd_codec_free(struct snd_codec *codec);

/*
 * Packs whole events. The result is the codec's until its next call.
 * Errors: SONDE_E_ARGUMENT (not whole events, too many), SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_codec_pack_lane(struct snd_codec *codec, const uint64_t *words,
                                                  size_t count, int level, const uint8_t **out,
                                                  size_t *size, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_codec_pack_bytes(struct snd_codec *codec, const void *data,
                                                   size_t length, int level, const uint8_t **out,
                                                   size_t *size, struct sonde_error *err);

/* The result is the codec's until its next call. Errors: SONDE_E_FORMAT, SONDE_E_NOMEM. */
SND_CHECKED enum sonde_status snd_codec_unpack_lane(struct snd_codec *codec, const uint8_t *data,
                                                    size_t size, const uint64_t **words,
                                                    size_t *count, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_codec_unpack_bytes(struct snd_codec *codec, const uint8_t *data,
                                                     size_t size, const uint8_t **bytes,
                                                     size_t *length, struct sonde_error *err);

#endif
