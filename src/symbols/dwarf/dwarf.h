/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/dwarf/dwarf.h - functions, inlined ones among them, and lines at addresses of a file with DWARF.
 *
 * libdw reads it, in a process of its own: DWARF that makes it crash or run for ever costs
 * the lines of that file and nothing else.
 *
 * Layer: symbols (sees base/).
 */
#ifndef SND_SYMBOLS_DWARF_DWARF_H
#define SND_SYMBOLS_DWARF_DWARF_H

#include <stdbool.h>
#include <stdint.h>

struct snd_dwarf_frame {
    const char *function; /* mangled; "" unknown */
    const char *file;     /* of the source; "" unknown */
    uint32_t    line, first_line;
    bool        is_bare; /* the name is the source's: without namespace, class or arguments */
};

/* The frames at addresses[index], innermost first, borrowed for the call. False ends it: no memory. */
typedef bool snd_dwarf_fn(void *user, uint32_t index, const struct snd_dwarf_frame *frames,
                          uint32_t count);

enum snd_dwarf_result {
    SND_DWARF_OK,
    SND_DWARF_ABSENT, /* libdw is not installed */
    SND_DWARF_FAILED, /* it crashed or took too long at some addresses: those have no frames */
    SND_DWARF_NOMEM,  /* or no process could be made */
};

/* Calls `found` for each address inside a function; in any order. */
enum snd_dwarf_result snd_dwarf_find(int fd, const uint64_t *addresses, uint32_t count,
                                     snd_dwarf_fn *found, void *user);

#endif
