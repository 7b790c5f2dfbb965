/* SPDX-License-Identifier: Apache-2.0 */
#include "export/encode/rendered_texts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/hash.h"

#define PLACES 2048u
#define LENGTH_MOST 4096u /* a longer text is rendered each time: 8 MiB in all, at the most */

struct snd_rendered_item {
    struct snd_rendered_key key;
    struct sonde_text       text;
    char                   *bytes; /* NULL: an empty place */
    size_t                  capacity;
    uint32_t                number;
};

void snd_rendered_release(struct snd_rendered *cache)
{
    for (size_t i = 0; cache->items && i < PLACES; i++)
        free(cache->items[i].bytes);
    free(cache->items);
    cache->items = NULL;
}

static size_t place_of(const struct snd_rendered_key *key)
{
    uint64_t hash =
        snd_hash_mix(key->parts[0] ^ 0x9e3779b97f4a7c15u, key->parts[1] ^ 0xa0761d6478bd642fu) ^
        snd_hash_mix(key->parts[2] ^ 0xe7037ed1a0b428dbu, key->parts[3] ^ 0x8ebc6af09c88c6e3u);

    return (size_t)(hash % PLACES);
}

const struct sonde_text *snd_rendered_find(const struct snd_rendered     *cache,
                                           const struct snd_rendered_key *key)
{
    if (!cache->items)
        return NULL;
    const struct snd_rendered_item *item = &cache->items[place_of(key)];
    if (!item->bytes || memcmp(&item->key, key, sizeof *key) != 0)
        return NULL;
    return &item->text;
}

uint32_t snd_rendered_number(const struct sonde_text *found)
{
    const struct snd_rendered_item *item =
        (const void *)((const char *)found - offsetof(struct snd_rendered_item, text));

    return item->number < UINT32_MAX ? item->number : 0;
}

void snd_rendered_keep(struct snd_rendered *cache, const struct snd_rendered_key *key,
                       const char *bytes, size_t length)
{
    if (!cache->items)
        cache->items = calloc(PLACES, sizeof *cache->items);
    if (!cache->items || length > LENGTH_MOST)
        return;
    struct snd_rendered_item *item = &cache->items[place_of(key)];
    if (!item->bytes || length > item->capacity) {
        char *room = realloc(item->bytes, length + 1);
        if (!room)
            return;
        item->bytes = room;
        item->capacity = length;
    }
    memcpy(item->bytes, bytes, length);
    item->key = *key;
    item->text = (struct sonde_text){ item->bytes, length };
    cache->kept += cache->kept < UINT32_MAX;
    item->number = cache->kept;
}

void snd_rendered_keep_out(struct snd_rendered *cache, const struct snd_rendered_key *key,
                           const struct snd_out *out, struct snd_out_mark mark)
{
    size_t length = snd_out_since(out, mark);

    if (length > 0)
        snd_rendered_keep(cache, key, mark.at, length);
}

bool snd_rendered_members(struct snd_rendered *cache, const struct snd_rendered_key *key,
                          struct snd_json *json)
{
    const struct sonde_text *text = snd_rendered_find(cache, key);

    if (!text)
        return false;
    /* They begin with the comma that follows the member before, which the next time adds. */
    bool comma = text->bytes[0] == ',';
    snd_json_raw(json, NULL, text->bytes + comma, text->length - comma);
    return true;
}
