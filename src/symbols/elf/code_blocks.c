/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/elf/code_blocks.c - see code_blocks.h */
#include <stdlib.h>

#include "base/data/map.h"
#include "pystack/unwind/cfi.h"
#include "symbols/elf/code_blocks.h"

struct reading {
    struct snd_code_blocks *blocks;
    bool                    failed; /* memory is out */
};

/* Of overlapping ones, which only a damaged file has, the one that begins last. */
static void take_block(void *user, uint64_t start, uint64_t end)
{
    struct reading         *reading = user;
    struct snd_code_blocks *b = reading->blocks;

    if (reading->failed || end <= start || b->count == SND_NO_ITEM - 1)
        return;
    reading->failed = !snd_grow(&b->spans, &b->room, b->count, sizeof *b->spans);
    if (reading->failed)
        return;
    b->spans[b->count] = (struct snd_span){ start, end, start, b->count };
    b->count++;
}

/* Sorting moves the spans: their items stay. */
static bool build(struct snd_code_blocks *b)
{
    b->starts = malloc(((size_t)b->count + 1) * sizeof *b->starts);
    if (!b->starts)
        return false;
    for (uint32_t i = 0; i < b->count; i++)
        b->starts[i] = b->spans[i].start;
    return snd_segments_build(&b->segments, b->spans, b->count);
}

bool snd_code_blocks_read(struct snd_code_blocks *blocks, const struct snd_image *image)
{
    const Elf64_Shdr *section = snd_image_section(image, ".eh_frame");
    uint64_t          size = 0;
    uint8_t          *bytes = section ? snd_image_bytes(image, section, &size) : NULL;
    struct reading    reading = { blocks, false };

    if (bytes)
        snd_cfi_walk(&(struct snd_cfi_section){ bytes, (size_t)size, section->sh_addr, false },
                     &(struct snd_cfi_visitor){ .user = &reading, .begin = take_block });
    free(bytes);
    return !reading.failed && build(blocks);
}

void snd_code_blocks_release(struct snd_code_blocks *blocks)
{
    snd_segments_release(&blocks->segments);
    free(blocks->spans);
    free(blocks->starts);
    *blocks = (struct snd_code_blocks){ 0 };
}

bool snd_code_blocks_find(const struct snd_code_blocks *blocks, uint64_t address, uint64_t *start)
{
    uint32_t item = snd_segments_find(&blocks->segments, address);

    if (item >= blocks->count)
        return false;
    *start = blocks->starts[item];
    return true;
}
