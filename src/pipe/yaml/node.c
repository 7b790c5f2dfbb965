/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/yaml/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipe/yaml/scalar.h"

void snd_document_release(struct snd_document *doc)
{
    snd_arena_release(&doc->arena);
    doc->root = NULL;
    doc->failed = false;
}

static struct snd_node *make(struct snd_document *doc, enum snd_node_kind kind)
{
    struct snd_node *node = snd_arena_take(&doc->arena, sizeof *node);

    if (!node) {
        doc->failed = true;
        return NULL;
    }
    *node = (struct snd_node){ .kind = kind, .weight = 1 };
    return node;
}

static struct snd_node *make_scalar(struct snd_document *doc, enum snd_node_kind kind,
                                    const char *bytes, size_t length)
{
    struct snd_node *node = make(doc, kind);

    if (!node)
        return NULL;
    node->text = snd_arena_copy(&doc->arena, bytes, length);
    node->length = length;
    if (!node->text) {
        doc->failed = true;
        return NULL;
    }
    return node;
}

struct snd_node *snd_node_plain(struct snd_document *doc, const char *bytes, size_t length)
{
    struct snd_node *node = make_scalar(doc, SND_NODE_TEXT, bytes, length);

    if (node)
        snd_scalar_resolve(node);
    return node;
}

struct snd_node *snd_node_null(struct snd_document *doc)
{
    return snd_node_plain(doc, "null", 4);
}

struct snd_node *snd_node_int(struct snd_document *doc, int64_t value)
{
    char text[24];
    int  length = snprintf(text, sizeof text, "%" PRId64, value);

    return snd_node_plain(doc, text, (size_t)length);
}

struct snd_node *snd_node_real(struct snd_document *doc, double value)
{
    char text[SND_REAL_MAX];

    snd_real_text(text, value);
    return snd_node_plain(doc, text, strlen(text));
}

struct snd_node *snd_node_bytes(struct snd_document *doc, const char *bytes, size_t length)
{
    return make_scalar(doc, SND_NODE_TEXT, bytes, length);
}

struct snd_node *snd_node_text(struct snd_document *doc, const char *text)
{
    return snd_node_bytes(doc, text, strlen(text));
}

struct snd_node *snd_node_list(struct snd_document *doc)
{
    return make(doc, SND_NODE_LIST);
}

struct snd_node *snd_node_map(struct snd_document *doc)
{
    return make(doc, SND_NODE_MAP);
}

struct snd_node *snd_node_ints(struct snd_document *doc, const int64_t *values, size_t count)
{
    struct snd_node *list = snd_node_list(doc);

    for (size_t i = 0; i < count; i++)
        snd_node_add(doc, list, snd_node_int(doc, values[i]));
    return list;
}

/* The depth is bounded: what was read is (pipe/yaml/yaml.h), and what is made here is flat. */
struct snd_node *snd_node_copy(struct snd_document *doc, const struct snd_node *node)
{
    if (snd_node_is_scalar(node)) {
        struct snd_node *scalar = make_scalar(doc, node->kind, node->text, node->length);
        if (scalar) {
            scalar->in_range = node->in_range;
            scalar->integer = node->integer;
            scalar->real = node->real;
        }
        return scalar;
    }
    struct snd_node *copy = make(doc, node->kind);
    for (uint32_t i = 0; i < node->count; i++)
        snd_node_add(doc, copy, snd_node_copy(doc, node->items[i]));
    return copy;
}

/* ---------------------------------------------------------- lists and maps */

static bool make_room(struct snd_document *doc, struct snd_node *node)
{
    if (node->count < node->capacity)
        return true;
    uint32_t          capacity = node->capacity ? node->capacity * 2 : 4;
    struct snd_node **items = snd_arena_take(&doc->arena, capacity * sizeof *items);
    if (!items) {
        doc->failed = true;
        return false;
    }
    if (node->count > 0)
        memcpy(items, node->items, node->count * sizeof *items);
    node->items = items;
    node->capacity = capacity;
    return true;
}

void snd_node_add(struct snd_document *doc, struct snd_node *list, struct snd_node *item)
{
    if (!list || !item || !make_room(doc, list))
        return;
    list->items[list->count++] = item;
    list->weight += item->weight;
}

void snd_node_pair(struct snd_document *doc, struct snd_node *map, struct snd_node *key,
                   struct snd_node *value)
{
    if (!key || !value)
        return;
    snd_node_add(doc, map, key);
    snd_node_add(doc, map, value);
}

/* Where the value of `key` stands among the items, or UINT32_MAX. */
static uint32_t find(const struct snd_node *map, const char *key)
{
    for (uint32_t i = 0; i + 1 < map->count; i += 2)
        if (snd_node_is_text(map->items[i], key))
            return i + 1;
    return UINT32_MAX;
}

void snd_node_set(struct snd_document *doc, struct snd_node *map, const char *key,
                  struct snd_node *value)
{
    uint32_t at = map ? find(map, key) : UINT32_MAX;

    if (at == UINT32_MAX)
        snd_node_pair(doc, map, snd_node_text(doc, key), value);
    else if (value)
        map->items[at] = value;
}

struct snd_node *snd_node_get(const struct snd_node *map, const char *key)
{
    if (!snd_node_is(map, SND_NODE_MAP))
        return NULL;
    uint32_t at = find(map, key);
    return at == UINT32_MAX ? NULL : map->items[at];
}

/* ---------------------------------------------------------------- looking */

bool snd_node_is_text(const struct snd_node *node, const char *text)
{
    return snd_node_is(node, SND_NODE_TEXT) && node->length == strlen(text) &&
           memcmp(node->text, text, node->length) == 0;
}

static bool equal_text(const struct snd_node *a, const struct snd_node *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static bool equal_scalars(const struct snd_node *a, const struct snd_node *b)
{
    if (snd_node_is_number(a) && snd_node_is_number(b)) {
        if (a->kind == SND_NODE_INT && b->kind == SND_NODE_INT)
            return a->in_range && b->in_range ? a->integer == b->integer : equal_text(a, b);
        return a->real == b->real;
    }
    if (a->kind != b->kind)
        return false;
    if (a->kind == SND_NODE_BOOL)
        return a->integer == b->integer;
    return a->kind == SND_NODE_NULL || equal_text(a, b);
}

bool snd_node_equal(const struct snd_node *a, const struct snd_node *b)
{
    if (snd_node_is_scalar(a) && snd_node_is_scalar(b))
        return equal_scalars(a, b);
    if (a->kind != b->kind || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!snd_node_equal(a->items[i], b->items[i]))
            return false;
    return true;
}

const char *snd_node_said(const struct snd_node *node, char text[SND_NODE_SAID_MAX])
{
    static const char *const kinds[] = { "nothing",  "the flag", "the number", "the number",
                                         "the date", "the text", "a list",     "a map" };

    if (!node)
        snprintf(text, SND_NODE_SAID_MAX, "missing");
    else if (node->kind == SND_NODE_NULL || !snd_node_is_scalar(node))
        snprintf(text, SND_NODE_SAID_MAX, "%s", kinds[node->kind]);
    else
        snprintf(text, SND_NODE_SAID_MAX, "%s '%.60s%s'", kinds[node->kind], node->text,
                 node->length > 60 ? ".." : "");
    return text;
}
