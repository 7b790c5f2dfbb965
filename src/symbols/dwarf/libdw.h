/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/dwarf/libdw.h - what is used of elfutils' libdw, which is opened when needed: sonde is
 * installed on machines without it. Its interface is declared here, so that none of its headers
 * is needed to build; it is stable since 0.171 (2018).
 *
 * Layer: symbols. Threads: as libdw: one at a time.
 */
#ifndef SND_SYMBOLS_DWARF_LIBDW_H
#define SND_SYMBOLS_DWARF_LIBDW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dw;       /* Dwarf */
struct dw_unit;  /* Dwarf_CU */
struct dw_line;  /* Dwarf_Line */
struct dw_files; /* Dwarf_Files */

struct dw_die {
    void           *address; /* NULL: none */
    struct dw_unit *unit;
    void           *abbreviation;
    long            padding;
};

struct dw_attribute {
    unsigned        code, form;
    unsigned char  *value;
    struct dw_unit *unit;
};

enum {
    DW_TAG_INLINED = 0x1d,
    DW_TAG_FUNCTION = 0x2e,
    DW_AT_CALL_FILE = 0x58,
    DW_AT_CALL_LINE = 0x59,
    DW_AT_LINKAGE_NAME = 0x6e,
    DW_AT_LINKAGE_NAME_OLD = 0x2007,
    DW_UNIT_SKELETON = 0x04,
};

#define SND_LIBDW(X)                                                                             \
    X(struct dw *, dwarf_begin, (int, int))                                                      \
    X(int, dwarf_end, (struct dw *))                                                             \
    X(int, dwarf_get_units,                                                                      \
      (struct dw *, struct dw_unit *, struct dw_unit **, uint16_t *, uint8_t *, struct dw_die *, \
       struct dw_die *))                                                                         \
    X(ptrdiff_t, dwarf_ranges, (struct dw_die *, ptrdiff_t, uint64_t *, uint64_t *, uint64_t *)) \
    X(int, dwarf_child, (struct dw_die *, struct dw_die *))                                      \
    X(int, dwarf_siblingof, (struct dw_die *, struct dw_die *))                                  \
    X(int, dwarf_tag, (struct dw_die *))                                                         \
    X(const char *, dwarf_diename, (struct dw_die *))                                            \
    X(struct dw_attribute *, dwarf_attr, (struct dw_die *, unsigned, struct dw_attribute *))     \
    X(struct dw_attribute *, dwarf_attr_integrate,                                               \
      (struct dw_die *, unsigned, struct dw_attribute *))                                        \
    X(const char *, dwarf_formstring, (struct dw_attribute *))                                   \
    X(int, dwarf_formudata, (struct dw_attribute *, uint64_t *))                                 \
    X(int, dwarf_decl_line, (struct dw_die *, int *))                                            \
    X(int, dwarf_getsrcfiles, (struct dw_die *, struct dw_files **, size_t *))                   \
    X(const char *, dwarf_filesrc, (struct dw_files *, size_t, uint64_t *, uint64_t *))          \
    X(struct dw_line *, dwarf_getsrc_die, (struct dw_die *, uint64_t))                           \
    X(int, dwarf_lineno, (struct dw_line *, int *))                                              \
    X(const char *, dwarf_linesrc, (struct dw_line *, uint64_t *, uint64_t *))

struct snd_libdw {
#define X(result, name, arguments) result(*name) arguments;
    SND_LIBDW(X)
#undef X
};

/* False: it is not installed, or too old. It stays open: others in the process may use it. */
bool snd_libdw_open(struct snd_libdw *dw);

#endif
