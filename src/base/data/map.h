/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/data/map.h - a hash table from three words to a number, and a table of texts on top of it.
 *
 * Hashes are seeded anew in each process, so that a hostile trace cannot choose its keys
 * to collide. Order of insertion, not of hash, is all that ever shows.
 *
 * Layer: base. Threads: one at a time uses a map.
 */
#ifndef SND_BASE_DATA_MAP_H
#define SND_BASE_DATA_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/data/arena.h"

struct snd_key {
    uint64_t a, b, c;
};

struct snd_map_slot {
    struct snd_key key;
    uint32_t       value; /* plus one; 0: free */
};

struct snd_map {
    struct snd_map_slot *slots;
    size_t               capacity, count; /* capacity: a power of two */
    uint64_t             seed;
};

/* All zero is an empty map. */
void snd_map_release(struct snd_map *map);

/* False when memory is out, or `value` is UINT32_MAX. Replaces the value of an equal key. */
bool snd_map_put(struct snd_map *map, struct snd_key key, uint32_t value);
bool snd_map_get(const struct snd_map *map, struct snd_key key, uint32_t *value);
/* True when the key was there. `take` has its value as well. */
bool snd_map_remove(struct snd_map *map, struct snd_key key);
bool snd_map_take(struct snd_map *map, struct snd_key key, uint32_t *value);
/* Goes through the keys, in no order that may show; *at is 0 at first. False after the last. */
bool snd_map_next(const struct snd_map *map, size_t *at, struct snd_key *key);

/* ------------------------------------------------------------------- texts */

struct snd_text {
    const char *bytes; /* with a NUL after them */
    size_t      length;
};

struct snd_text_slot {
    uint32_t hash;
    uint32_t number; /* plus one; 0: free */
};

/* Each different text once, numbered from 0 in order of arrival. All zero: an empty table. */
struct snd_texts {
    struct snd_text_slot *slots;
    size_t                slot_count; /* a power of two */
    uint64_t              seed;
    struct snd_arena      arena;
    struct snd_text      *items;
    uint32_t              count, capacity;
};

/* False when memory is out. */
bool snd_texts_add(struct snd_texts *texts, const char *bytes, size_t length, uint32_t *id);
void snd_texts_release(struct snd_texts *texts);

/*
 * Makes room for one more item of `item` bytes in an array; false when memory is out.
 * New items are not cleared.
 */
bool snd_grow(void *array_of_any, uint32_t *capacity, uint32_t count, size_t item);

#endif
