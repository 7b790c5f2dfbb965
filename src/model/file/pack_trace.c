/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/file/pack_trace.c - writes a compacted copy of a trace; what is damaged is left out.
 *
 * The copy is a temporary file, which is flushed to disk and then renamed: readers see the old file
 * or the new one, never part of either.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/aside_file.h"
#include "base/data/crc32c.h"
#include "base/files/fd_io.h"
#include "base/struct_size.h"
#include "format/codec.h"
#include "format/fields.h"
#include "model/file/cut_trace.h"
#include "read/file/cursor.h"
#include "sonde/model.h"

#define BLOCK_BYTES ((size_t)1 << 20) /* packed at once: more gains little */
#define LEVEL_DEFAULT 3               /* times are noise: higher levels find nothing more */
#define LEVEL_MAX 19

struct packer {
    const struct snd_process *process;
    struct snd_codec         *codec;  /* packs */
    struct snd_codec         *unpack; /* of the input's chunks */
    int                       level;
    int                       fd;
    char                     *aside; /* owned: the file being written */
    const char               *target;
    uint64_t                  size, seq;
    uint64_t                 *block; /* events or records not yet written */
    size_t                    count; /* words in it */
    uint16_t                  kind;
    uint32_t                  thread; /* of the block's first event */
    uint64_t                  lost;   /* of the chunk that the block begins */
    struct snd_cut           *cut;    /* what is kept; NULL: everything */
    bool                      stored; /* as it is, not packed: to be read soon, or without zstd */
};

/* ----------------------------------------------------------------- writing */

static enum sonde_status write_all(struct packer *p, const void *data, size_t size,
                                   struct sonde_error *err)
{
    if (!snd_write_all(p->fd, data, size))
        return snd_fail_os(err, SONDE_E_IO, "cannot write the packed trace %s", p->target);
    p->size += size;
    return SONDE_OK;
}

static enum sonde_status write_chunk(struct packer *p, uint16_t kind, const void *payload,
                                     size_t size, struct sonde_error *err)
{
    static const char       zeroes[8];
    size_t                  padding = (8 - size % 8) % 8;
    struct snd_chunk_header h = {
        .magic = SND_CHUNK_MAGIC,
        .kind = kind,
        .header_size = SND_CHUNK_HEADER_SIZE,
        .size = SND_CHUNK_HEADER_SIZE + size + padding,
        .seq = ++p->seq,
        .used = SND_CHUNK_HEADER_SIZE + size,
        .thread = p->thread,
        .crc = snd_crc32c(0, payload, size),
        .crc_set = 1,
        .lost = p->lost,
    };
    enum sonde_status status = write_all(p, &h, sizeof h, err);

    if (status == SONDE_OK)
        status = write_all(p, payload, size, err);
    if (status == SONDE_OK)
        status = write_all(p, zeroes, padding, err);
    p->lost = 0;
    return status;
}

/* Packs and writes the block. */
static enum sonde_status flush(struct packer *p, struct sonde_error *err)
{
    const uint8_t    *packed = NULL;
    size_t            size = 0;
    bool              is_lane = p->kind == SND_CHUNK_LANE;
    enum sonde_status status = SONDE_OK;

    if (p->count == 0) /* a chunk without events may still tell of some that were lost */
        return p->lost ? write_chunk(p, p->kind, p->block, 0, err) : SONDE_OK;
    if (!p->stored && is_lane)
        status = snd_codec_pack_lane(p->codec, p->block, p->count, p->level, &packed, &size, err);
    else if (!p->stored)
        status = snd_codec_pack_bytes(p->codec, p->block, p->count * 8, p->level, &packed, &size,
                                      err);
    if (status == SONDE_OK && packed)
        status = write_chunk(p, is_lane ? SND_CHUNK_PACKED_LANE : SND_CHUNK_PACKED_TABLE, packed,
                             size, err);
    else if (status == SONDE_OK)
        status = write_chunk(p, p->kind, p->block, p->count * 8, err);
    p->count = 0;
    return status;
}

/* -------------------------------------------------------------- copying on */

static enum sonde_status add(struct packer *p, const uint64_t *words, size_t count,
                             struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    if (count > BLOCK_BYTES / 8 - p->count)
        status = flush(p, err);
    if (status == SONDE_OK) {
        memcpy(p->block + p->count, words, count * 8);
        p->count += count;
    }
    return status;
}

