/* SPDX-License-Identifier: Apache-2.0 */
/* cli/after/trace_symbols.c - see trace_symbols.h */
#include "cli/after/trace_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/data/crc32c.h"
#include "base/files/fd_io.h"
#include "base/data/map.h"
#include "read/reader.h"

struct work {
    struct sonde_trace      *trace;
    struct snd_symbol_query *queries; /* of all files, one file after another */
    struct asked {
        uint32_t process, frame;
    } * asked; /* by query */
    uint32_t count, room, asked_room;
};

/* ------------------------------------------------------------------------ what */

static bool add_query(struct work *w, uint32_t process, uint32_t frame)
{
    const struct snd_frame_record *f = &w->trace->processes[process].tables.frames[frame];

    if (!snd_grow(&w->queries, &w->room, w->count, sizeof *w->queries) ||
        !snd_grow(&w->asked, &w->asked_room, w->count, sizeof *w->asked))
        return false;
    w->queries[w->count] = (struct snd_symbol_query){
        .file = sonde_trace_string(w->trace, process, f->file).bytes,
        .build_id = f->build_id ? sonde_trace_string(w->trace, process, f->build_id).bytes : NULL,
        .address = f->address,
    };
    w->asked[w->count++] = (struct asked){ process, frame };
    return true;
}

/* Frames with an address that no symbol covers. */
static bool gather(struct work *w)
{
    for (uint32_t p = 0; p < w->trace->process_count; p++) {
        const struct snd_process *process = &w->trace->processes[p];
        for (uint32_t i = 1; !process->is_guest && i < process->tables.frame_count; i++) {
            const struct snd_frame_record *f = &process->tables.frames[i];
            if (f->address != 0 && f->file != 0 && f->reserved == 0 && !add_query(w, p, i))
                return false;
        }
    }
    return true;
}

/* ----------------------------------------------------------------------- bytes */

/* A chunk being built. */
struct chunk {
    struct sonde_buffer bytes;
    struct snd_texts    strings; /* those that it defines */
    uint32_t            first_string;
};

static void put_record(struct chunk *c, uint8_t type, uint32_t id, const void *head,
                       size_t head_size, const void *tail, size_t tail_size)
{
    static const char      zeroes[8];
    size_t                 size = sizeof(struct snd_record_head) + head_size + tail_size;
    size_t                 padded = (size + 7) & ~(size_t)7;
    struct snd_record_head record = { (uint32_t)(padded << 8 | type), id };

    snd_buf_put(&c->bytes, &record, sizeof record);
    snd_buf_put(&c->bytes, head, head_size);
    snd_buf_put(&c->bytes, tail, tail_size);
    snd_buf_put(&c->bytes, zeroes, padded - size);
}

/* The id of a string; 0 for "", and when memory is out. */
static uint32_t put_string(struct chunk *c, const char *text)
{
    uint32_t before = c->strings.count, number;
    uint32_t length = (uint32_t)strnlen(text, SND_STRING_MAX);

    if (length == 0 || !snd_texts_add(&c->strings, text, length, &number))
        return 0;
    if (c->strings.count > before)
        put_record(c, SND_REC_STRING, c->first_string + number, &length, sizeof length, text,
                   length);
    return c->first_string + number;
}

static void put_symbol(struct chunk *c, uint32_t frame, const struct snd_symbol_query *query)
{
    struct snd_symbol_entry  entries[SND_SYMBOL_ENTRIES_MAX];
    struct snd_symbol_record head = { frame, query->count < SND_SYMBOL_ENTRIES_MAX
                                                 ? query->count
                                                 : SND_SYMBOL_ENTRIES_MAX };

    for (uint32_t i = 0; i < head.count; i++)
        entries[i] = (struct snd_symbol_entry){ put_string(c, query->entries[i].function),
                                                put_string(c, query->entries[i].file),
                                                query->entries[i].line,
                                                query->entries[i].first_line };
    put_record(c, SND_REC_SYMBOL, 0, &head, sizeof head, entries, head.count * sizeof entries[0]);
}

/* ----------------------------------------------------------------------- files */

