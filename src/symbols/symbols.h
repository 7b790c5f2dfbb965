/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/symbols.h - from addresses of files to functions and source lines.
 *
 *     struct snd_symbols *symbols = snd_symbols_new();
 *     snd_symbols_find(symbols, queries, count, &err);     all at once: files are read one by one
 *     queries[i].entries[0 .. queries[i].count - 1]        innermost first
 *     snd_symbols_free(symbols);
 *
 * An address is the ELF file's own (virtual address, as its symbol tables have it), and that of an
 * instruction: of a frame that called another, the return address minus one.
 *
 * Where a file's names come from, the first that has any: DWARF of the file or of its debug file
 * (found by build id, or by debug link), with lines and inlined functions; .symtab and .dynsym of both;
 * linkage tables; of a function that has no symbol, the place where it begins (.eh_frame): "file+0x1c0".
 * "[vdso]" is read from this process's memory, "[kernel]" from /proc/kallsyms, "perf-PID.map" is a
 * perf map. An address that lies in no known function has no entries.
 *
 * Every byte of such files is untrusted. A file whose build id is not the one asked for is not used.
 *
 * Layer: symbols (sees base/, pystack/unwind/cfi.h). Threads: one at a time.
 */
#ifndef SND_SYMBOLS_SYMBOLS_H
#define SND_SYMBOLS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct snd_symbols; /* opaque */

struct snd_symbol_function {
    const char *function;         /* demangled */
    const char *file;             /* of the source; "" unknown */
    uint32_t    line, first_line; /* 0 unknown */
};

struct snd_symbol_query {
    /* asked */
    const char *file;     /* as the process had it mapped */
    const char *opened;   /* a name by which it can be opened here and now; NULL: `file` */
    const char *build_id; /* in hexadecimal; NULL or "": unknown */
    uint64_t    address;
    /* found: stays until snd_symbols_free */
    const struct snd_symbol_function *entries;
    uint32_t                          count;
};

/* What went wrong on the way, of all calls. */
struct snd_symbol_stats {
    uint64_t addresses, unnamed;
    uint32_t files;
    uint32_t unreadable;    /* files that could not be opened, or are not ELF files */
    uint32_t changed;       /* files that are not those that were mapped: another build id */
    uint32_t failed;        /* files whose DWARF could not be read to the end */
    uint32_t without_libdw; /* files that have DWARF, and libdw is not installed */
};

/* Owns: the caller frees it with snd_symbols_free(). NULL when memory is out. */
struct snd_symbols *snd_symbols_new(void);
void                snd_symbols_free(struct snd_symbols *symbols);

/* Errors: SONDE_E_NOMEM; the queries that were answered before stay answered. */
SND_CHECKED enum sonde_status snd_symbols_find(struct snd_symbols      *symbols,
                                               struct snd_symbol_query *queries, size_t count,
                                               struct sonde_error *err);

const struct snd_symbol_stats *snd_symbols_stats(const struct snd_symbols *symbols);

#endif
