/* SPDX-License-Identifier: Apache-2.0 */
#include "format/codec.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "snd_config.h"

#if SND_HAVE_ZSTD
#include <zstd.h>

struct column {
    uint8_t *bytes; /* owned */
    size_t   room, size, at;
};

struct snd_codec {
    ZSTD_CCtx    *pack;
    ZSTD_DCtx    *unpack;
    struct column columns[SND_COLUMN_COUNT];
    struct column result;
};

enum sonde_status snd_codec_new(struct snd_codec **out, struct sonde_error *err)
{
    struct snd_codec *codec = calloc(1, sizeof *codec);

    *out = NULL;
    if (codec) {
        codec->pack = ZSTD_createCCtx();
        codec->unpack = ZSTD_createDCtx();
    }
    if (!codec || !codec->pack || !codec->unpack) {
        snd_codec_free(codec);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for packed chunks");
    }
    *out = codec;
    return SONDE_OK;
}

void snd_codec_free(struct snd_codec *codec)
{
    if (!codec)
        return;
    ZSTD_freeCCtx(codec->pack);
    ZSTD_freeDCtx(codec->unpack);
    for (size_t i = 0; i < SND_COLUMN_COUNT; i++)
        free(codec->columns[i].bytes);
    free(codec->result.bytes);
    free(codec);
}

/* What a column held is not kept. */
static bool make_room(struct column *column, size_t room)
{
    column->size = column->at = 0;
    if (room <= column->room)
        return true;
    free(column->bytes);
    column->bytes = malloc(room);
    column->room = column->bytes ? room : 0;
    return column->bytes != NULL;
}

/* ----------------------------------------------------------------- varints */

