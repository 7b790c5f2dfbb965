/* SPDX-License-Identifier: Apache-2.0 */
/* read/file/source.c - bytes of a trace (source.h); the header of a file and the index of its chunks (reader.h). */
#include "read/file/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/data/crc32c.h"
#include "base/data/sort.h"
#include "base/files/fd_io.h"
#include "import/import.h"
#include "read/reader.h"

/* Without O_NONBLOCK, opening a pipe in the folder would block for ever. */
static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

enum sonde_status snd_source_open(struct snd_source *source, const char *path, bool keep,
                                  struct sonde_error *err)
{
    enum sonde_status status;
    struct stat       st;

    *source = (struct snd_source){ .fd = -1 };
    int fd = open_file(path);
    if (fd < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot open the trace %s", path);
    if (fstat(fd, &st) != 0) {
        status = snd_fail_os(err, SONDE_E_IO, "cannot read the trace %s", path);
        goto fail_stat;
    }
    if (!S_ISREG(st.st_mode)) {
        status = snd_fail(err, SONDE_E_IO, "cannot read the trace %s: not a regular file", path);
        goto fail_stat;
    }
    source->path = strdup(path);
    if (!source->path) {
        status = snd_fail(err, SONDE_E_NOMEM, "cannot open the trace %s: out of memory", path);
        goto fail_stat;
    }
    source->size = (uint64_t)st.st_size;
    if (keep)
        source->fd = fd;
    else
        close(fd);
    return SONDE_OK;

fail_stat:
    close(fd);
    return status;
}

bool snd_source_is_foreign(const char *path)
{
    static const char magic[] = SND_FILE_MAGIC;
    char              head[256];
    struct stat       st;
    int               fd = open_file(path);
    ssize_t           got = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                                ? read(fd, head, sizeof head)
                                : -1;

    if (fd >= 0)
        close(fd);
    bool own = got >= (ssize_t)sizeof magic - 1 && memcmp(head, magic, sizeof magic - 1) == 0;
    return got > 0 && !own && snd_import_may_be(head, (size_t)got);
}

enum sonde_status snd_source_import(struct snd_source *source, const char *path,
                                    struct sonde_error *err)
{
    struct stat       st;
    int               fd;
    enum sonde_status status = snd_import_aside(path, &fd, err);

    *source = (struct snd_source){ .fd = -1 };
    if (status != SONDE_OK)
        return status;
    source->fd = fd;
    source->path = strdup(path);
    if (!source->path || fstat(fd, &st) != 0) {
        snd_source_release(source);
        return snd_fail(err, SONDE_E_NOMEM, "cannot open the trace %s: out of memory", path);
    }
    source->size = (uint64_t)st.st_size;
    return SONDE_OK;
}

void snd_source_release(struct snd_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    free((char *)source->path);
    *source = (struct snd_source){ .fd = -1 };
}

size_t snd_source_read(const struct snd_source *source, uint64_t offset, void *out, size_t size)
{
    if (offset >= source->size)
        return 0;
    if (size > source->size - offset)
        size = (size_t)(source->size - offset);
    if (source->memory) {
        memcpy(out, source->memory + offset, size);
        return size;
    }
    int fd = source->fd >= 0 ? source->fd : open_file(source->path);
    if (fd < 0)
        return 0;
    size_t done = snd_read_at(fd, offset, out, size);
    if (fd != source->fd)
        close(fd);
    return done;
}

/* The first offset at or after `offset` that is not in a hole of a sparse file. */
static uint64_t skip_hole(const struct snd_source *source, uint64_t offset)
{
    if (source->memory)
        return offset;
    int fd = source->fd >= 0 ? source->fd : open_file(source->path);
    if (fd < 0)
        return source->size;
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    bool  none = data < 0 && errno == ENXIO; /* nothing but hole to the end */
    if (fd != source->fd)
        close(fd);
    if (none)
        return source->size;
    return data > (off_t)offset ? (uint64_t)data : offset;
}

/* -------------------------------------------------------- header and chunks */

/*
 * In a recorded file chunks begin at multiples of the grain: where a header cannot be read,
 * the next grain is tried. In a packed one they follow each other, 8-byte aligned, and the
 * search goes on byte-wise (by 8) for the next header.
 */

#define SEARCH_WINDOW ((size_t)65536)

static bool is_grain(uint32_t grain)
{
    return grain >= SND_HEADER_SIZE && grain <= SND_CHUNK_SIZE_MAX && (grain & (grain - 1)) == 0;
}

/* A damaged header loses what it states, not the events: finding them needs only the grain. */
static void repair_header(struct snd_process *p)
{
    struct snd_file_header *h = &p->header;

    p->damage.header = true;
    if (!is_grain(h->grain))
        h->grain = SND_GRAIN;
    if (h->clock_kind == SND_CLOCK_NONE || h->clock_kind > SND_CLOCK_SYNTHETIC)
        h->clock_kind = SND_CLOCK_MONOTONIC;
    h->host[sizeof h->host - 1] = '\0';
    h->program[sizeof h->program - 1] = '\0';
}

enum sonde_status snd_header_read(struct snd_process *p, struct sonde_error *err)
{
    struct snd_file_header *h = &p->header;
    const char             *path = p->source.path ? p->source.path : "(memory)";
    size_t                  got = snd_source_read(&p->source, 0, h, sizeof *h);

