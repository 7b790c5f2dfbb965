/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/elf/symtab.c - see symtab.h */
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "symbols/elf/symtab.h"

enum { PREFER_LOCAL, PREFER_WEAK, PREFER_GLOBAL };

static bool keep_text(struct snd_symtab *symtab, char *text)
{
    if (!snd_grow(&symtab->texts, &symtab->text_room, symtab->text_count, sizeof *symtab->texts))
        return false;
    symtab->texts[symtab->text_count++] = text;
    return true;
}

bool snd_symtab_put(struct snd_symtab *symtab, struct snd_symtab_entry entry)
{
    if (symtab->count == SND_NO_ITEM - 1)
        return true;
    if (!snd_grow(&symtab->entries, &symtab->room, symtab->count, sizeof *symtab->entries))
        return false;
    symtab->entries[symtab->count++] = entry;
    return true;
}

/* The end of the section that holds an address of code; 0: none does. */
static uint64_t code_end(const struct snd_image *image, uint32_t index, uint64_t address)
{
    if (index >= image->section_count)
        return 0;
    const Elf64_Shdr *section = &image->sections[index];
    if ((section->sh_flags & SHF_EXECINSTR) == 0 || address < section->sh_addr ||
        address - section->sh_addr >= section->sh_size ||
        section->sh_size > UINT64_MAX - section->sh_addr)
        return 0;
    return section->sh_addr + section->sh_size;
}

static uint8_t preference_of(const Elf64_Sym *symbol)
{
    switch (ELF64_ST_BIND(symbol->st_info)) {
    case STB_LOCAL:
        return PREFER_LOCAL;
    case STB_WEAK:
        return PREFER_WEAK;
    default:
        return PREFER_GLOBAL;
    }
}

/* A function, or a label of code written in assembler: the latter without a size of its own. */
static bool take_symbol(struct snd_symtab *symtab, const struct snd_image *image,
                        const Elf64_Sym *symbol, const char *name)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    bool     is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
    uint64_t end = code_end(image, symbol->st_shndx, symbol->st_value);

    if (name[0] == '\0' || end == 0 || (!is_function && type != STT_NOTYPE) ||
        (type == STT_NOTYPE && name[0] == '$')) /* arm: "here code begins" */
        return true;
    struct snd_symtab_entry entry = { name, symbol->st_value, end, symbol->st_size > 0,
                                      preference_of(symbol) };
    if (entry.is_sized && symbol->st_size < end - symbol->st_value)
        entry.end = symbol->st_value + symbol->st_size;
    return snd_symtab_put(symtab, entry);
}

static bool add_table(struct snd_symtab *symtab, const struct snd_image *image,
                      const Elf64_Shdr *table)
{
    uint64_t size, text_size;

    if (table->sh_link >= image->section_count)
        return true;
    char      *text = snd_image_bytes(image, &image->sections[table->sh_link], &text_size);
    Elf64_Sym *list = text ? snd_image_bytes(image, table, &size) : NULL;
    if (!list) {
        free(text);
        return true;
    }
    bool ok = keep_text(symtab, text);
    if (!ok)
        free(text);
    for (uint64_t i = 0; ok && i < size / sizeof *list; i++)
        if (list[i].st_shndx != SHN_UNDEF && list[i].st_name < text_size)
            ok = take_symbol(symtab, image, &list[i], text + list[i].st_name);
    free(list);
    return ok;
}

bool snd_symtab_add(struct snd_symtab *symtab, const struct snd_image *image)
{
    for (uint32_t i = 0; i < image->section_count; i++)
        if ((image->sections[i].sh_type == SHT_SYMTAB ||
             image->sections[i].sh_type == SHT_DYNSYM) &&
            !add_table(symtab, image, &image->sections[i]))
            return false;
    return true;
}

/* -------------------------------------------------------------------- order */

/* Names are compared up to here: a hostile table has one of a gigabyte, for a million symbols. */
#define COMPARED 4096u

static size_t underscores(const char *name)
{
    size_t count = 0;

    while (count < COMPARED && name[count] == '_')
        count++;
    return count;
}

/* By address; of one address the one that is shown is last. */
static int compare_entries(const void *a, const void *b)
{
    const struct snd_symtab_entry *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->is_sized != y->is_sized)
        return y->is_sized ? -1 : 1;
    if (x->preference != y->preference)
        return x->preference < y->preference ? -1 : 1;
    size_t low = underscores(x->name), high = underscores(y->name);
    if (low != high)
        return low > high ? -1 : 1;
    low = strnlen(x->name, COMPARED);
    high = strnlen(y->name, COMPARED);
    if (low != high)
        return low > high ? -1 : 1;
    int order = strncmp(y->name, x->name, COMPARED);
    if (order != 0 || x->end == y->end)
        return order;
    return x->end < y->end ? -1 : 1;
}

/* A symbol without a size goes to the next symbol, and never over one that has a size. */
static void end_unsized(struct snd_symtab *symtab)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = symtab->count; i-- > 0;) {
        struct snd_symtab_entry *entry = &symtab->entries[i];
        if (!entry->is_sized && entry->end > next)
            entry->end = next;
        if (i == 0 || symtab->entries[i - 1].start != entry->start)
            next = entry->start;
    }
}

static bool build(struct snd_symtab *symtab)
{
    struct snd_span *spans = malloc(((size_t)symtab->count + 1) * sizeof *spans);

    if (!spans)
        return false;
    for (uint32_t i = 0; i < symtab->count; i++) {
        const struct snd_symtab_entry *entry = &symtab->entries[i];
        uint64_t                       sized = (uint64_t)entry->is_sized << 32;
        spans[i] = (struct snd_span){ entry->start, entry->end, sized | i, i };
    }
    bool ok = snd_segments_build(&symtab->segments, spans, symtab->count);
    free(spans);
    return ok;
}

bool snd_symtab_sort(struct snd_symtab *symtab)
{
    if (symtab->count > 0)
        qsort(symtab->entries, symtab->count, sizeof *symtab->entries, compare_entries);
    end_unsized(symtab);
    return build(symtab);
}

bool snd_symtab_sort_latest(struct snd_symtab *symtab)
{
    return build(symtab);
}

const struct snd_symtab_entry *snd_symtab_find(const struct snd_symtab *symtab, uint64_t address)
{
    uint32_t item = snd_segments_find(&symtab->segments, address);

    return item < symtab->count ? &symtab->entries[item] : NULL;
}

void snd_symtab_release(struct snd_symtab *symtab)
{
    snd_segments_release(&symtab->segments);
    for (uint32_t i = 0; i < symtab->text_count; i++)
        free(symtab->texts[i]);
    free(symtab->texts);
    free(symtab->entries);
    snd_arena_release(&symtab->arena);
    *symtab = (struct snd_symtab){ 0 };
}
