/* SPDX-License-Identifier: Apache-2.0 */
#include "import/out/trace_out.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/data/crc32c.h"
#include "base/data/hash.h"
#include "base/files/fd_io.h"

#define TABLE_BYTES ((size_t)256 << 10)
#define EVENT_BYTES ((size_t)512 << 10)

static void fail(struct snd_trace_out *out, enum sonde_status status, bool os, const char *what)
{
    if (out->status != SONDE_OK)
        return;
    out->status = os ? snd_fail_os(&out->why, status, "%s", what)
                     : snd_fail(&out->why, status, "%s", what);
}

enum sonde_status snd_trace_out_begin(struct snd_trace_out *out, int fd, int level,
                                      struct sonde_error *err)
{
    static const char zeroes[SND_HEADER_SIZE];

    *out = (struct snd_trace_out){ .fd = fd, .level = level, .size = SND_HEADER_SIZE };
    if (level != SND_TRACE_OUT_STORED) {
        enum sonde_status status = snd_codec_new(&out->codec, err);
        if (status != SONDE_OK)
            return status;
    }
    out->tables.words = malloc(TABLE_BYTES);
    out->events.words = malloc(EVENT_BYTES);
    if (!out->tables.words || !out->events.words)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the trace");
    if (!snd_write_all(fd, zeroes, sizeof zeroes))
        return snd_fail_os(err, SONDE_E_IO, "cannot write the trace");
    return SONDE_OK;
}

void snd_trace_out_release(struct snd_trace_out *out)
{
    snd_codec_free(out->codec);
    free(out->tables.words);
    free(out->events.words);
    snd_map_release(&out->known);
}

/* -------------------------------------------------------------------- chunks */

static void put_chunk(struct snd_trace_out *out, uint16_t kind, const void *payload, size_t size)
{
    static const char       zeroes[8];
    size_t                  padding = -size % 8;
    struct snd_chunk_header h = { .magic = SND_CHUNK_MAGIC,
                                  .kind = kind,
                                  .header_size = SND_CHUNK_HEADER_SIZE,
                                  .size = SND_CHUNK_HEADER_SIZE + size + padding,
                                  .used = SND_CHUNK_HEADER_SIZE + size };
    bool                    is_lane = kind == SND_CHUNK_LANE || kind == SND_CHUNK_PACKED_LANE;

    h.seq = ++out->seq;
    h.thread = is_lane ? out->thread : 0;
    h.crc = snd_crc32c(0, payload, size);
    h.crc_set = 1;
    if (!snd_write_all(out->fd, &h, sizeof h) || !snd_write_all(out->fd, payload, size) ||
        !snd_write_all(out->fd, zeroes, padding))
        fail(out, SONDE_E_IO, true, "cannot write the trace");
    out->size += h.size;
}

static void flush(struct snd_trace_out *out, bool is_lane)
{
    struct snd_trace_block *b = is_lane ? &out->events : &out->tables;
    const uint8_t          *packed = NULL;
    size_t                  size = 0;
    enum sonde_status       status = SONDE_OK;
    struct sonde_error      err;

    if (b->count == 0 || out->status != SONDE_OK)
        return;
    if (out->codec)
        status = is_lane ? snd_codec_pack_lane(out->codec, b->words, b->count, out->level, &packed,
                                               &size, &err)
                         : snd_codec_pack_bytes(out->codec, b->words, b->count * 8, out->level,
                                                &packed, &size, &err);
    if (status != SONDE_OK)
        fail(out, status, false, err.message);
    else if (packed)
        put_chunk(out, is_lane ? SND_CHUNK_PACKED_LANE : SND_CHUNK_PACKED_TABLE, packed, size);
    else
        put_chunk(out, is_lane ? SND_CHUNK_LANE : SND_CHUNK_TABLE, b->words, b->count * 8);
    b->count = 0;
}

/* ------------------------------------------------------------------- records */