static void put_varint(struct column *column, uint64_t value)
{
    while (value >= 0x80) {
        column->bytes[column->size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    column->bytes[column->size++] = (uint8_t)value;
}

static bool get_byte(struct column *column, uint8_t *byte)
{
    if (column->at >= column->size)
        return false;
    *byte = column->bytes[column->at++];
    return true;
}

/* The rest of a varint whose lower `shift` bits are in `value`. */
static bool get_rest(struct column *column, uint64_t *value, unsigned shift)
{
    uint8_t byte;

    do {
        if (shift > 63 || !get_byte(column, &byte))
            return false;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return true;
}

static bool get_varint(struct column *column, uint64_t *value)
{
    *value = 0;
    return get_rest(column, value, 0);
}

static uint64_t zigzag(uint64_t value)
{
    return value << 1 ^ (0 - (value >> 63));
}

static uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (0 - (value & 1));
}

/* Deltas of times in planes: the low bits are noise, the high bits are not, so keep them apart. */
static void put_time(struct snd_codec *codec, uint64_t delta56)
{
    struct column *planes = &codec->columns[SND_COLUMN_TIME0];
    uint64_t       value = zigzag((uint64_t)((int64_t)(delta56 << 8) >> 8));

    for (unsigned i = 0;; i++, value >>= 7) {
        struct column *plane = &planes[i < 2 ? i : 2];
        plane->bytes[plane->size++] = (uint8_t)(value < 0x80 ? value : value | 0x80);
        if (value < 0x80)
            return;
    }
}

static bool get_time(struct snd_codec *codec, uint64_t *delta56)
{
    struct column *planes = &codec->columns[SND_COLUMN_TIME0];
    uint64_t       value;
    uint8_t        byte;

    if (!get_byte(&planes[0], &byte))
        return false;
    value = byte & 0x7f;
    if (byte & 0x80) {
        if (!get_byte(&planes[1], &byte))
            return false;
        value |= (uint64_t)(byte & 0x7f) << 7;
        if (byte & 0x80 && !get_rest(&planes[2], &value, 14))
            return false;
    }
    *delta56 = unzigzag(value) & SND_TIME_MASK;
    return true;
}

/* ------------------------------------------------------------------ events */

/*
 * Whether the upper 56 bits of word 0 are coded as a time. Not taken from events.def: a rule of
 * the coding must not change when a kind is added, or older files could not be unpacked.
 */
static bool is_timed(uint8_t kind)
{
    return kind != SND_EV_ATTR && kind != SND_EV_ATTR64;
}

/* Whether they really are one. */
static bool has_time(uint8_t kind)
{
    static const uint8_t timed[256] = {
#define SND_EVENT(name, code, words, timed, summary) [SND_KIND(code, words)] = timed,
#include "format/events.def"
    };

    return timed[kind];
}

/* The codec's state: the next event is coded as a difference from it. */
struct last {
    uint64_t time;
    uint64_t word2[256]; /* by kind: an address is near the last one */
};

static void take_apart(struct snd_codec *codec, const uint64_t *words, struct last *last)
{
    struct column *columns = codec->columns;
    uint8_t        kind = SND_EVENT_KIND(words[0]);
    unsigned       length = SND_KIND_WORDS(kind);

    columns[SND_COLUMN_KINDS].bytes[columns[SND_COLUMN_KINDS].size++] = kind;
    if (is_timed(kind)) {
        put_time(codec, (SND_EVENT_TIME56(words[0]) - last->time) & SND_TIME_MASK);
        last->time = SND_EVENT_TIME56(words[0]);
    } else {
        put_varint(&columns[SND_COLUMN_VALUES], words[0] >> 8);
    }
    if (length > 1) {
        put_varint(&columns[SND_COLUMN_LOW], SND_LOW(words[1]));
        put_varint(&columns[SND_COLUMN_HIGH], SND_HIGH(words[1]));
    }
    if (length > 2) {
        put_varint(&columns[SND_COLUMN_VALUES], zigzag(words[2] - last->word2[kind]));
        last->word2[kind] = words[2];
    }
    for (unsigned i = 3; i < length; i++)
        put_varint(&columns[SND_COLUMN_VALUES], words[i]);
}

static bool put_together(struct snd_codec *codec, uint64_t *words, size_t room, struct last *last,
                         unsigned *length)
{
    struct column *columns = codec->columns;
    uint64_t       first, low, high, value;
    uint8_t        kind;

    if (!get_byte(&columns[SND_COLUMN_KINDS], &kind))
        return false;
    *length = SND_KIND_WORDS(kind);
    if (*length > room)
        return false;
    if (is_timed(kind)) {
        if (!get_time(codec, &first))
            return false;
        first = last->time = (last->time + first) & SND_TIME_MASK;
    } else if (!get_varint(&columns[SND_COLUMN_VALUES], &first)) {
        return false;
    }
    words[0] = SND_WORD0(kind, first);
    if (*length > 1) {
        if (!get_varint(&columns[SND_COLUMN_LOW], &low) ||
            !get_varint(&columns[SND_COLUMN_HIGH], &high))
            return false;
        words[1] = SND_PAIR(low, high);
    }
    if (*length > 2) {
        if (!get_varint(&columns[SND_COLUMN_VALUES], &value))
            return false;
        words[2] = last->word2[kind] += unzigzag(value);
    }
    for (unsigned i = 3; i < *length; i++)
        if (!get_varint(&columns[SND_COLUMN_VALUES], &words[i]))
            return false;
    return true;
}

/* ----------------------------------------------------------------- packing */

/* The least size that readers believe (SND_PACKED_RATIO_MAX). What packs to less is filled up. */
static size_t least_size(size_t raw_bytes)
{
    return raw_bytes <= SND_PACKED_RATIO_FREE
               ? 0
               : (raw_bytes - SND_PACKED_RATIO_FREE + SND_PACKED_RATIO_MAX - 1) /
                     SND_PACKED_RATIO_MAX;
}

/* Compresses the columns into the result, behind the head. */
static enum sonde_status finish(struct snd_codec *codec, struct snd_packed_head head, int level,
                                const uint8_t **out, size_t *size, struct sonde_error *err)
{
    size_t at = sizeof head + head.columns * sizeof(struct snd_packed_column), room = at;
    size_t least = least_size(head.raw_bytes);

    room += least;
    for (uint32_t i = 0; i < head.columns; i++)
        room += ZSTD_compressBound(codec->columns[i].size);
    if (!make_room(&codec->result, room))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
    uint8_t *result = codec->result.bytes;
    memcpy(result, &head, sizeof head);
    for (uint32_t i = 0; i < head.columns; i++) {
        const struct column *c = &codec->columns[i];
        size_t packed = ZSTD_compressCCtx(codec->pack, result + at, room - at, c->bytes, c->size,
                                          level);
        if (ZSTD_isError(packed))
            return snd_fail(err, SONDE_E_NOMEM, "zstd: %s", ZSTD_getErrorName(packed));
        if (packed >= c->size) {
            packed = c->size;
            if (packed > 0)
                memcpy(result + at, c->bytes, packed);
        }
        struct snd_packed_column entry = { (uint32_t)c->size, (uint32_t)packed };
        memcpy(result + sizeof head + i * sizeof entry, &entry, sizeof entry);
        at += packed;
    }
    if (at < least) {
        memset(result + at, 0, least - at);
        at = least;
    }
    *out = result;
    *size = at;
    return SONDE_OK;
}

enum sonde_status snd_codec_pack_lane(struct snd_codec *codec, const uint64_t *words, size_t count,
                                      int level, const uint8_t **out, size_t *size,
                                      struct sonde_error *err)
{
    struct last            last = { 0 };
    struct snd_packed_head head = { .coding = SND_CODING_COLUMNS,
                                    .raw_bytes = (uint32_t)(count * 8),
                                    .columns = SND_COLUMN_COUNT };
    bool                   seen = false;

    if (count > SND_PACKED_RAW_MAX / 8)
        return snd_fail(err, SONDE_E_ARGUMENT, "more events than a packed chunk holds");
    for (size_t i = 0; i < SND_COLUMN_COUNT; i++)
        if (!make_room(&codec->columns[i], count * 10 + 1))
            return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
    for (size_t at = 0; at < count; head.events++) {
        uint8_t  kind = SND_EVENT_KIND(words[at]);
        unsigned length = SND_KIND_WORDS(kind);
        if (length > count - at)
            return snd_fail(err, SONDE_E_ARGUMENT, "an event is cut off");
        if (!seen && has_time(kind)) {
            head.first_time = SND_EVENT_TIME56(words[at]);
            seen = true;
        }
        take_apart(codec, words + at, &last);
        at += length;
    }
    return finish(codec, head, level, out, size, err);
}

enum sonde_status snd_codec_pack_bytes(struct snd_codec *codec, const void *data, size_t length,
                                       int level, const uint8_t **out, size_t *size,
                                       struct sonde_error *err)
{
    struct snd_packed_head head = { .coding = SND_CODING_BYTES,
                                    .raw_bytes = (uint32_t)length,
                                    .columns = 1 };

    if (length > SND_PACKED_RAW_MAX)
        return snd_fail(err, SONDE_E_ARGUMENT, "more bytes than a packed chunk holds");
    if (!make_room(&codec->columns[0], length + 1))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
    memcpy(codec->columns[0].bytes, data, length);
    codec->columns[0].size = length;
    return finish(codec, head, level, out, size, err);
}

/* --------------------------------------------------------------- unpacking */

static enum sonde_status refuse(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_FORMAT, "a packed chunk is damaged");
}

/* The head of a payload; false if it cannot be one. */
static bool read_head(const uint8_t *data, size_t size, struct snd_packed_head *head)
{
    if (size < sizeof *head)
        return false;
    memcpy(head, data, sizeof *head);
    return (head->coding == SND_CODING_BYTES || head->coding == SND_CODING_COLUMNS) &&
           head->columns <= SND_COLUMN_COUNT && head->raw_bytes <= SND_PACKED_RAW_MAX &&
           head->raw_bytes <= SND_PACKED_RATIO_FREE + SND_PACKED_RATIO_MAX * size;
}

static bool unpack_column(struct snd_codec *codec, struct column *column, const uint8_t *data,
                          struct snd_packed_column entry)
{
    column->size = entry.raw_bytes;
    if (entry.packed_bytes == entry.raw_bytes) {
        if (entry.raw_bytes > 0)
            memcpy(column->bytes, data, entry.raw_bytes);
        return true;
    }
    size_t got = ZSTD_decompressDCtx(codec->unpack, column->bytes, entry.raw_bytes, data,
                                     entry.packed_bytes);
    return !ZSTD_isError(got) && got == entry.raw_bytes;
}

static enum sonde_status unpack_columns(struct snd_codec *codec, const uint8_t *data, size_t size,
                                        uint32_t coding, uint32_t count,
                                        struct snd_packed_head *head, struct sonde_error *err)
{
    size_t at = sizeof *head + count * sizeof(struct snd_packed_column), total = 0;

    if (!read_head(data, size, head) || head->coding != coding || head->columns != count ||
        at > size)
        return refuse(err);
    for (uint32_t i = 0; i < count; i++) {
        struct snd_packed_column entry;
        memcpy(&entry, data + sizeof *head + i * sizeof entry, sizeof entry);
        /* All columns together hold less than twice the words: varints of 10 bytes for 8. */
        total += entry.raw_bytes;
        if (entry.packed_bytes > size - at || total > (size_t)head->raw_bytes * 2)
            return refuse(err);
        if (!make_room(&codec->columns[i], (size_t)entry.raw_bytes + 1))
            return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
        if (!unpack_column(codec, &codec->columns[i], data + at, entry))
            return refuse(err);
        at += entry.packed_bytes;
    }
    return SONDE_OK;
}

enum sonde_status snd_codec_unpack_lane(struct snd_codec *codec, const uint8_t *data, size_t size,
                                        const uint64_t **words, size_t *count,
                                        struct sonde_error *err)
{
    struct last            last = { 0 };
    struct snd_packed_head head;
    enum sonde_status      status = unpack_columns(codec, data, size, SND_CODING_COLUMNS,
                                                   SND_COLUMN_COUNT, &head, err);

    if (status != SONDE_OK)
        return status;
    if (head.raw_bytes % 8 != 0)
        return refuse(err);
    if (!make_room(&codec->result, head.raw_bytes + 8))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
    uint64_t *result = (uint64_t *)(void *)codec->result.bytes;
    size_t    at = 0, end = head.raw_bytes / 8;
    while (at < end) {
        unsigned length;
        if (!put_together(codec, result + at, end - at, &last, &length))
            return refuse(err);
        at += length;
    }
    *words = result;
    *count = end;
    return SONDE_OK;
}

enum sonde_status snd_codec_unpack_bytes(struct snd_codec *codec, const uint8_t *data, size_t size,
                                         const uint8_t **bytes, size_t *length,
                                         struct sonde_error *err)
{
    struct snd_packed_head head;
    enum sonde_status status = unpack_columns(codec, data, size, SND_CODING_BYTES, 1, &head, err);

    if (status != SONDE_OK)
        return status;
    if (codec->columns[0].size != head.raw_bytes)
        return refuse(err);
    *bytes = codec->columns[0].bytes;
    *length = head.raw_bytes;
    return SONDE_OK;
}

#else /* without zstd */

struct snd_codec {
    int nothing;
};

static enum sonde_status refuse(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_UNSUPPORTED,
                    "this sonde was built without zstd: it neither writes nor reads packed traces");
}