    if (got < sizeof h->magic || memcmp(h->magic, SND_FILE_MAGIC, sizeof h->magic) != 0)
        return snd_fail(err, SONDE_E_FORMAT, "%s is not a trace of sonde", path);
    if (got < sizeof *h)
        return snd_fail(err, SONDE_E_FORMAT, "the trace %s is truncated within its header", path);
    bool intact = snd_crc32c(0, h, offsetof(struct snd_file_header, fixed_crc)) == h->fixed_crc;
    if (intact && h->version_major > SND_VERSION_MAJOR)
        return snd_fail(err, SONDE_E_VERSION,
                        "the trace %s has format version %u.%u; this sonde reads up to %u.x: "
                        "use a newer one",
                        path, h->version_major, h->version_minor, (unsigned)SND_VERSION_MAJOR);
    if (!intact || !is_grain(h->grain) || h->header_size != SND_HEADER_SIZE ||
        h->clock_kind == SND_CLOCK_NONE || h->clock_kind > SND_CLOCK_SYNTHETIC ||
        !memchr(h->host, 0, sizeof h->host) || !memchr(h->program, 0, sizeof h->program))
        repair_header(p);
    p->valid_from = h->valid_from;
    return SONDE_OK;
}

/* ------------------------------------------------------------------- index */

static bool is_chunk(const struct snd_process *p, const struct snd_chunk_header *h, uint64_t offset)
{
    if (h->magic != SND_CHUNK_MAGIC || h->header_size < SND_CHUNK_HEADER_SIZE ||
        h->header_size % 8 != 0 || h->size < h->header_size || h->size > SND_CHUNK_SIZE_MAX ||
        h->size % 8 != 0)
        return false;
    /* In a recording a size that is no multiple of the grain would lose the track. */
    if (!(p->header.flags & SND_FILE_PACKED) && h->size % p->header.grain != 0)
        return false;
    return offset < p->source.size;
}

static bool add_chunk(struct snd_process *p, const struct snd_chunk_header *h, uint64_t offset)
{
    struct snd_chunk_ref ref = { .offset = offset,
                                 .size = h->size,
                                 .seq = h->seq,
                                 .used = h->used,
                                 .lost = h->lost,
                                 .thread = h->thread,
                                 .crc = h->crc,
                                 .kind = h->kind,
                                 .header_size = h->header_size,
                                 .crc_set = h->crc_set == 1 };

    if (h->kind == SND_CHUNK_LANE || h->kind == SND_CHUNK_PACKED_LANE) {
        if (!snd_grow(&p->lanes, &p->lane_room, p->lane_count, sizeof *p->lanes))
            return false;
        p->lanes[p->lane_count++] = ref;
        p->chunk_lost += h->lost;
    } else {
        if (!snd_grow(&p->others, &p->other_room, p->other_count, sizeof *p->others))
            return false;
        p->others[p->other_count++] = ref;
    }
    return true;
}

/* The next place after `offset` where a chunk header may stand. */
static uint64_t search(struct snd_process *p, uint64_t offset, uint64_t *window)
{
    const uint32_t magic = SND_CHUNK_MAGIC;

    if (!(p->header.flags & SND_FILE_PACKED)) {
        uint64_t grain = p->header.grain;
        uint64_t next = (offset / grain + 1) * grain;
        uint64_t data = skip_hole(&p->source, next);
        return data > next ? data / grain * grain : next;
    }
    for (uint64_t at = offset + 8; at < p->source.size;) {
        size_t got = snd_source_read(&p->source, at, window, SEARCH_WINDOW);
        for (size_t i = 0; i + 8 <= got; i += 8)
            if (memcmp((const char *)window + i, &magic, sizeof magic) == 0)
                return at + i;
        if (got < SEARCH_WINDOW)
            break;
        at += SEARCH_WINDOW;
    }
    return p->source.size;
}

static bool scan(struct snd_process *p, uint64_t *window)
{
    uint64_t offset = p->header.flags & SND_FILE_PACKED ? SND_HEADER_SIZE : p->header.grain;

    while (offset < p->source.size) {
        struct snd_chunk_header h = { 0 };
        size_t                  got = snd_source_read(&p->source, offset, &h, sizeof h);
        if (got == sizeof h && is_chunk(p, &h, offset)) {
            if (h.seq != 0) { /* otherwise reserved and never used: nothing is missing */
                bool known = h.kind >= SND_CHUNK_LANE && h.kind <= SND_CHUNK_PACKED_TABLE;
                p->damage.unknown_chunks += !known;
                if (known && !add_chunk(p, &h, offset))
                    return false;
            }
            offset += h.size;
            continue;
        }
        uint64_t next = search(p, offset, window);
        /* Zeroes: reserved and never used, at the end of a file that was not closed. */
        static const struct snd_chunk_header zeroes;
        if (memcmp(&h, &zeroes, got) != 0)
            p->damage.skipped_bytes += (next < p->source.size ? next : p->source.size) - offset;
        offset = next;
    }
    return true;
}

static int compare_seq(const void *a, const void *b)
{
    const struct snd_chunk_ref *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->seq, y->seq), SND_RISING(x->offset, y->offset));
}

enum sonde_status snd_chunks_find(struct snd_process *p, struct sonde_error *err)
{
    uint64_t *window = malloc(SEARCH_WINDOW);

    bool done = window && scan(p, window);
    free(window);
    if (!done)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the chunks of %s",
                        p->source.path ? p->source.path : "the trace");
    snd_sort(p->lanes, p->lane_count, sizeof *p->lanes, compare_seq);
    snd_sort(p->others, p->other_count, sizeof *p->others, compare_seq);
    return SONDE_OK;
}
