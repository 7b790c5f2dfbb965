/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/yaml/node.h - a YAML document as a tree: what was read, or what is to be written.
 *
 *     struct snd_document   doc = SND_DOCUMENT_INIT;
 *     struct snd_node *map = snd_node_map(&doc);
 *     snd_node_set(&doc, map, "layers", snd_node_int(&doc, 48));
 *     snd_document_release(&doc);
 *
 * Nodes live in the document's arena and are freed with it. A scalar keeps the text it was
 * written as, so that what is read and written again is not changed on the way. Making a node
 * fails only when out of memory: it returns NULL, accepts NULL for a part, and `failed` stays set,
 * so that the caller checks once, after the tree is built.
 *
 * Layer:   pipe (sees base/). Threads: one at a time uses a document.
 */
#ifndef SND_PIPE_YAML_NODE_H
#define SND_PIPE_YAML_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/data/arena.h"
#include "base/error.h"

enum snd_node_kind {
    SND_NODE_NULL,
    SND_NODE_BOOL,
    SND_NODE_INT,
    SND_NODE_REAL,
    SND_NODE_STAMP, /* a date: known to be no text, else not looked into */
    SND_NODE_TEXT,
    SND_NODE_LIST,
    SND_NODE_MAP,
};

struct snd_node {
    enum snd_node_kind kind;
    uint32_t           line;     /* where it was read, from 1; 0: made here */
    uint32_t           weight;   /* nodes of the tree under it, itself included */
    bool               in_range; /* SND_NODE_INT: `integer` holds it */
    uint32_t           count;    /* of items: a map has a key and a value in turn */
    uint32_t           capacity;
    struct snd_node  **items;
    const char        *text; /* a scalar as it is written, or the text itself; NUL after it */
    size_t             length;
    int64_t            integer; /* of SND_NODE_INT, SND_NODE_BOOL */
    double             real;    /* of SND_NODE_REAL, SND_NODE_INT */
};

struct snd_document {
    struct snd_arena arena;
    struct snd_node *root;   /* NULL before one is read or set */
    bool             failed; /* memory ran out */
};
#define SND_DOCUMENT_INIT           \
    {                               \
        SND_ARENA_INIT, NULL, false \
    }

void snd_document_release(struct snd_document *doc);

struct snd_node *snd_node_null(struct snd_document *doc);
struct snd_node *snd_node_int(struct snd_document *doc, int64_t value);
struct snd_node *snd_node_real(struct snd_document *doc, double value);
struct snd_node *snd_node_text(struct snd_document *doc, const char *text);
struct snd_node *snd_node_bytes(struct snd_document *doc, const char *bytes, size_t length);
struct snd_node *snd_node_list(struct snd_document *doc);
struct snd_node *snd_node_map(struct snd_document *doc);
/* The scalar that `bytes` are when they stand unquoted in a file (YAML 1.1). */
struct snd_node *snd_node_plain(struct snd_document *doc, const char *bytes, size_t length);
/* A list of integers. */
struct snd_node *snd_node_ints(struct snd_document *doc, const int64_t *values, size_t count);
/* A copy in `doc` of a tree of any document. */
struct snd_node *snd_node_copy(struct snd_document *doc, const struct snd_node *node);

void snd_node_add(struct snd_document *doc, struct snd_node *list, struct snd_node *item);
/* Puts `value` under `key`, in the place of what was there. */
void snd_node_set(struct snd_document *doc, struct snd_node *map, const char *key,
                  struct snd_node *value);
/* Adds a pair; an equal key is not looked for. */
void snd_node_pair(struct snd_document *doc, struct snd_node *map, struct snd_node *key,
                   struct snd_node *value);
/* The value under the text `key`; NULL if there is none, or `map` is NULL or no map. */
struct snd_node *snd_node_get(const struct snd_node *map, const char *key);

static inline bool snd_node_is(const struct snd_node *node, enum snd_node_kind kind)
{
    return node && node->kind == kind;
}
static inline bool snd_node_is_scalar(const struct snd_node *node)
{
    return node->kind < SND_NODE_LIST;
}
static inline bool snd_node_is_number(const struct snd_node *node)
{
    return node && (node->kind == SND_NODE_INT || node->kind == SND_NODE_REAL);
}
bool snd_node_is_text(const struct snd_node *node, const char *text);
/* Same kind and value, part by part, as Python compares: 1 equals 1.0. */
bool snd_node_equal(const struct snd_node *a, const struct snd_node *b);

/* What kind of thing it is, for a message: "a list", "the text '1e-05'". */
#define SND_NODE_SAID_MAX 96
const char *snd_node_said(const struct snd_node *node, char text[SND_NODE_SAID_MAX]);

#endif
