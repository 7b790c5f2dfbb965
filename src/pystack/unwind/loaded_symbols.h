/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/unwind/loaded_symbols.h - the symbols that a loaded file of this process exports, read where it is mapped.
 *
 * dlsym() and dladdr() wait for who loads a library, and that thread may wait for us. What is read here does
 * not change while the file is loaded.
 *
 * Layer: pystack. Threads: any. No memory, no lock, no system call.
 */
#ifndef SND_PYSTACK_UNWIND_LOADED_SYMBOLS_H
#define SND_PYSTACK_UNWIND_LOADED_SYMBOLS_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snd_loaded {
    uint64_t base;
    const ElfW(Sym) * symbols;
    const char     *names;
    const uint32_t *hash; /* DT_GNU_HASH */
};

/* False if it has no table of symbols with hashes as GNU writes them. */
bool snd_loaded_open(struct snd_loaded *loaded, const struct link_map *map);

/* The address of a symbol that is defined here, 0: none; *size, unless NULL: its bytes. */
uint64_t snd_loaded_find(const struct snd_loaded *loaded, const char *name, uint64_t *size);

/* Visits each function that is defined here. */
typedef void snd_loaded_visit(void *user, const char *name, uint64_t address, uint64_t size);
void snd_loaded_functions(const struct snd_loaded *loaded, snd_loaded_visit *visit, void *user);

#endif
