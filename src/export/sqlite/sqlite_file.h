/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/sqlite/sqlite_file.h - an SQLite database written front to back, as its file format has it
 * (https://sqlite.org/fileformat2.html; docs/decisions/0019).
 *
 *     snd_sqlite_begin(&file, fd, apart);
 *     snd_sqlite_add(&file, &table, rowid, record, length);        rowids rise
 *     snd_sqlite_add(&file, &index, 0, record, length);            records rise, in the index's order
 *     uint32_t root = snd_sqlite_end_tree(&file, &table);
 *     snd_sqlite_add(&file, &schema, 1, record, length);           says where the roots are
 *     snd_sqlite_finish(&file, &schema, err);
 *     snd_sqlite_end(&file);                                       whatever came of it
 *
 * B-trees that only grow at their end need one open page a level: a full page is written where the file ends, and its place
 * is a cell of the page above. Memory does not depend on the number of rows. Page 1, the root of the schema, is written last.
 *
 * Layer: export. Threads: belongs to one thread; another may write to the file.
 */
#ifndef SND_EXPORT_SQLITE_SQLITE_FILE_H
#define SND_EXPORT_SQLITE_SQLITE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/files/sink.h"

#define SND_SQLITE_PAGE 4096u
#define SND_SQLITE_LEVELS 16 /* each page has at least 3 below it, and there are 2^32 */

struct snd_sqlite_file {
    int               fd;
    struct sonde_sink sink;  /* the same */
    struct snd_out    out;   /* to it */
    uint32_t          pages; /* so far, with those that are not written yet */
    bool              out_of_memory;
};

/* A page being filled: pointers to cells grow from its front, cells from its end. */
struct snd_sqlite_page {
    uint32_t count, cells; /* how many; where the lowest begins */
    uint32_t last;         /* bytes of the latest */
    uint8_t  bytes[SND_SQLITE_PAGE];
};

/* Zero it, but for `is_index` and `is_schema`. */
struct snd_sqlite_tree {
    struct snd_sqlite_page *levels[SND_SQLITE_LEVELS]; /* leaves first */
    int64_t                 rowid;                     /* of the latest row */
    bool                    is_index, is_schema;
};

/* `fd` is an empty file, of which nothing is read. `apart`: another thread writes to it. */
void snd_sqlite_begin(struct snd_sqlite_file *file, int fd, bool apart);
/* Nothing more is needed: memory is out, or a write failed. */
static inline bool snd_sqlite_failed(const struct snd_sqlite_file *file)
{
    return file->out_of_memory || file->out.failed;
}
/* Adds a row or an entry of an index. */
void snd_sqlite_add(struct snd_sqlite_file *file, struct snd_sqlite_tree *tree, int64_t rowid,
                    const uint8_t *record, size_t length);
/* Writes what is left of the tree: the number of its root page. The tree is released. */
uint32_t snd_sqlite_end_tree(struct snd_sqlite_file *file, struct snd_sqlite_tree *tree);
void     snd_sqlite_release_tree(struct snd_sqlite_tree *tree);
/* Ends the schema's tree and writes page 1. Errors: SONDE_E_IO, SONDE_E_NOMEM. */
SND_CHECKED enum sonde_status snd_sqlite_finish(struct snd_sqlite_file *file,
                                                struct snd_sqlite_tree *schema,
                                                struct sonde_error     *err);
/* No thread writes to it any more. */
void snd_sqlite_end(struct snd_sqlite_file *file);

/* ---------------------------------------------------------------------- records */

#define SND_SQLITE_VARINT_MAX 9

/* Writes a number as SQLite's varint, and how many bytes that takes. */
size_t snd_sqlite_long_varint(uint8_t *to, uint64_t value);

static inline size_t snd_sqlite_varint_size(uint64_t value)
{
    size_t size = (70 - (size_t)__builtin_clzll(value | 1)) / 7;

    return size < SND_SQLITE_VARINT_MAX ? size : SND_SQLITE_VARINT_MAX;
}

static inline size_t snd_sqlite_varint(uint8_t *to, uint64_t value)
{
    if (value < 0x80) {
        *to = (uint8_t)value;
        return 1;
    }
    if (value >= 1u << 21)
        return snd_sqlite_long_varint(to, value);
    if (value >= 1u << 14)
        *to++ = (uint8_t)(0x80 | value >> 14);
    to[0] = (uint8_t)(0x80 | value >> 7);
    to[1] = (uint8_t)(value & 0x7f);
    return value >= 1u << 14 ? 3 : 2;
}

static inline void snd_sqlite_u64(uint8_t *to, uint64_t value)
{
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        value = __builtin_bswap64(value);
    memcpy(to, &value, sizeof value);
}

/*
 * A value's bytes go to `to`, which has 8 bytes of room; how many they are. *type is what the record's header has of it.
 * Inline: a row has a dozen of them.
 */
static inline size_t snd_sqlite_integer(uint8_t *to, int64_t value, uint8_t *type)
{
    static const struct {
        uint8_t type, bytes;
    } widths[] = { { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 5, 6 }, { 5, 6 }, { 6, 8 }, { 6, 8 } };

    if ((uint64_t)value < 2) { /* the type says it all */
        *type = (uint8_t)(8 + value);
        return 0;
    }
    unsigned bits = 64 - (unsigned)__builtin_clzll((uint64_t)(value ^ (value >> 63)) | 1);
    unsigned width = bits / 8; /* one more bit is its sign */
    *type = widths[width].type;
    snd_sqlite_u64(to, (uint64_t)value << (64 - 8 * widths[width].bytes));
    return widths[width].bytes;
}

/* Of a column of type real, in which whole numbers are kept as integers. */
size_t snd_sqlite_real(uint8_t *to, double value, uint8_t *type);

#define SND_SQLITE_NULL 0u
#define SND_SQLITE_TEXT(length) (13 + 2 * (uint64_t)(length))

#endif