uint32_t snd_trace_record(struct snd_trace_out *out, enum snd_record_type type, const void *payload,
                          size_t size)
{
    struct snd_record_head head;
    size_t                 words = (sizeof head + size + 7) / 8;

    if (out->status != SONDE_OK)
        return 0;
    if (words * 8 > TABLE_BYTES) {
        fail(out, SONDE_E_LIMIT, false, "a record is longer than a trace may have");
        return 0;
    }
    if (words > TABLE_BYTES / 8 - out->tables.count)
        flush(out, false);
    uint64_t *to = out->tables.words + out->tables.count;
    to[words - 1] = 0;
    head.size_type = (uint32_t)(words * 8) << 8 | (uint32_t)type;
    head.id = ++out->ids[type];
    memcpy(to, &head, sizeof head);
    memcpy(to + 1, payload, size);
    out->tables.count += words;
    return head.id;
}

uint32_t snd_trace_intern(struct snd_trace_out *out, enum snd_record_type type, const void *payload,
                          size_t size)
{
    struct snd_hash h = snd_hash_bytes(payload, size, (uint64_t)type);
    struct snd_key  key = { h.low, h.high, (uint64_t)type };
    uint32_t        id;

    if (snd_map_get(&out->known, key, &id))
        return id;
    id = snd_trace_record(out, type, payload, size);
    if (id != 0 && !snd_map_put(&out->known, key, id))
        fail(out, SONDE_E_NOMEM, false, "out of memory for the names of a trace");
    return id;
}

uint32_t snd_trace_string(struct snd_trace_out *out, const char *bytes, size_t length)
{
    struct snd_hash h;
    uint32_t        id, size;

    if (length == 0)
        return 0;
    if (length > SND_STRING_MAX)
        length = SND_STRING_MAX;
    h = snd_hash_bytes(bytes, length, SND_REC_STRING);
    struct snd_key key = { h.low, h.high, SND_REC_STRING };
    if (snd_map_get(&out->known, key, &id))
        return id;
    char *record = malloc(4 + length);
    if (!record) {
        fail(out, SONDE_E_NOMEM, false, "out of memory for the names of a trace");
        return 0;
    }
    size = (uint32_t)length;
    memcpy(record, &size, 4);
    memcpy(record + 4, bytes, length);
    id = snd_trace_record(out, SND_REC_STRING, record, 4 + length);
    free(record);
    if (id != 0 && !snd_map_put(&out->known, key, id))
        fail(out, SONDE_E_NOMEM, false, "out of memory for the names of a trace");
    return id;
}

void snd_trace_meta(struct snd_trace_out *out, const char *key, const char *value, size_t length)
{
    uint32_t pair[2] = { snd_trace_string(out, key, strlen(key)),
                         snd_trace_string(out, value, length) };

    if (pair[0] != 0 && pair[1] != 0)
        snd_trace_record(out, SND_REC_META, pair, sizeof pair);
}

/* -------------------------------------------------------------------- events */

void snd_trace_lane(struct snd_trace_out *out, uint32_t thread)
{
    flush(out, true);
    out->thread = thread;
}

bool snd_trace_room(struct snd_trace_out *out, size_t words)
{
    bool is_full = words > EVENT_BYTES / 8 - out->events.count;

    if (is_full)
        flush(out, true);
    return is_full;
}

void snd_trace_event(struct snd_trace_out *out, const uint64_t *words, size_t count)
{
    snd_trace_room(out, count);
    memcpy(out->events.words + out->events.count, words, count * 8);
    out->events.count += count;
    out->event_count += snd_event_weight(words);
}

enum sonde_status snd_trace_out_end(struct snd_trace_out *out, struct snd_file_header *header,
                                    struct sonde_error *err)
{
    flush(out, true);
    flush(out, false);
    memcpy(header->magic, SND_FILE_MAGIC, sizeof header->magic);
    header->version_major = SND_VERSION_MAJOR;
    header->version_minor = SND_VERSION_MINOR;
    header->header_size = SND_HEADER_SIZE;
    header->grain = SND_GRAIN;
    header->flags = SND_FILE_CLOSED | SND_FILE_PACKED;
    header->closed_bytes = out->size;
    header->closed_events = out->event_count;
    header->fixed_crc = snd_crc32c(0, header, offsetof(struct snd_file_header, fixed_crc));
    if (out->status == SONDE_OK &&
        pwrite(out->fd, header, sizeof *header, 0) != (ssize_t)sizeof *header)
        fail(out, SONDE_E_IO, true, "cannot write the trace");
    if (out->status != SONDE_OK && err)
        *err = out->why;
    return out->status;
}