enum sonde_status snd_codec_new(struct snd_codec **out, struct sonde_error *err)
{
    *out = NULL;
    return refuse(err);
}

void snd_codec_free(struct snd_codec *codec)
{
    (void)codec;
}

enum sonde_status snd_codec_pack_lane(struct snd_codec *codec, const uint64_t *words, size_t count,
                                      int level, const uint8_t **out, size_t *size,
                                      struct sonde_error *err)
{
    (void)codec, (void)words, (void)count, (void)level, (void)out, (void)size;
    return refuse(err);
}

enum sonde_status snd_codec_pack_bytes(struct snd_codec *codec, const void *data, size_t length,
                                       int level, const uint8_t **out, size_t *size,
                                       struct sonde_error *err)
{
    (void)codec, (void)data, (void)length, (void)level, (void)out, (void)size;
    return refuse(err);
}

enum sonde_status snd_codec_unpack_lane(struct snd_codec *codec, const uint8_t *data, size_t size,
                                        const uint64_t **words, size_t *count,
                                        struct sonde_error *err)
{
    (void)codec, (void)data, (void)size, (void)words, (void)count;
    return refuse(err);
}

enum sonde_status snd_codec_unpack_bytes(struct snd_codec *codec, const uint8_t *data, size_t size,
                                         const uint8_t **bytes, size_t *length,
                                         struct sonde_error *err)
{
    (void)codec, (void)data, (void)size, (void)bytes, (void)length;
    return refuse(err);
}

#endif
