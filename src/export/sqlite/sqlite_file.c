/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sqlite/sqlite_file.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"

#define PAGE SND_SQLITE_PAGE
#define HEADER 100u /* of the file, at the front of page 1 */
/* The page that holds byte 2^30 is left empty: SQLite locks bytes of it. */
#define LOCK_PAGE ((1u << 30) / PAGE + 1)

/* How much of a record its cell holds at most; and at least, if the rest is in overflow pages. */
#define TABLE_MOST (PAGE - 35)
#define INDEX_MOST ((PAGE - 12) * 64 / 255 - 23)
#define LOCAL_LEAST ((PAGE - 12) * 32 / 255 - 23)
#define OVERFLOW_BYTES (PAGE - 4)
#define WHOLE_MOST 140737488355327.0 /* 2^47 - 1: what 6 bytes hold */

/* ---------------------------------------------------------------------- numbers */

static void put_u16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static void put_u32(uint8_t *to, uint32_t value)
{
    put_u16(to, value >> 16);
    put_u16(to + 2, value & 0xffff);
}

static uint32_t get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

size_t snd_sqlite_long_varint(uint8_t *to, uint64_t value)
{
    size_t   size = snd_sqlite_varint_size(value);
    unsigned last = size == SND_SQLITE_VARINT_MAX ? 8 : 7; /* bits of the last byte */

    for (size_t i = 0; i + 1 < size; i++)
        to[i] = (uint8_t)(0x80 | value >> (last + 7 * (size - 2 - i)));
    to[size - 1] = (uint8_t)(last == 8 ? value : value & 0x7f);
    return size;
}

size_t snd_sqlite_real(uint8_t *to, double value, uint8_t *type)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (fabs(value) < WHOLE_MOST && value == (double)(int64_t)value &&
        (bits << 1 != 0 || bits == 0))
        return snd_sqlite_integer(to, (int64_t)value, type);
    snd_sqlite_u64(to, bits);
    *type = 7;
    return 8;
}

/* ------------------------------------------------------------------------ pages */

static void fail(struct snd_sqlite_file *file)
{
    file->out_of_memory = true;
}

/* A page in place, whose bytes follow. */
static uint8_t *append_page(struct snd_sqlite_file *file)
{
    uint8_t *page = (uint8_t *)snd_out_room(&file->out, PAGE);

    file->out.at += PAGE;
    return page;
}

void snd_sqlite_begin(struct snd_sqlite_file *file, int fd, bool apart)
{
    file->fd = fd;
    file->sink = sonde_sink_fd(fd);
    file->pages = 1;
    file->out_of_memory = false;
    snd_out_init(&file->out, &file->sink);
    snd_out_apart(&file->out, apart ? SND_AHEAD_FEW : 0);
    memset(append_page(file), 0, PAGE); /* in place of page 1 */
}

/* The number that the next page will have. */
static uint32_t next_page(const struct snd_sqlite_file *file)
{
    return file->pages + (file->pages + 1 == LOCK_PAGE ? 2 : 1);
}

static uint8_t *take_page(struct snd_sqlite_file *file)
{
    uint8_t *page = append_page(file);

    file->pages++;
    if (file->pages != LOCK_PAGE)
        return page;
    memset(page, 0, PAGE);
    return take_page(file);
}

/* Writes the part of a record that its cell does not hold: a chain of pages. The first one's number. */
static uint32_t put_overflow(struct snd_sqlite_file *file, const uint8_t *bytes, size_t length)
{
    uint32_t first = next_page(file);

    while (length > 0) {
        uint8_t *page = take_page(file);
        size_t   part = length < OVERFLOW_BYTES ? length : OVERFLOW_BYTES;
        put_u32(page, part < length ? next_page(file) : 0);
        memcpy(page + 4, bytes, part);
        memset(page + 4 + part, 0, OVERFLOW_BYTES - part);
        bytes += part;
        length -= part;
    }
    return first;
}

/* ------------------------------------------------------------------------ trees */

static uint32_t header_size(uint32_t level)
{
    return level == 0 ? 8 : 12; /* with the child behind all cells */
}

/* The page of a level that is being filled; NULL when memory is out. */
static struct snd_sqlite_page *open_page(struct snd_sqlite_file *file, struct snd_sqlite_tree *tree,
                                         uint32_t level)
{
    if (level < SND_SQLITE_LEVELS && !tree->levels[level]) {
        tree->levels[level] = calloc(1, sizeof *tree->levels[level]);
        if (tree->levels[level])
            tree->levels[level]->cells = PAGE;
    }
    if (level < SND_SQLITE_LEVELS && tree->levels[level])
        return tree->levels[level];
    fail(file);
    return NULL;
}