/* Where the last chunk ends, and the highest sequence number. */
static uint64_t find_end(const struct snd_process *process, uint64_t *seq)
{
    uint64_t end = SND_HEADER_SIZE;

    *seq = 0;
    for (int kind = 0; kind < 2; kind++) {
        const struct snd_chunk_ref *list = kind ? process->others : process->lanes;
        uint32_t                    count = kind ? process->other_count : process->lane_count;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t stop = list[i].offset + list[i].size;
            end = stop > end ? stop : end;
            *seq = list[i].seq > *seq ? list[i].seq : *seq;
        }
    }
    return end;
}

/*
 * Writes the chunk before the header counts it: a reader sees the file without it, or whole. The header
 * of a file that was not closed counts nothing.
 */
static bool append(int fd, uint64_t at, struct chunk *c, uint64_t seq, bool closed)
{
    struct snd_chunk_header head = { .magic = SND_CHUNK_MAGIC,
                                     .kind = SND_CHUNK_TABLE,
                                     .header_size = sizeof head,
                                     .seq = seq,
                                     .used = sizeof head + c->bytes.length,
                                     .crc_set = 1 };
    uint64_t                end;

    head.size = (head.used + SND_GRAIN - 1) / SND_GRAIN * SND_GRAIN;
    head.crc = snd_crc32c(0, c->bytes.bytes, c->bytes.length);
    end = at + head.size;
    if (ftruncate(fd, (off_t)end) != 0 || lseek(fd, (off_t)at, SEEK_SET) < 0 ||
        !snd_write_all(fd, &head, sizeof head) ||
        !snd_write_all(fd, c->bytes.bytes, c->bytes.length))
        return false;
    return !closed || pwrite(fd, &end, sizeof end,
                             offsetof(struct snd_file_header, closed_bytes)) == (ssize_t)sizeof end;
}

/* Where the chunk goes; 0: nowhere. A file that was not closed has room at its end that nothing used. */
static uint64_t find_place(int fd, uint64_t end, bool closed)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return 0;
    uint64_t size = (uint64_t)st.st_size;
    if (closed)
        return size == end ? end : 0;
    size = (size + SND_GRAIN - 1) / SND_GRAIN * SND_GRAIN;
    return size > end ? size : end;
}

static enum sonde_status write_file(const struct snd_process *process, struct chunk *c,
                                    struct sonde_error *err)
{
    bool     closed = process->shown.closed;
    uint64_t seq, end = find_end(process, &seq);

    if (c->bytes.failed)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the symbols of %s",
                        process->shown.path);
    int fd = open(process->shown.path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot add symbols to %s", process->shown.path);
    enum sonde_status status = SONDE_OK;
    uint64_t          at = find_place(fd, end, closed);
    if (at != 0 && !append(fd, at, c, seq + 1, closed)) {
        status = snd_fail_os(err, SONDE_E_IO, "cannot add symbols to %s", process->shown.path);
        if (ftruncate(fd, (off_t)at) != 0) /* the rest is read as an unfinished chunk: empty */
            errno = 0;
    }
    close(fd);
    return status;
}

static enum sonde_status write_symbols(struct work *w, bool ended, struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < w->count && status == SONDE_OK;) {
        uint32_t            p = w->asked[i].process;
        struct snd_process *process = &w->trace->processes[p];
        struct chunk        c = { .first_string = process->tables.file_names };
        for (; i < w->count && w->asked[i].process == p; i++)
            if (w->queries[i].count > 0)
                put_symbol(&c, w->asked[i].frame, &w->queries[i]);
        if (c.bytes.length > 0 && (ended || process->shown.closed))
            status = write_file(process, &c, err);
        sonde_buffer_release(&c.bytes);
        snd_texts_release(&c.strings);
    }
    return status;
}

enum sonde_status snd_trace_symbolize(const char *path, bool ended, struct snd_symbol_stats *stats,
                                      struct sonde_error *err)
{
    struct work         w = { 0 };
    struct snd_symbols *symbols = snd_symbols_new();
    enum sonde_status   status = sonde_trace_open(path, &w.trace, err);

    if (status == SONDE_OK && (!symbols || !gather(&w)))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the symbols of %s", path);
    if (status == SONDE_OK && w.count > 0)
        status = snd_symbols_find(symbols, w.queries, w.count, err);
    if (status == SONDE_OK && w.count > 0)
        status = write_symbols(&w, ended, err);
    if (stats)
        *stats = symbols ? *snd_symbols_stats(symbols) : (struct snd_symbol_stats){ 0 };
    sonde_trace_close(w.trace);
    snd_symbols_free(symbols);
    free(w.queries);
    free(w.asked);
    return status;
}
