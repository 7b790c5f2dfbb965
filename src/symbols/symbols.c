/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/symbols.c - see symbols.h */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/data/map.h"
#include "symbols/elf/code_blocks.h"
#include "symbols/elf/debug_files.h"
#include "symbols/names/demangle.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/listings.h"
#include "symbols/symbols.h"

#define VDSO_MOST 65536u /* bytes of its pages that are looked at */
#define SHOWN_MAX 200    /* bytes of a file's name in that of a function without a symbol */

struct snd_symbols {
    struct snd_arena arena; /* entries */
    struct snd_texts names; /* functions, mangled and not, and files */
    uint32_t        *shown; /* by number of a mangled name: that of the demangled one, plus one */
    uint32_t         shown_room;
    struct snd_demangler    demangler;
    struct snd_symbol_stats stats;
};

/* Queries of one file, sorted by address. */
struct batch {
    struct snd_symbols       *symbols;
    struct snd_symbol_query **queries;
    uint32_t                  count;
    bool                      failed; /* memory is out */
    const struct snd_symtab  *symtab;
};

struct snd_symbols *snd_symbols_new(void)
{
    return calloc(1, sizeof(struct snd_symbols));
}

void snd_symbols_free(struct snd_symbols *symbols)
{
    if (!symbols)
        return;
    snd_arena_release(&symbols->arena);
    snd_texts_release(&symbols->names);
    snd_demangler_release(&symbols->demangler);
    free(symbols->shown);
    free(symbols);
}

const struct snd_symbol_stats *snd_symbols_stats(const struct snd_symbols *symbols)
{
    return &symbols->stats;
}

/* ------------------------------------------------------------------------ names */

static const char *keep_text(struct snd_symbols *symbols, const char *text)
{
    uint32_t id;

    if (!snd_texts_add(&symbols->names, text, strlen(text), &id))
        return NULL;
    return symbols->names.items[id].bytes;
}

/* Demangled once for each name, however many addresses have it. */
static const char *keep_function(struct snd_symbols *symbols, const char *name)
{
    uint32_t id, shown, room = symbols->shown_room;

    if (!snd_texts_add(&symbols->names, name, strlen(name), &id))
        return NULL;
    while (symbols->shown_room <= id)
        if (!snd_grow(&symbols->shown, &symbols->shown_room, symbols->shown_room,
                      sizeof *symbols->shown))
            return NULL;
    memset(symbols->shown + room, 0, (symbols->shown_room - room) * sizeof *symbols->shown);
    if (symbols->shown[id] == 0) {
        const char *text = snd_demangle(&symbols->demangler, name);
        if (!snd_texts_add(&symbols->names, text, strlen(text), &shown))
            return NULL;
        symbols->shown[id] = shown + 1;
    }
    return symbols->names.items[symbols->shown[id] - 1].bytes;
}

/* ---------------------------------------------------------------------- answers */

/* Queries of one address share their entries. */
static void give(struct batch *batch, uint32_t index, const struct snd_symbol_function *entries,
                 uint32_t count)
{
    uint64_t address = batch->queries[index]->address;

    for (uint32_t i = index; i < batch->count && batch->queries[i]->address == address; i++) {
        batch->queries[i]->entries = entries;
        batch->queries[i]->count = count;
    }
}

/*
 * The name of a function whose DWARF has only the one that the source has: that of its symbol, if it says
 * more, without what the compiler added for a part or a copy of it (".cold").
 */
static const char *full_name(struct batch *batch, uint64_t address, const char *name)
{
    const struct snd_symtab_entry *entry = snd_symtab_find(batch->symtab, address);
    uint32_t                       id;

    if (!entry || (strncmp(entry->name, "_Z", 2) != 0 && strncmp(entry->name, "_R", 2) != 0))
        return name;
    size_t length = strcspn(entry->name, ".");
    if (!snd_texts_add(&batch->symbols->names, entry->name, length, &id))
        return name;
    return batch->symbols->names.items[id].bytes;
}

static bool take_frames(void *user, uint32_t index, const struct snd_dwarf_frame *frames,
                        uint32_t count)
{
    struct batch               *batch = user;
    struct snd_symbol_function *entries = snd_arena_take(&batch->symbols->arena,
                                                         count * sizeof *entries + !count);

    batch->failed |= !entries;
    for (uint32_t i = 0; !batch->failed && i < count; i++) {
        const char *function = frames[i].function[0] != '\0' ? frames[i].function : "(unnamed)";
        if (i + 1 == count && frames[i].is_bare)
            function = full_name(batch, batch->queries[index]->address, function);
        entries[i] = (struct snd_symbol_function){ keep_function(batch->symbols, function),
                                                   keep_text(batch->symbols, frames[i].file),
                                                   frames[i].line, frames[i].first_line };
        batch->failed |= !entries[i].function || !entries[i].file;
    }
    if (!batch->failed && count > 0)
        give(batch, index, entries, count);
    return !batch->failed;
}