/* Any page of the schema may become page 1. */
static bool has_room(const struct snd_sqlite_tree *tree, uint32_t level, size_t size)
{
    const struct snd_sqlite_page *page = tree->levels[level];

    return header_size(level) + 2 * (page->count + 1) + size + (tree->is_schema ? HEADER : 0) <=
           page->cells;
}

/* Room for a cell that fits. */
static uint8_t *add_cell(struct snd_sqlite_page *page, uint32_t level, uint32_t size)
{
    page->cells -= size;
    page->last = size;
    put_u16(page->bytes + header_size(level) + 2 * page->count++, page->cells);
    return page->bytes + page->cells;
}

/* Takes the latest cell out; it stays readable until the next one is added. */
static const uint8_t *drop_cell(struct snd_sqlite_page *page)
{
    const uint8_t *cell = page->bytes + page->cells;

    page->count--;
    page->cells += page->last;
    return cell;
}

/* The header of a page, behind whose cells comes `right`; the page is then as on disk. */
static void close_page(struct snd_sqlite_page *page, const struct snd_sqlite_tree *tree,
                       uint32_t level, uint32_t right)
{
    uint8_t *to = page->bytes;
    uint32_t end = header_size(level) + 2 * page->count;

    *to = (uint8_t)((tree->is_index ? 2 : 5) + (level == 0 ? 8 : 0));
    put_u16(to + 1, 0);
    put_u16(to + 3, page->count);
    put_u16(to + 5, page->cells);
    to[7] = 0;
    if (level > 0)
        put_u32(to + 8, right);
    memset(to + end, 0, page->cells - end);
}

/* Writes a page and empties it; its number. */
static uint32_t put_page(struct snd_sqlite_file *file, const struct snd_sqlite_tree *tree,
                         uint32_t level, uint32_t right)
{
    struct snd_sqlite_page *page = tree->levels[level];

    close_page(page, tree, level, right);
    memcpy(take_page(file), page->bytes, PAGE);
    page->count = 0;
    page->cells = PAGE;
    return file->pages;
}

/*
 * Adds a page, and the key that separates it from the next one, to the level above it. A full page gives up its last cell:
 * the key goes further up, and the child becomes the one behind all cells. So no page is ever without a cell.
 */
static void add_child(struct snd_sqlite_file *file, struct snd_sqlite_tree *tree, uint32_t level,
                      uint32_t child, const uint8_t *key, uint32_t length)
{
    struct snd_sqlite_page *page = open_page(file, tree, level);

    if (!page)
        return;
    if (!has_room(tree, level, 4 + length)) {
        uint32_t       dropped = page->last;
        const uint8_t *cell = drop_cell(page);
        uint8_t        above[INDEX_MOST + 32] = { 0 };
        assert(dropped <= sizeof above);
        memcpy(above, cell, dropped);
        uint32_t number = put_page(file, tree, level, get_u32(above));
        add_child(file, tree, level + 1, number, above + 4, dropped - 4);
    }
    uint8_t *cell = add_cell(page, level, 4 + length);
    put_u32(cell, child);
    memcpy(cell + 4, key, length);
}

/* Writes a full leaf. Its last entry separates it from the next one; in an index, only there is it kept. */
static void put_leaf(struct snd_sqlite_file *file, struct snd_sqlite_tree *tree)
{
    struct snd_sqlite_page *leaf = tree->levels[0];
    uint8_t                 key[INDEX_MOST + 32];
    uint32_t                length;

    if (tree->is_index) {
        length = leaf->last;
        assert(length <= sizeof key);
        memcpy(key, drop_cell(leaf), length);
    } else {
        length = (uint32_t)snd_sqlite_varint(key, (uint64_t)tree->rowid);
    }
    add_child(file, tree, 1, put_page(file, tree, 0, 0), key, length);
}

/* How much of a record that is longer than `most` its cell holds. */
static size_t local_bytes(size_t most, size_t length)
{
    size_t fit = LOCAL_LEAST + (length - LOCAL_LEAST) % OVERFLOW_BYTES;

    return fit <= most ? fit : LOCAL_LEAST;
}

