/* SPDX-License-Identifier: Apache-2.0 */
#include "base/data/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/asan.h"

#define FIRST_CAPACITY ((size_t)64)
#define FIRST_ITEMS 16u
#define EXACT_MAX 128u /* where AddressSanitizer watches: a larger array may have room to spare */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xe9846af9b1a615dull;
    x ^= x >> 32;
    x *= 0xe9846af9b1a615dull;
    return x ^ x >> 28;
}

static uint64_t hash_key(const struct snd_map *map, struct snd_key key)
{
    return mix(mix(mix(key.a ^ map->seed) + key.b) + key.c);
}

static bool equal(struct snd_key x, struct snd_key y)
{
    return x.a == y.a && x.b == y.b && x.c == y.c;
}

/* The slot of `key`, or the free one where it belongs. */
static size_t find_slot(const struct snd_map *map, struct snd_key key)
{
    size_t mask = map->capacity - 1;
    size_t i = (size_t)hash_key(map, key) & mask;

    while (map->slots[i].value != 0 && !equal(map->slots[i].key, key))
        i = (i + 1) & mask;
    return i;
}

static bool resize(struct snd_map *map, size_t capacity)
{
    struct snd_map larger = { .capacity = capacity, .count = map->count, .seed = map->seed };

    larger.slots = calloc(capacity, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].value != 0)
            larger.slots[find_slot(&larger, map->slots[i].key)] = map->slots[i];
    free(map->slots);
    *map = larger;
    return true;
}

static void draw_seed(uint64_t *seed)
{
    if (*seed != 0)
        return;
    /* Where the kernel has no randomness to give, the address of the map is some. */
    if (getrandom(seed, sizeof *seed, GRND_NONBLOCK) != (ssize_t)sizeof *seed)
        *seed = mix((uint64_t)(uintptr_t)seed);
    *seed |= 1;
}

bool snd_map_put(struct snd_map *map, struct snd_key key, uint32_t value)
{
    if (value == UINT32_MAX)
        return false;
    draw_seed(&map->seed);
    if (map->count + map->count / 2 >= map->capacity &&
        !resize(map, map->capacity ? map->capacity * 2 : FIRST_CAPACITY))
        return false;
    struct snd_map_slot *slot = &map->slots[find_slot(map, key)];
    if (slot->value == 0)
        map->count++;
    slot->key = key;
    slot->value = value + 1;
    return true;
}

bool snd_map_get(const struct snd_map *map, struct snd_key key, uint32_t *value)
{
    if (map->capacity == 0)
        return false;
    const struct snd_map_slot *slot = &map->slots[find_slot(map, key)];
    if (slot->value == 0)
        return false;
    *value = slot->value - 1;
    return true;
}

bool snd_map_remove(struct snd_map *map, struct snd_key key)
{
    uint32_t value;

    return snd_map_take(map, key, &value);
}

bool snd_map_take(struct snd_map *map, struct snd_key key, uint32_t *value)
{
    size_t mask = map->capacity - 1;

    if (map->capacity == 0)
        return false;
    size_t hole = find_slot(map, key);
    if (map->slots[hole].value == 0)
        return false;
    *value = map->slots[hole].value - 1;
    /* Move back what would no longer be found past the hole: no tombstones pile up. */
    for (size_t i = (hole + 1) & mask; map->slots[i].value != 0; i = (i + 1) & mask) {
        size_t home = (size_t)hash_key(map, map->slots[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].value = 0;
    map->count--;
    return true;
}

void snd_map_release(struct snd_map *map)
{
    free(map->slots);
    *map = (struct snd_map){ 0 };
}

bool snd_map_next(const struct snd_map *map, size_t *at, struct snd_key *key)
{
    while (*at < map->capacity) {
        const struct snd_map_slot *slot = &map->slots[(*at)++];
        if (slot->value != 0) {
            *key = slot->key;
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------- texts */

static uint64_t hash_text(uint64_t seed, const char *bytes, size_t length)
{
    uint64_t hash = seed;

    for (; length >= 8; length -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = mix(hash ^ word);
    }
    uint64_t last = 0;
    if (length > 0)
        memcpy(&last, bytes, length);
    return mix(hash ^ last ^ (uint64_t)length << 56);
}

bool snd_grow(void *array_of_any, uint32_t *capacity, uint32_t count, size_t item)
{
    void *array;

    if (count < *capacity)
        return true;
    if (*capacity > UINT32_MAX / 2)
        return false;
    uint32_t larger = *capacity ? *capacity * 2 : FIRST_ITEMS;
    if (SND_HAS_ASAN && count < EXACT_MAX)
        larger = count + 1; /* what is past the last item is past the array: it sees that */
    memcpy(&array, array_of_any, sizeof array);
    void *grown = realloc(array, larger * item);
    if (!grown)
        return false;
    memcpy(array_of_any, &grown, sizeof grown);
    *capacity = larger;
    return true;
}

/* The slot of a text, or the free one where it belongs. */
static struct snd_text_slot *find_text(const struct snd_texts *texts, uint32_t hash,
                                       const char *bytes, size_t length)
{
    size_t mask = texts->slot_count - 1;

    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct snd_text_slot *slot = &texts->slots[i];
        if (slot->number == 0)
            return slot;
        const struct snd_text *text = &texts->items[slot->number - 1];
        if (slot->hash == hash && text->length == length && memcmp(text->bytes, bytes, length) == 0)
            return slot;
    }
}

/* Room in the index for one more: at most two thirds are taken. */
static bool grow_index(struct snd_texts *texts)
{
    size_t count = texts->slot_count ? texts->slot_count * 2 : FIRST_CAPACITY;

    if (texts->count + (size_t)texts->count / 2 < texts->slot_count)
        return true;
    struct snd_text_slot *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < texts->slot_count; i++) {
        size_t at = texts->slots[i].hash & (count - 1);
        if (texts->slots[i].number == 0)
            continue;
        while (slots[at].number != 0)
            at = (at + 1) & (count - 1);
        slots[at] = texts->slots[i];
    }
    free(texts->slots);
    texts->slots = slots;
    texts->slot_count = count;
    return true;
}

bool snd_texts_add(struct snd_texts *texts, const char *bytes, size_t length, uint32_t *id)
{
    draw_seed(&texts->seed);
    if (!grow_index(texts))
        return false;
    uint32_t              hash = (uint32_t)hash_text(texts->seed, bytes, length);
    struct snd_text_slot *slot = find_text(texts, hash, bytes, length);
    if (slot->number != 0) {
        *id = slot->number - 1;
        return true;
    }
    if (texts->count == UINT32_MAX - 1 ||
        !snd_grow(&texts->items, &texts->capacity, texts->count, sizeof *texts->items))
        return false;
    char *copy = snd_arena_copy(&texts->arena, bytes, length);
    if (!copy)
        return false;
    *id = texts->count++;
    texts->items[*id] = (struct snd_text){ copy, length };
    *slot = (struct snd_text_slot){ hash, texts->count };
    return true;
}

void snd_texts_release(struct snd_texts *texts)
{
    free(texts->slots);
    snd_arena_release(&texts->arena);
    free(texts->items);
    *texts = (struct snd_texts){ 0 };
}
