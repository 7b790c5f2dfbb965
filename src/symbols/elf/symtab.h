/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/elf/symtab.h - the functions of an ELF file by address, from its symbol tables.
 *
 * .symtab and .dynsym, of the file and of its debug file, and names for the entries of procedure
 * linkage tables ("malloc@plt"). An address is within a function or within none: what lies between
 * the known functions of a stripped file belongs to functions that have no symbol.
 *
 * Of several symbols at one address one is shown: a global one before a weak before a local one,
 * then the one with fewer underscores before it, then the shorter, then the first by the alphabet.
 *
 * Layer: symbols (sees base/).
 */
#ifndef SND_SYMBOLS_ELF_SYMTAB_H
#define SND_SYMBOLS_ELF_SYMTAB_H

#include "base/data/arena.h"
#include "base/files/elf_image.h"
#include "symbols/elf/segments.h"

struct snd_symtab_entry {
    const char *name;    /* as in the file: mangled; with "@plt" for a linkage table's */
    uint64_t start, end; /* end: first address after it; not sized: where it ends at the latest */
    bool     is_sized;   /* no: it goes to the next symbol */
    uint8_t  preference; /* of several at one address the greatest is shown */
};

/* All zero: empty. */
struct snd_symtab {
    struct snd_symtab_entry *entries;
    uint32_t                 count, room;
    struct snd_segments      segments;
    char                   **texts; /* string tables that names point into */
    uint32_t                 text_count, text_room;
    struct snd_arena         arena; /* names that are in no file */
};

/* Adds the symbols of an image. False when memory is out. */
bool snd_symtab_add(struct snd_symtab *symtab, const struct snd_image *image);
/* Adds the entries of linkage tables, which the file itself has and its debug file has not. */
bool snd_symtab_add_plt(struct snd_symtab *symtab, const struct snd_image *image);
/* One symbol; the name is kept. */
bool snd_symtab_put(struct snd_symtab *symtab, struct snd_symtab_entry entry);

/* Puts them in order; then they can be found. False when memory is out. */
bool snd_symtab_sort(struct snd_symtab *symtab);
/* The same where of overlapping ones the latest put is right: code that was made at run time. */
bool snd_symtab_sort_latest(struct snd_symtab *symtab);
/* The function that holds the address, or NULL. */
const struct snd_symtab_entry *snd_symtab_find(const struct snd_symtab *symtab, uint64_t address);
void                           snd_symtab_release(struct snd_symtab *symtab);

#endif
