/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/elf/code_blocks.h - where the functions of a stripped file begin and end.
 *
 * They have no names, but .eh_frame has an entry for each, since exceptions and debuggers need it. A part
 * that the compiler moved away (".cold") has an entry of its own.
 *
 * Layer: symbols (sees base/, pystack/unwind/cfi.h).
 */
#ifndef SND_SYMBOLS_ELF_CODE_BLOCKS_H
#define SND_SYMBOLS_ELF_CODE_BLOCKS_H

#include "base/files/elf_image.h"
#include "symbols/elf/segments.h"

/* All zero: empty. */
struct snd_code_blocks {
    struct snd_segments segments;
    struct snd_span    *spans;
    uint64_t           *starts; /* by item of the segments */
    uint32_t            count, room;
};

/* Reads an image's. False when memory is out. Release with snd_code_blocks_release in either case. */
bool snd_code_blocks_read(struct snd_code_blocks *blocks, const struct snd_image *image);
void snd_code_blocks_release(struct snd_code_blocks *blocks);

/* Where the function that holds the address begins. False: no entry holds it. */
bool snd_code_blocks_find(const struct snd_code_blocks *blocks, uint64_t address, uint64_t *start);

#endif
