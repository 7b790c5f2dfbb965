/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/listings.h - symbols that are lists of text: perf maps, which programs that compile at
 * run time write (/tmp/perf-PID.map), and the kernel's own (/proc/kallsyms).
 *
 * Layer: symbols (sees base/).
 */
#ifndef SND_SYMBOLS_LISTINGS_H
#define SND_SYMBOLS_LISTINGS_H

#include "symbols/elf/symtab.h"

/* Lines "START SIZE NAME", hexadecimal; others are left out. False when memory is out. */
bool snd_perfmap_parse(struct snd_symtab *symtab, const char *text, size_t size);
/* Lines "ADDRESS TYPE NAME [MODULE]"; addresses that the kernel hides (0) are left out. */
bool snd_kallsyms_parse(struct snd_symtab *symtab, const char *text, size_t size);

/* The same of a file: not there, or not a file, is no symbols. False when memory is out. */
bool snd_listing_read(struct snd_symtab *symtab, const char *path,
                      bool (*parse)(struct snd_symtab *, const char *, size_t));

#endif