/* Those that DWARF did not answer. */
static void answer_symtab(struct batch *batch)
{
    const struct snd_symtab_entry *last = NULL;
    struct snd_symbol_function    *entry = NULL;

    for (uint32_t i = 0; i < batch->count && !batch->failed; i++) {
        struct snd_symbol_query *query = batch->queries[i];
        if (query->count > 0)
            continue;
        const struct snd_symtab_entry *found = snd_symtab_find(batch->symtab, query->address);
        if (found && found != last) {
            last = found;
            entry = snd_arena_take(&batch->symbols->arena, sizeof *entry);
            if (entry)
                *entry = (struct snd_symbol_function){ keep_function(batch->symbols, found->name),
                                                       "", 0, 0 };
            batch->failed |= !entry || !entry->function;
        }
        if (found && !batch->failed) {
            query->entries = entry;
            query->count = 1;
        }
    }
}

/* "libm.so.6+0x1c0": the file, and where the function begins. */
static const struct snd_symbol_function *name_block(struct batch *batch, uint64_t start)
{
    const char *file = batch->queries[0]->file, *slash = strrchr(file, '/');
    char        shown[SHOWN_MAX + 32];

    (void)snprintf(shown, sizeof shown, "%.*s+0x%" PRIx64, SHOWN_MAX,
                   slash && slash[1] != '\0' ? slash + 1 : file, start);
    struct snd_symbol_function *entry = snd_arena_take(&batch->symbols->arena, sizeof *entry);
    if (entry)
        *entry = (struct snd_symbol_function){ keep_text(batch->symbols, shown), "", 0, 0 };
    batch->failed |= !entry || !entry->function;
    return entry;
}

static void give_blocks(struct batch *batch, const struct snd_code_blocks *blocks)
{
    const struct snd_symbol_function *entry = NULL;
    uint64_t                          start, last = 0;

    for (uint32_t i = 0; i < batch->count && !batch->failed; i++) {
        struct snd_symbol_query *query = batch->queries[i];
        if (query->count > 0 || !snd_code_blocks_find(blocks, query->address, &start))
            continue;
        if (!entry || start != last)
            entry = name_block(batch, start);
        last = start;
        query->entries = entry;
        query->count = entry != NULL;
    }
}

/* Those that have no symbol: functions without a name. */
static void answer_blocks(struct batch *batch, const struct snd_image *image)
{
    struct snd_code_blocks blocks = { 0 };
    uint32_t               first = 0;

    while (first < batch->count && batch->queries[first]->count > 0)
        first++;
    if (first == batch->count)
        return;
    batch->failed |= !snd_code_blocks_read(&blocks, image);
    if (!batch->failed)
        give_blocks(batch, &blocks);
    snd_code_blocks_release(&blocks);
}

/* ------------------------------------------------------------------------ files */

/* Each address once: the first query of it. */
static void answer_dwarf(struct batch *batch, const struct snd_image *image)
{
    uint64_t             *addresses = malloc((batch->count + 1) * sizeof *addresses);
    enum snd_dwarf_result result = SND_DWARF_NOMEM;

    if (addresses) {
        for (uint32_t i = 0; i < batch->count; i++)
            addresses[i] = batch->queries[i]->address;
        result = snd_dwarf_find(image->fd, addresses, batch->count, take_frames, batch);
    }
    free(addresses);
    batch->symbols->stats.without_libdw += result == SND_DWARF_ABSENT;
    batch->symbols->stats.failed += result == SND_DWARF_FAILED || result == SND_DWARF_NOMEM;
}

/* `own`: the file that was mapped, or NULL; `debug`: its debug file, or NULL. */
static void answer_images(struct batch *batch, const struct snd_image *own,
                          const struct snd_image *debug)
{
    struct snd_symtab symtab = { 0 };

    batch->failed |= (debug && !snd_symtab_add(&symtab, debug)) ||
                     (own &&
                      (!snd_symtab_add(&symtab, own) || !snd_symtab_add_plt(&symtab, own))) ||
                     !snd_symtab_sort(&symtab);
    batch->symtab = &symtab;
    if (!batch->failed && own && own->fd >= 0 && snd_image_has_dwarf(own))
        answer_dwarf(batch, own);
    else if (!batch->failed && debug && snd_image_has_dwarf(debug))
        answer_dwarf(batch, debug);
    if (!batch->failed)
        answer_symtab(batch);
    if (!batch->failed && own)
        answer_blocks(batch, own);
    snd_symtab_release(&symtab);
}

