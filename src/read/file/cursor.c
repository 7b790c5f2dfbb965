/* SPDX-License-Identifier: Apache-2.0 */
#include "read/file/cursor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/crc32c.h"

static bool make_room(struct snd_cursor *c, size_t words)
{
    if (words <= c->room)
        return true;
    free(c->words);
    c->words = malloc(words * 8);
    c->room = c->words ? words : 0;
    return c->words != NULL;
}

/* How far the chunk reaches: as it says itself, and as far as the file goes. */
static void find_end(struct snd_cursor *c)
{
    const struct snd_chunk_ref *chunk = c->chunk;
    uint64_t                    there = c->process->source.size - chunk->offset;

    c->has_used = chunk->used >= chunk->header_size && chunk->used <= chunk->size;
    if (chunk->used != 0 && !c->has_used)
        c->damaged = true;
    c->end = c->has_used ? chunk->used : chunk->size;
    if (c->end > there) {
        c->end = there > chunk->header_size ? there : chunk->header_size;
        c->damaged = true;
        c->has_used = false;
    }
}

static bool is_packed(const struct snd_chunk_ref *chunk)
{
    return chunk->kind == SND_CHUNK_PACKED_LANE || chunk->kind == SND_CHUNK_PACKED_TABLE;
}

static bool is_intact(const struct snd_cursor *c, uint32_t crc)
{
    return !c->has_used || !c->chunk->crc_set || crc == c->chunk->crc;
}

/* A packed chunk that is damaged anywhere is lost as a whole. */
static enum sonde_status unpack(struct snd_cursor *c, const uint8_t *data, size_t size,
                                struct snd_codec *codec, struct sonde_error *err)
{
    enum sonde_status status;
    const uint64_t   *words = NULL;
    const uint8_t    *bytes = NULL;
    size_t            count = 0, length = 0;

    if (c->chunk->kind == SND_CHUNK_PACKED_LANE)
        status = snd_codec_unpack_lane(codec, data, size, &words, &count, err);
    else
        status = snd_codec_unpack_bytes(codec, data, size, &bytes, &length, err);
    if (status == SONDE_E_FORMAT) {
        c->damaged = true;
        return SONDE_OK;
    }
    if (status != SONDE_OK)
        return status;
    if (bytes)
        count = length / 8;
    if (!make_room(c, count + 1))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
    if (count > 0)
        memcpy(c->words, words ? (const void *)words : (const void *)bytes, count * 8);
    c->count = count;
    return SONDE_OK;
}

/* Keeps the events that the cursor has, while there is room and memory for it. Several threads may read, but none the same chunk. */
static void keep_unpacked(struct snd_cursor *c)
{
    _Atomic size_t *room = c->process->keeps_words;

    if (!room || c->damaged || c->chunk->kind != SND_CHUNK_PACKED_LANE)
        return;
    size_t left = atomic_load(room);
    do
        if (c->count > left)
            return;
    while (!atomic_compare_exchange_weak(room, &left, left - c->count));
    uint64_t *kept = malloc(c->count * 8 + 1);
    if (!kept) {
        atomic_fetch_add(room, c->count);
        return;
    }
    if (c->count > 0)
        memcpy(kept, c->words, c->count * 8);
    c->chunk->unpacked = kept;
    c->chunk->unpacked_words = c->count;
}

static enum sonde_status open_kept(struct snd_cursor *c, struct sonde_error *err)
{
    c->next = c->end;
    if (!make_room(c, c->chunk->unpacked_words + 1))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
    c->count = c->chunk->unpacked_words;
    memcpy(c->words, c->chunk->unpacked, c->count * 8);
    return SONDE_OK;
}

static enum sonde_status open_packed(struct snd_cursor *c, struct snd_codec **codec,
                                     struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    if (c->chunk->unpacked)
        return open_kept(c, err);
    if (!*codec)
        status = snd_codec_new(codec, err);
    if (status != SONDE_OK)
        return status;
    uint64_t offset = c->chunk->offset + c->chunk->header_size;
    size_t   size = (size_t)(c->end - c->chunk->header_size);
    c->next = c->end;
    if (!c->has_used || c->damaged || size > SND_PACKED_RAW_MAX * 2) {
        c->damaged = true;
        return SONDE_OK;
    }
    uint8_t *data = malloc(size + 1);
    if (!data)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for a packed chunk");
    if (snd_source_read(&c->process->source, offset, data, size) != size ||
        !is_intact(c, snd_crc32c(0, data, size)))
        c->damaged = true;
    else
        status = unpack(c, data, size, *codec, err);
    free(data);
    if (status == SONDE_OK)
        keep_unpacked(c);
    return status;
}

enum sonde_status snd_cursor_open(struct snd_cursor *c, const struct snd_process *process,
                                  struct snd_chunk_ref *chunk, size_t window,
                                  struct snd_codec **codec, struct sonde_error *err)
{
    c->process = process;
    c->chunk = chunk;
    c->at = c->count = 0;
    c->crc = 0;
    c->damaged = false;
    find_end(c);
    if (is_packed(chunk))
        return open_packed(c, codec, err);
    c->next = chunk->header_size;
    if (window > c->end - c->next)
        window = (size_t)(c->end - c->next);
    /* Room for an event that the window's end cuts, beyond the window itself. */
    if (!make_room(c, window / 8 + 8))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for a chunk");
    snd_cursor_fill(c);
    return SONDE_OK;
}

bool snd_cursor_fill(struct snd_cursor *c)
{
    size_t left = c->count - c->at;

    if (c->next >= c->end)
        return false;
    if (left > 0)
        memmove(c->words, c->words + c->at, left * 8);
    size_t want = (c->room - left) * 8;
    if (want > c->end - c->next)
        want = (size_t)(c->end - c->next);
    size_t got = snd_source_read(&c->process->source, c->chunk->offset + c->next, c->words + left,
                                 want);
    if (got < want) { /* cut while we read */
        c->damaged = true;
        c->has_used = false;
        c->end = c->next + got;
    }
    if (c->has_used && c->chunk->crc_set) {
        c->crc = snd_crc32c(c->crc, c->words + left, got);
        if (c->next + got == c->end && !is_intact(c, c->crc))
            c->damaged = true;
    }
    c->next += got;
    c->at = 0;
    c->count = left + got / 8;
    return got >= 8;
}

const uint64_t *snd_cursor_event(struct snd_cursor *c)
{
    do {
        if (c->at == c->count)
            continue;
        const uint64_t *words = c->words + c->at;
        size_t          length = SND_KIND_WORDS(SND_EVENT_KIND(words[0]));
        if (words[0] == 0)
            return NULL;
        if (length <= c->count - c->at) {
            c->at += length;
            return words;
        }
    } while (snd_cursor_fill(c));
    return NULL;
}

void snd_cursor_release(struct snd_cursor *c)
{
    free(c->words);
    *c = (struct snd_cursor){ 0 };
}
