/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/dwarf/dwarf_walk.h - the part of dwarf.h that runs in the process of its own.
 *
 * Layer: symbols (sees base/).
 */
#ifndef SND_SYMBOLS_DWARF_DWARF_WALK_H
#define SND_SYMBOLS_DWARF_DWARF_WALK_H

#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/libdw.h"

#define SND_DWARF_FRAMES_MOST 256u /* at one address: deeper inlining is cut at the outer end */

/* A requested address. */
struct snd_dwarf_query {
    uint64_t address;
    uint32_t index; /* for `found` */
    uint32_t unit;  /* for the walk's own use */
};

/*
 * Puts the queries in the order in which they are answered, then answers those from `first` on.
 * `began` is called before each, with its place in that order. False when memory is out.
 */
bool snd_dwarf_walk(const struct snd_libdw *dw, int fd, struct snd_dwarf_query *queries,
                    uint32_t count, uint32_t first, void (*began)(void *, uint32_t),
                    snd_dwarf_fn *found, void *user);

#endif
