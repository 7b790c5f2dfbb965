/* SPDX-License-Identifier: Apache-2.0 */
#include "base/data/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)

struct snd_arena_block {
    struct snd_arena_block *next;
    size_t                  size; /* after this head */
};

static bool add_block(struct snd_arena *arena, size_t need)
{
    size_t size = arena->blocks ? arena->blocks->size * 2 : FIRST_BLOCK;

    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;
    if (size < need)
        size = need;
    struct snd_arena_block *block = malloc(sizeof *block + size);
    if (!block)
        return false;
    block->next = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->at = (char *)(block + 1);
    arena->end = arena->at + size;
    return true;
}

void *snd_arena_take(struct snd_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + 7) & ~(size_t)7;
    if ((size_t)(arena->end - arena->at) < size && !add_block(arena, size))
        return NULL;
    void *taken = arena->at;
    arena->at += size;
    return taken;
}

char *snd_arena_copy(struct snd_arena *arena, const void *data, size_t size)
{
    char *copy = snd_arena_take(arena, size + 1);

    if (!copy)
        return NULL;
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

void snd_arena_release(struct snd_arena *arena)
{
    while (arena->blocks) {
        struct snd_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->at = arena->end = NULL;
}