static bool is_other(const struct snd_image *image, const char *build_id)
{
    char found[SND_BUILD_ID_TEXT];

    if (!build_id || build_id[0] == '\0')
        return false;
    snd_image_build_id(image, found);
    return strcmp(found, build_id) != 0;
}

static void answer_file(struct batch *batch)
{
    const struct snd_symbol_query *first = batch->queries[0];
    struct snd_image               own, debug;
    bool has_own = snd_image_open(first->opened ? first->opened : first->file, &own);
    bool was_there = has_own, has_debug;

    if (has_own && is_other(&own, first->build_id)) {
        snd_image_release(&own);
        has_own = false;
    }
    has_debug = has_own ? snd_debug_file_open(&own, first->file, first->opened, &debug)
                        : first->build_id && snd_debug_file_by_id(first->build_id, &debug);
    if (has_own || has_debug)
        answer_images(batch, has_own ? &own : NULL, has_debug ? &debug : NULL);
    else if (was_there)
        batch->symbols->stats.changed++;
    else
        batch->symbols->stats.unreadable++;
    if (has_own)
        snd_image_release(&own);
    if (has_debug)
        snd_image_release(&debug);
}

/* The kernel maps the same code into every process; how long it is, its own table of sections says. */
static void answer_vdso(struct batch *batch)
{
    const void       *bytes = (const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT: an address */
    struct snd_image  image;
    const Elf64_Ehdr *head = bytes;

    if (!bytes)
        return;
    uint64_t size = head->e_shoff + (uint64_t)head->e_shnum * head->e_shentsize;
    if (size > VDSO_MOST || !snd_image_open_memory(bytes, (size_t)size, &image))
        return;
    if (!is_other(&image, batch->queries[0]->build_id))
        answer_images(batch, &image, NULL);
    snd_image_release(&image);
}

static void answer_listing(struct batch *batch, const char *path,
                           bool (*parse)(struct snd_symtab *, const char *, size_t))
{
    struct snd_symtab symtab = { 0 };

    batch->failed |= !snd_listing_read(&symtab, path, parse);
    batch->symbols->stats.unreadable += !batch->failed && symtab.count == 0;
    batch->symtab = &symtab;
    if (!batch->failed)
        answer_symtab(batch);
    snd_symtab_release(&symtab);
}

static bool is_perf_map(const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    size_t      length = strlen(name);

    return strncmp(name, "perf-", 5) == 0 && length > 9 && strcmp(name + length - 4, ".map") == 0;
}

static void answer_batch(struct batch *batch)
{
    const struct snd_symbol_query *first = batch->queries[0];

    batch->symbols->stats.files++;
    if (strcmp(first->file, "[vdso]") == 0)
        answer_vdso(batch);
    else if (strcmp(first->file, "[kernel]") == 0)
        answer_listing(batch, "/proc/kallsyms", snd_kallsyms_parse);
    else if (is_perf_map(first->file))
        answer_listing(batch, first->opened ? first->opened : first->file, snd_perfmap_parse);
    else if (first->file[0] == '/' || first->opened)
        answer_file(batch);
    for (uint32_t i = 0; i < batch->count; i++)
        batch->symbols->stats.unnamed += batch->queries[i]->count == 0;
}

/* --------------------------------------------------------------------- batches */

static int compare_texts(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

static int compare_files(const struct snd_symbol_query *x, const struct snd_symbol_query *y)
{
    int order = compare_texts(x->file, y->file);

    if (order == 0)
        order = compare_texts(x->build_id, y->build_id);
    return order ? order : compare_texts(x->opened, y->opened);
}

static int compare_queries(const void *a, const void *b)
{
    const struct snd_symbol_query *x = *(struct snd_symbol_query *const *)a,
                                  *y = *(struct snd_symbol_query *const *)b;
    int order = compare_files(x, y);

    if (order)
        return order;
    return x->address < y->address ? -1 : x->address > y->address;
}

enum sonde_status snd_symbols_find(struct snd_symbols *symbols, struct snd_symbol_query *queries,
                                   size_t count, struct sonde_error *err)
{
    struct snd_symbol_query **order = malloc((count + 1) * sizeof(struct snd_symbol_query *));
    bool                      ok = order && count < UINT32_MAX;

    for (size_t i = 0; ok && i < count; i++) {
        queries[i].entries = NULL;
        queries[i].count = 0;
        order[i] = &queries[i];
    }
    if (ok)
        qsort(order, count, sizeof *order, compare_queries);
    for (size_t first = 0, end; ok && first < count; first = end) {
        for (end = first + 1; end < count && compare_files(order[first], order[end]) == 0; end++)
            ;
        struct batch batch = { symbols, order + first, (uint32_t)(end - first), false, NULL };
        answer_batch(&batch);
        symbols->stats.addresses += batch.count;
        ok = !batch.failed;
    }
    free(order);
    return ok ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for symbols");
}
