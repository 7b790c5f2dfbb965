/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/exercise_symbols.c - ELF files, tables for unwinding, perf maps, the kernel's list and mangled names. */
#include <stdlib.h>
#include <string.h>

#include "cli/run/preloadable.h"
#include "exercise.h"
#include "native/stacks/unwind_table.h"
#include "symbols/elf/code_blocks.h"
#include "symbols/names/demangle.h"
#include "symbols/listings.h"

static volatile uint64_t sink; /* what was looked at, so that looking is not optimised away */

static void look_at(const struct snd_symtab *symtab)
{
    for (uint32_t i = 0; i < symtab->count; i += 1 + symtab->count / 1000) {
        const struct snd_symtab_entry *entry = &symtab->entries[i];
        const struct snd_symtab_entry *found = snd_symtab_find(symtab, entry->start);
        sink += strnlen(entry->name, 100) + (found ? found->start : 0);
    }
    snd_symtab_find(symtab, UINT64_MAX);
}

/* Tables for unwinding: made, and asked for every row's address and those around it. */
static void exercise_frames(const uint8_t *bytes, size_t size, uint64_t address, bool is_debug)
{
    const struct snd_cfi_section section = { bytes, size, address, is_debug };
    struct snd_unwind_table      table = { 0 };

    if (snd_unwind_table_add(&table, &section)) {
        snd_unwind_table_sort(&table);
        for (uint32_t i = 0; i < table.count; i += 1 + table.count / 1000) {
            uint64_t pc = table.base + table.rows[i].pc;
            sink += snd_unwind_table_find(&table, pc) != NULL;
            sink += snd_unwind_table_find(&table, pc - 1) != NULL;
        }
        sink += snd_unwind_table_find(&table, UINT64_MAX) != NULL;
    }
    snd_unwind_table_release(&table);
}

static void exercise_sections(const struct snd_image *image)
{
    static const char *const names[2] = { ".eh_frame", ".debug_frame" };

    for (int is_debug = 0; is_debug < 2; is_debug++) {
        const Elf64_Shdr *section = snd_image_section(image, names[is_debug]);
        uint64_t          size = 0;
        void             *bytes = section ? snd_image_bytes(image, section, &size) : NULL;
        if (bytes)
            exercise_frames(bytes, (size_t)size, section->sh_addr, is_debug);
        free(bytes);
    }
}

/* Functions without symbols: each is found at its start, or another that begins later. */
static void exercise_blocks(const struct snd_image *image)
{
    struct snd_code_blocks blocks = { 0 };
    uint64_t               start;

    if (snd_code_blocks_read(&blocks, image)) {
        for (uint32_t i = 0; i < blocks.count; i += 1 + blocks.count / 1000)
            if (!snd_code_blocks_find(&blocks, blocks.starts[i], &start) ||
                start > blocks.starts[i])
                abort();
        sink += snd_code_blocks_find(&blocks, UINT64_MAX, &start);
    }
    snd_code_blocks_release(&blocks);
}

static void exercise_elf(const uint8_t *data, size_t size)
{
    struct snd_image  image;
    struct snd_symtab symtab = { 0 };
    char              build_id[SND_BUILD_ID_TEXT];
    uint32_t          crc = 0;

    if (!snd_image_open_memory(data, size, &image))
        return;
    snd_image_build_id(&image, build_id);
    char *link = snd_image_debug_link(&image, &crc);
    sink += strlen(build_id) + (link ? strlen(link) : 0) + snd_image_has_dwarf(&image);
    free(link);
    if (snd_symtab_add(&symtab, &image) && snd_symtab_add_plt(&symtab, &image) &&
        snd_symtab_sort(&symtab))
        look_at(&symtab);
    exercise_sections(&image);
    exercise_blocks(&image);
    snd_symtab_release(&symtab);
    snd_image_release(&image);
}

static void exercise_listing(bool (*parse)(struct snd_symtab *, const char *, size_t),
                             const uint8_t *data, size_t size)
{
    struct snd_symtab symtab = { 0 };

    if (parse(&symtab, (const char *)data, size))
        look_at(&symtab);
    snd_symtab_release(&symtab);
}

/* A name a line. */
static void exercise_names(const uint8_t *data, size_t size)
{
    struct sonde_buffer text = { 0 };

    for (size_t at = 0, end; at < size; at = end + 1) {
        const uint8_t *stop = memchr(data + at, '\n', size - at);
        end = stop ? (size_t)(stop - data) : size;
        char *name = calloc(1,
                            end - at + 1); /* strndup() may look beyond what it copies, says ASan */
        if (name)
            memcpy(name, data + at, end - at);
        if (name && snd_rust_demangle(name, &text))
            sink += text.length;
        free(name);
    }
    sonde_buffer_release(&text);
}

/* A program that is to be run with a library before it: its headers, as far as they were read. */
static void exercise_program(const uint8_t *data, size_t size)
{
    struct sonde_error err = { 0 };

    if (snd_preloadable_elf(data, size < 8192 ? size : 8192, "program", &err) != SONDE_OK)
        sink += strlen(err.message);
}

void exercise_symbols(const uint8_t *data, size_t size)
{
    exercise_program(data, size);
    exercise_elf(data, size);
    exercise_frames(data, size, 0x1000, false); /* as a section by itself */
    exercise_listing(snd_perfmap_parse, data, size);
    exercise_listing(snd_kallsyms_parse, data, size);
    exercise_names(data, size);
}
