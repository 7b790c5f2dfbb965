/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/data/arena.h - memory that is freed all at once.
 *
 * What is taken stays where it is until the arena is released; nothing is freed singly.
 *
 * Layer: base. Threads: one at a time uses an arena.
 */
#ifndef SND_BASE_DATA_ARENA_H
#define SND_BASE_DATA_ARENA_H

#include <stddef.h>

struct snd_arena_block;

struct snd_arena {
    struct snd_arena_block *blocks; /* newest first */
    char                   *at, *end;
};

#define SND_ARENA_INIT   \
    {                    \
        NULL, NULL, NULL \
    }

/* `size` bytes, 8-byte aligned, not cleared; NULL when memory is out. */
void *snd_arena_take(struct snd_arena *arena, size_t size);
/* A copy of `size` bytes with a NUL after them. */
char *snd_arena_copy(struct snd_arena *arena, const void *data, size_t size);
/* Frees everything; the arena is empty and may be used again. */
void snd_arena_release(struct snd_arena *arena);

#endif