void snd_sqlite_add(struct snd_sqlite_file *file, struct snd_sqlite_tree *tree, int64_t rowid,
                    const uint8_t *record, size_t length)
{
    struct snd_sqlite_page *leaf = open_page(file, tree, 0);
    size_t                  most = tree->is_index ? INDEX_MOST : TABLE_MOST;
    size_t                  local = length <= most ? length : local_bytes(most, length);
    size_t                  size = snd_sqlite_varint_size(length) + local;

    if (!leaf || snd_sqlite_failed(file))
        return;
    if (!tree->is_index)
        size += snd_sqlite_varint_size((uint64_t)rowid);
    if (local < length)
        size += 4;
    if (size < 4)
        size = 4; /* SQLite's least, so that it could be made free */
    if (!has_room(tree, 0, size))
        put_leaf(file, tree);
    uint8_t *cell = add_cell(leaf, 0, (uint32_t)size);
    cell += snd_sqlite_varint(cell, length);
    if (!tree->is_index)
        cell += snd_sqlite_varint(cell, (uint64_t)rowid);
    memmove(cell, record, local); /* gcc makes "rep movs" of memcpy(), slow for so few bytes */
    if (local < length)
        put_u32(cell + local, put_overflow(file, record + local, length - local));
    tree->rowid = rowid;
}

void snd_sqlite_release_tree(struct snd_sqlite_tree *tree)
{
    for (uint32_t i = 0; i < SND_SQLITE_LEVELS; i++) {
        free(tree->levels[i]);
        tree->levels[i] = NULL;
    }
}

uint32_t snd_sqlite_end_tree(struct snd_sqlite_file *file, struct snd_sqlite_tree *tree)
{
    uint32_t root = 0;

    if (open_page(file, tree, 0)) /* an empty tree is an empty leaf */
        for (uint32_t i = 0; i < SND_SQLITE_LEVELS && tree->levels[i]; i++)
            root = put_page(file, tree, i, root);
    snd_sqlite_release_tree(tree);
    return root;
}

/* ------------------------------------------------------------------------ page 1 */

/* https://sqlite.org/fileformat2.html#the_database_header */
static void put_header(uint8_t *to, uint32_t pages)
{
    static const uint8_t fixed[6] = { 1, 1, 0, 64, 32, 32 }; /* no write-ahead log; fractions */
    static const uint8_t magic[16] = "SQLite format 3";      /* with its NUL */
    static const struct {
        uint8_t  at;
        uint32_t value;
    } fields[] = {
        { 24, 1 },       /* changes of the file */
        { 40, 1 },       /* changes of the schema */
        { 44, 4 },       /* format of the schema */
        { 56, 1 },       /* texts are UTF-8 */
        { 92, 1 },       /* the number of pages is of that change */
        { 96, 3040000 }, /* version of SQLite; any is right */
    };

    memset(to, 0, HEADER);
    memcpy(to, magic, sizeof magic);
    put_u16(to + 16, PAGE);
    memcpy(to + 18, fixed, sizeof fixed);
    put_u32(to + 28, pages);
    for (size_t i = 0; i < SND_COUNT_OF(fields); i++)
        put_u32(to + fields[i].at, fields[i].value);
}

/* The root of the schema, behind the header: cells stay where they are. */
static void make_first_page(struct snd_sqlite_file *file, struct snd_sqlite_tree *schema,
                            uint8_t bytes[PAGE])
{
    uint32_t level = 0, right = 0;

    if (!open_page(file, schema, 0))
        return;
    for (; schema->levels[level + 1]; level++)
        right = put_page(file, schema, level, right);
    struct snd_sqlite_page *page = schema->levels[level];
    close_page(page, schema, level, right);
    memcpy(bytes, page->bytes, PAGE);
    memmove(bytes + HEADER, page->bytes, header_size(level) + 2 * page->count);
    put_header(bytes, file->pages);
}

enum sonde_status snd_sqlite_finish(struct snd_sqlite_file *file, struct snd_sqlite_tree *schema,
                                    struct sonde_error *err)
{
    uint8_t first[PAGE];

    make_first_page(file, schema, first);
    snd_sqlite_release_tree(schema);
    if (file->out_of_memory)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the database");
    if (snd_out_finish(&file->out, NULL) != SONDE_OK)
        errno = file->out.os_error;
    else if (pwrite(file->fd, first, PAGE, 0) == (ssize_t)PAGE)
        return SONDE_OK;
    return snd_fail_os(err, SONDE_E_IO, "cannot write the database");
}

void snd_sqlite_end(struct snd_sqlite_file *file)
{
    (void)!snd_out_end(&file->out, SONDE_E_STATE, NULL);
}
