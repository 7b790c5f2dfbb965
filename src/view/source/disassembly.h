/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/source/disassembly.h - the instructions between two addresses of a file, as binutils' objdump prints them.
 *
 * The path comes from a trace: it is used only if it is absolute, names a regular file, and that has the build
 * id which was recorded.
 *
 * Layer: view. Threads: one at a time uses an object.
 */
#ifndef SND_VIEW_SOURCE_DISASSEMBLY_H
#define SND_VIEW_SOURCE_DISASSEMBLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/buf.h"

struct snd_instruction {
    uint64_t address;
    uint32_t from, length; /* in the text */
};

struct snd_disassembly {
    struct sonde_buffer     text;
    struct snd_instruction *list; /* in order of address */
    uint32_t                count, room;
    const char             *missing; /* why there are none; NULL: there are. Static */
};

/* `to`: the address after the last. Must be released whatever it found. `build_id` "": not known. */
void snd_disassemble(struct snd_disassembly *d, const char *path, const char *build_id,
                     uint64_t from, uint64_t to);
void snd_disassembly_release(struct snd_disassembly *d);

/* The instruction at an address; NULL: none begins there. */
const struct snd_instruction *snd_disassembly_at(const struct snd_disassembly *d, uint64_t address);

#endif