/* Length in words of the event or record at `words`, 0 at the end, SIZE_MAX if it is none. */
static size_t measure(const struct packer *p, const uint64_t *words, bool has_used)
{
    if (p->kind == SND_CHUNK_LANE) {
        if (words[0] == 0)
            return has_used ? SIZE_MAX : 0;
        return SND_KIND_WORDS(SND_EVENT_KIND(words[0]));
    }
    struct snd_record_head head;
    memcpy(&head, words, sizeof head);
    size_t size = SND_RECORD_SIZE(head);
    if (head.size_type == 0 && !has_used)
        return 0;
    return size < sizeof head || size % 8 != 0 || size > SND_RECORD_SIZE_MAX ? SIZE_MAX : size / 8;
}

/* All whole items of a chunk. */
static enum sonde_status copy_items(struct packer *p, struct snd_cursor *c, uint64_t *last_word,
                                    struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;
    uint32_t          thread = p->thread;

    do {
        while (c->at < c->count) {
            const uint64_t *words = c->words + c->at;
            size_t          length = measure(p, words, c->has_used);
            if (length == 0 || length == SIZE_MAX) {
                c->damaged |= length == SIZE_MAX;
                return SONDE_OK;
            }
            if (length > c->count - c->at)
                break;
            if (p->kind == SND_CHUNK_LANE && SND_EVENT_KIND(words[0]) == SND_EV_THREAD)
                thread = SND_LOW(words[1]);
            *last_word = words[0];
            c->at += length;
            if (p->cut && p->kind == SND_CHUNK_LANE && !snd_cut_has_event(p->cut, thread, words))
                continue;
            size_t before = p->count;
            status = add(p, words, length, err);
            if (status != SONDE_OK)
                return status;
            if (p->cut && p->kind == SND_CHUNK_TABLE)
                snd_cut_record(p->cut, p->block + p->count - length, length);
            if (p->count < before + length) /* a new block: it begins with this thread */
                p->thread = thread;
        }
    } while (snd_cursor_fill(c));
    c->damaged |= c->at < c->count;
    return SONDE_OK;
}

static enum sonde_status copy_chunk(struct packer *p, struct snd_chunk_ref *chunk,
                                    struct snd_cursor *c, struct sonde_error *err)
{
    bool     is_lane = chunk->kind == SND_CHUNK_LANE || chunk->kind == SND_CHUNK_PACKED_LANE;
    uint64_t last = 0;

    p->kind = is_lane ? SND_CHUNK_LANE : SND_CHUNK_TABLE;
    p->thread = chunk->thread;
    p->lost = chunk->lost;
    size_t            window = is_lane ? SND_WINDOW_WALK : SND_RECORD_SIZE_MAX + 65536;
    enum sonde_status status = snd_cursor_open(c, p->process, chunk, window, &p->unpack, err);
    if (status == SONDE_OK)
        status = copy_items(p, c, &last, err);
    if (status == SONDE_OK && is_lane && c->damaged) {
        /* What follows the damage is gone: ranges before it end here. */
        const uint64_t gap[2] = { SND_WORD0(SND_EV_GAP, SND_EVENT_TIME56(last)),
                                  SND_PAIR(0, SND_GAP_ALL) };
        status = add(p, gap, 2, err);
    }
    /* Tables run on from chunk to chunk; events do not: the next chunk may be another thread's. */
    return status == SONDE_OK && is_lane ? flush(p, err) : status;
}

/* Stores the packed file's length in its header. */
static enum sonde_status tell_length(struct packer *p, struct sonde_error *err)
{
    off_t    end = lseek(p->fd, 0, SEEK_CUR);
    uint64_t length = (uint64_t)end;
    off_t    at = offsetof(struct snd_file_header, closed_bytes);

    if (end < 0 || pwrite(p->fd, &length, sizeof length, at) != (ssize_t)sizeof length)
        return snd_fail_os(err, SONDE_E_IO, "cannot write the packed trace %s", p->target);
    return SONDE_OK;
}

static enum sonde_status copy_trace(struct packer *p, struct sonde_error *err)
{
    struct snd_file_header header = p->process->header;
    struct snd_cursor      cursor = { 0 };

    /* How many events the recording was closed with stays; how long it was does not. */
    header.closed_bytes = 0;
    if (p->cut) /* fewer than were closed with */
        header.closed_events = 0;
    header.flags |= SND_FILE_PACKED;
    if (p->cut && p->cut->asked->ended && !(header.flags & SND_FILE_CLOSED)) {
        header.flags |= SND_FILE_CLOSED;
        header.stopped_at = 0; /* at the last thing that is in it */
    }
    header.header_size = SND_HEADER_SIZE;
    header.fixed_crc = snd_crc32c(0, &header, offsetof(struct snd_file_header, fixed_crc));
    enum sonde_status status = write_all(p, &header, sizeof header, err);
    for (uint32_t i = 0; i < p->process->other_count && status == SONDE_OK; i++)
        status = copy_chunk(p, &p->process->others[i], &cursor, err);
    if (status == SONDE_OK)
        status = flush(p, err);
    for (uint32_t i = 0; i < p->process->lane_count && status == SONDE_OK; i++)
        status = copy_chunk(p, &p->process->lanes[i], &cursor, err);
    snd_cursor_release(&cursor);
    return status == SONDE_OK ? tell_length(p, err) : status;
}

/* ------------------------------------------------------------------- files */

static enum sonde_status open_aside(struct packer *p, struct sonde_error *err)
{
    p->fd = snd_aside_open(p->target, 0600, &p->aside);
    return p->fd >= 0 ? SONDE_OK
                      : snd_fail_os(err, SONDE_E_IO, "cannot create a temporary file beside %s",
                                    p->target);
}

static enum sonde_status pack_file(const char *path, const char *out_path, int level,
                                   const struct sonde_cut *asked, struct sonde_error *err)
{
    struct packer       p = { .target = out_path, .level = level, .fd = -1, .stored = level < 0 };
    struct sonde_trace *trace;
    struct snd_cut      cut = { 0 };
    enum sonde_status   status = p.stored ? SONDE_OK : snd_codec_new(&p.codec, err);

    if (status != SONDE_OK)
        return status;
    status = snd_trace_open_file(path, &trace, err);
    if (status != SONDE_OK)
        goto fail_open;
    p.process = &trace->processes[0];
    if (asked) {
        snd_cut_init(&cut, asked, trace);
        p.cut = &cut;
    }
    p.block = malloc(BLOCK_BYTES);
    if (p.block)
        status = open_aside(&p, err);
    else
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for packing");
    if (status == SONDE_OK)
        status = copy_trace(&p, err);
    if (status == SONDE_OK && cut.failed)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for a session's part of %s", path);
    if (p.fd >= 0 && !snd_aside_end(p.fd, p.aside, p.target, status == SONDE_OK, !p.stored) &&
        status == SONDE_OK)
        status = snd_fail_os(err, SONDE_E_IO, "cannot rename the packed trace to %s", p.target);
    free(p.aside);
    free(p.block);
    snd_cut_release(&cut);
    sonde_trace_close(trace);
    snd_codec_free(p.unpack);
fail_open:
    snd_codec_free(p.codec);
    return status;
}

/* Every trace of the folder, under its own name; other files are left alone. */
static enum sonde_status pack_folder(const char *path, const char *out_path, int level,
                                     struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;
    bool              has_any = false;

    if (mkdir(out_path, 0700) != 0 && errno != EEXIST)
        return snd_fail_os(err, SONDE_E_IO, "cannot create the folder %s", out_path);
    DIR *dir = opendir(path);
    if (!dir)
        return snd_fail_os(err, SONDE_E_IO, "cannot read the folder %s", path);
    for (struct dirent *entry; status == SONDE_OK && (entry = readdir(dir));) {
        char       *from = NULL, *to = NULL;
        struct stat st;
        if (entry->d_name[0] == '.')
            continue;
        if (asprintf(&from, "%s/%s", path, entry->d_name) < 0 ||
            asprintf(&to, "%s/%s", out_path, entry->d_name) < 0)
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory for packing");
        else if (stat(from, &st) == 0 && S_ISREG(st.st_mode)) {
            status = pack_file(from, to, level, NULL, err);
            has_any |= status == SONDE_OK;
        }
        if (status == SONDE_E_FORMAT) /* not a trace */
            status = SONDE_OK;
        free(from);
        free(to);
    }
    closedir(dir);
    if (status == SONDE_OK && !has_any)
        return snd_fail(err, SONDE_E_FORMAT, "the folder %s holds no trace of sonde", path);
    return status;
}

enum sonde_status sonde_pack(const char *path, const char *out_path, int level,
                             struct sonde_error *err)
{
    struct stat st;

    if (level == 0)
        level = LEVEL_DEFAULT;
    if (level > LEVEL_MAX)
        level = LEVEL_MAX;
    if (stat(path, &st) != 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot open the trace %s", path);
    return S_ISDIR(st.st_mode) ? pack_folder(path, out_path, level, err)
                               : pack_file(path, out_path, level, NULL, err);
}

enum sonde_status sonde_cut_session(const char *path, const char *out_path,
                                    const struct sonde_cut *cut, struct sonde_error *err)
{
    struct sonde_cut  used = SONDE_CUT_INIT;
    enum sonde_status status = snd_struct_take(cut, &used, sizeof used, "SONDE_CUT_INIT", err);

    return status == SONDE_OK ? pack_file(path, out_path, -1, &used, err) : status;
}
