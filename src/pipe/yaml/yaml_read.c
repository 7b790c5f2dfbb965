/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/yaml/yaml_read.c - libyaml's events to a tree.
 *
 * An alias stands for the very node of its anchor, so the tree may share parts; each node knows
 * how many nodes it unfolds to, and the document's sum is bounded: no few lines can grow to
 * gigabytes when they are walked.
 */
#include "pipe/yaml/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "base/data/map.h"
#include "pipe/yaml/scalar.h"
#include "snd_config.h"

#if SND_HAVE_YAML
#include <yaml.h>

bool snd_yaml_works(void)
{
    return true;
}

struct anchor {
    const char      *name; /* in the arena */
    struct snd_node *node;
    bool             open; /* still being read: an alias to it would be a circle */
};

struct frame {
    struct snd_node *node;
    struct snd_node *key;    /* of a map: read, its value not yet */
    uint32_t         anchor; /* plus one; 0: none */
};

struct reader {
    yaml_parser_t        parser;
    struct snd_document *doc;
    const char          *name;
    struct sonde_error  *err;
    struct frame         frames[SND_YAML_DEPTH_MAX];
    uint32_t             depth;
    struct anchor       *anchors; /* owned */
    uint32_t             anchor_count, anchor_room;
    uint32_t             weight; /* nodes so far, aliases unfolded */
};

static uint32_t event_line(const yaml_event_t *event)
{
    return (uint32_t)event->start_mark.line + 1;
}

static enum sonde_status refuse(struct reader *r, uint32_t line, const char *what)
{
    return snd_fail(r->err, SONDE_E_FORMAT, "%s, line %u: %s", r->name, line, what);
}

static enum sonde_status no_memory(struct reader *r)
{
    return snd_fail(r->err, SONDE_E_NOMEM, "out of memory reading %s", r->name);
}

/* ---------------------------------------------------------------- anchors */

static enum sonde_status add_anchor(struct reader *r, const yaml_char_t *name,
                                    struct snd_node *node, bool open, uint32_t *number)
{
    *number = 0;
    if (!name)
        return SONDE_OK;
    if (r->anchor_count >= SND_YAML_ANCHORS_MAX) /* an alias looks through all of them */
        return snd_fail(r->err, SONDE_E_LIMIT, "%s, line %u: more than %u anchors", r->name,
                        node->line, SND_YAML_ANCHORS_MAX);
    if (!snd_grow(&r->anchors, &r->anchor_room, r->anchor_count, sizeof *r->anchors))
        return no_memory(r);
    char *copy = snd_arena_copy(&r->doc->arena, name, strlen((const char *)name));
    if (!copy)
        return no_memory(r);
    r->anchors[r->anchor_count++] = (struct anchor){ copy, node, open };
    *number = r->anchor_count;
    return SONDE_OK;
}

/* The node that an alias refers to; NULL, with an error, if there is none. */
static struct snd_node *find_anchor(struct reader *r, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;

    for (uint32_t i = r->anchor_count; i > 0; i--) { /* the newest of a name counts */
        struct anchor *anchor = &r->anchors[i - 1];
        if (strcmp(anchor->name, name) != 0)
            continue;
        if (!anchor->open)
            return anchor->node;
        (void)refuse(r, event_line(event), "an alias refers to a node that contains it");
        return NULL;
    }
    (void)refuse(r, event_line(event), "an alias to an undefined anchor");
    return NULL;
}

/* -------------------------------------------------------------------- maps */

static int compare_texts(const struct snd_node *left, const struct snd_node *right)
{
    size_t shared = left->length < right->length ? left->length : right->length;
    int    order = memcmp(left->text, right->text, shared);

    return order ? order : (left->length > right->length) - (left->length < right->length);
}

/* 0 for keys that are one: ~ and null, 16 and 0x10. Of numbers past an int64_t the texts count. */
static int compare_keys(const void *a, const void *b)
{
    const struct snd_node *left = *(struct snd_node *const *)a;
    const struct snd_node *right = *(struct snd_node *const *)b;

    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    switch (left->kind) {
    case SND_NODE_NULL:
        return 0;
    case SND_NODE_BOOL:
        return (int)(left->integer - right->integer);
    case SND_NODE_INT:
        if (left->in_range != right->in_range)
            return left->in_range ? -1 : 1;
        if (left->in_range)
            return (left->integer > right->integer) - (left->integer < right->integer);
        return compare_texts(left, right);
    case SND_NODE_REAL:
        if (isnan(left->real) || isnan(right->real))
            return isnan(left->real) - isnan(right->real);
        return (left->real > right->real) - (left->real < right->real);
    default:
        return compare_texts(left, right);
    }
}

/* Of two equal keys PyYAML takes the last and says nothing; to write the map would lose one. */
static enum sonde_status check_keys(struct reader *r, const struct snd_node *map)
{
    enum sonde_status status = SONDE_OK;
    uint32_t          count = map->count / 2;
    struct snd_node **keys = malloc((count + 1) * sizeof *keys);

    if (!keys)
        return no_memory(r);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = map->items[2 * i];
    qsort(keys, count, sizeof *keys, compare_keys);
    for (uint32_t i = 1; i < count && status == SONDE_OK; i++)
        if (compare_keys(&keys[i - 1], &keys[i]) == 0)
            status = snd_fail(r->err, SONDE_E_FORMAT, "%s, lines %u and %u: duplicate key '%.80s'",
                              r->name, keys[i - 1]->line, keys[i]->line, keys[i]->text);
    free(keys);
    return status;
}

/* ------------------------------------------------------------------- nodes */

/* Adds a complete node at the current position of the document. */
static enum sonde_status place(struct reader *r, struct snd_node *node, uint32_t line)
{
    struct frame *frame = r->depth ? &r->frames[r->depth - 1] : NULL;

    if (!frame) {
        r->doc->root = node;
    } else if (frame->node->kind == SND_NODE_LIST) {
        snd_node_add(r->doc, frame->node, node);
    } else if (frame->key) {
        snd_node_pair(r->doc, frame->node, frame->key, node);
        frame->key = NULL;
    } else if (!snd_node_is_scalar(node)) {
        return refuse(r, line, "a list or a map cannot be a key");
    } else if (snd_node_is_text(node, "<<")) {
        return refuse(r, line, "merge keys (<<) are not supported; write the entries out");
    } else {
        frame->key = node;
    }
    return r->doc->failed ? no_memory(r) : SONDE_OK;
}

static enum sonde_status count_nodes(struct reader *r, uint32_t line, uint32_t more)
{
    if (more > SND_YAML_NODES_MAX - r->weight)
        return snd_fail(r->err, SONDE_E_LIMIT,
                        "%s, line %u: more than %u entries with aliases expanded", r->name, line,
                        SND_YAML_NODES_MAX);
    r->weight += more;
    return SONDE_OK;
}

static bool is_tag(const yaml_char_t *tag, const char *name)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char       *text = (const char *)tag;

    return strncmp(text, prefix, sizeof prefix - 1) == 0 &&
           strcmp(text + sizeof prefix - 1, name) == 0;
}

/* A tag may say what the text would be anyhow, and may make text or a real of it. */
static bool apply_tag(struct snd_node *node, const yaml_char_t *tag)
{
    static const struct {
        const char        *name;
        enum snd_node_kind kind;
    } tags[] = { { "null", SND_NODE_NULL },
                 { "bool", SND_NODE_BOOL },
                 { "int", SND_NODE_INT },
                 { "float", SND_NODE_REAL },
                 { "timestamp", SND_NODE_STAMP } };

    if (strcmp((const char *)tag, "!") == 0 || is_tag(tag, "str")) {
        node->kind = SND_NODE_TEXT;
        return true;
    }
    snd_scalar_resolve(node);
    for (size_t i = 0; i < SND_COUNT_OF(tags); i++)
        if (is_tag(tag, tags[i].name))
            return node->kind == tags[i].kind;
    return false;
}

static enum sonde_status read_scalar(struct reader *r, const yaml_event_t *event)
{
    const char       *bytes = (const char *)event->data.scalar.value;
    size_t            length = event->data.scalar.length;
    uint32_t          line = event_line(event), anchor;
    bool              is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    enum sonde_status status = count_nodes(r, line, 1);

    if (status != SONDE_OK)
        return status;
    struct snd_node *node = is_plain && !event->data.scalar.tag
                                ? snd_node_plain(r->doc, bytes, length)
                                : snd_node_bytes(r->doc, bytes, length);
    if (!node)
        return no_memory(r);
    node->line = line;
    if (event->data.scalar.tag && !apply_tag(node, event->data.scalar.tag))
        return snd_fail(r->err, SONDE_E_FORMAT, "%s, line %u: unsupported YAML tag '%.80s'",
                        r->name, line, (const char *)event->data.scalar.tag);
    status = add_anchor(r, event->data.scalar.anchor, node, false, &anchor);
    return status == SONDE_OK ? place(r, node, line) : status;
}

static enum sonde_status read_alias(struct reader *r, const yaml_event_t *event)
{
    struct snd_node *node = find_anchor(r, event);

    if (!node)
        return SONDE_E_FORMAT;
    enum sonde_status status = count_nodes(r, event_line(event), node->weight);
    return status == SONDE_OK ? place(r, node, event_line(event)) : status;
}

static enum sonde_status open_collection(struct reader *r, const yaml_event_t *event)
{
    bool               is_list = event->type == YAML_SEQUENCE_START_EVENT;
    const yaml_char_t *tag = is_list ? event->data.sequence_start.tag
                                     : event->data.mapping_start.tag;
    const yaml_char_t *name = is_list ? event->data.sequence_start.anchor
                                      : event->data.mapping_start.anchor;
    uint32_t           line = event_line(event), anchor;

    if (r->depth == SND_YAML_DEPTH_MAX)
        return snd_fail(r->err, SONDE_E_LIMIT, "%s, line %u: nested deeper than %d", r->name, line,
                        SND_YAML_DEPTH_MAX);
    if (tag && strcmp((const char *)tag, "!") != 0 && !is_tag(tag, is_list ? "seq" : "map"))
        return snd_fail(r->err, SONDE_E_FORMAT, "%s, line %u: unsupported YAML tag '%.80s'",
                        r->name, line, (const char *)tag);
    enum sonde_status status = count_nodes(r, line, 1);
    if (status != SONDE_OK)
        return status;
    struct snd_node *node = is_list ? snd_node_list(r->doc) : snd_node_map(r->doc);
    if (!node)
        return no_memory(r);
    node->line = line;
    status = add_anchor(r, name, node, true, &anchor);
    if (status == SONDE_OK)
        r->frames[r->depth++] = (struct frame){ node, NULL, anchor };
    return status;
}

static enum sonde_status close_collection(struct reader *r)
{
    struct frame     *frame = &r->frames[--r->depth];
    enum sonde_status status = SONDE_OK;

    if (frame->anchor)
        r->anchors[frame->anchor - 1].open = false;
    if (frame->node->kind == SND_NODE_MAP)
        status = check_keys(r, frame->node);
    return status == SONDE_OK ? place(r, frame->node, frame->node->line) : status;
}

/* ------------------------------------------------------------------ stream */

static enum sonde_status read_event(struct reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->doc->root)
            return refuse(r, event_line(event), "expected one YAML document, got a second");
        return SONDE_OK;
    case YAML_SCALAR_EVENT:
        return read_scalar(r, event);
    case YAML_ALIAS_EVENT:
        return read_alias(r, event);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return open_collection(r, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_collection(r);
    default:
        return SONDE_OK;
    }
}

static enum sonde_status say_parser_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;

    if (p->error == YAML_MEMORY_ERROR)
        return no_memory(r);
    if (p->error == YAML_READER_ERROR)
        return snd_fail(r->err, SONDE_E_FORMAT, "%s, byte %zu: %s: not YAML text", r->name,
                        p->problem_offset, p->problem ? p->problem : "cannot be read");
    return snd_fail(r->err, SONDE_E_FORMAT, "%s, line %zu: not YAML: %s", r->name,
                    p->problem_mark.line + 1, p->problem ? p->problem : "cannot be read");
}

static enum sonde_status read_stream(struct reader *r)
{
    enum sonde_status status = SONDE_OK;
    bool              ended = false;

    while (!ended && status == SONDE_OK) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event))
            return say_parser_error(r);
        ended = event.type == YAML_STREAM_END_EVENT;
        status = read_event(r, &event);
        yaml_event_delete(&event);
    }
    if (status == SONDE_OK && !r->doc->root)
        r->doc->root = snd_node_null(r->doc);
    return status == SONDE_OK && !r->doc->root ? no_memory(r) : status;
}

enum sonde_status snd_yaml_parse(struct snd_document *doc, const char *name, const char *bytes,
                                 size_t length, struct sonde_error *err)
{
    struct reader     r = { .doc = doc, .name = name, .err = err };
    enum sonde_status status;

    if (length > SND_YAML_BYTES_MAX)
        return snd_fail(err, SONDE_E_LIMIT, "%s is larger than %zu MB", name,
                        SND_YAML_BYTES_MAX >> 20);
    if (!yaml_parser_initialize(&r.parser))
        return no_memory(&r);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, length);
    status = read_stream(&r);
    yaml_parser_delete(&r.parser);
    free(r.anchors);
    return status;
}

#else

bool snd_yaml_works(void)
{
    return false;
}

enum sonde_status snd_yaml_parse(struct snd_document *doc, const char *name, const char *bytes,
                                 size_t length, struct sonde_error *err)
{
    (void)doc;
    (void)bytes;
    (void)length;
    return snd_fail(err, SONDE_E_UNSUPPORTED,
                    "cannot read %s: this build lacks libyaml; build it again with libyaml-dev",
                    name);
}

#endif

/* ------------------------------------------------------------------- files */

/* Everything that `fd` gives, one byte past the limit at most. */
static enum sonde_status read_all(int fd, const char *path, struct sonde_buffer *text,
                                  struct sonde_error *err)
{
    char chunk[16384];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return snd_fail_os(err, SONDE_E_IO, "cannot read %s", path);
        if (n == 0 || text->length > SND_YAML_BYTES_MAX)
            break;
        snd_buf_put(text, chunk, (size_t)n);
    }
    return text->failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory reading %s", path) : SONDE_OK;
}

static enum sonde_status load(struct snd_document *doc, const char *path, struct sonde_error *err)
{
    struct sonde_buffer text = { 0 };
    int                 fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot open %s", path);
    enum sonde_status status = read_all(fd, path, &text, err);
    close(fd);
    if (status == SONDE_OK)
        status = snd_yaml_parse(doc, path, snd_buf_string(&text), text.length, err);
    sonde_buffer_release(&text);
    return status;
}

enum sonde_status snd_yaml_load_map(struct snd_document *doc, const char *path, bool may_lack,
                                    struct sonde_error *err)
{
    struct sonde_error why = { SONDE_OK, 0, "" };
    char               said[SND_NODE_SAID_MAX];
    enum sonde_status  status = load(doc, path, &why);
    bool               lacks = status == SONDE_E_IO && why.os_error == ENOENT;

    if (status != SONDE_OK && !(lacks && may_lack)) {
        if (err)
            *err = why;
        return status;
    }
    if (may_lack && (lacks || doc->root->kind == SND_NODE_NULL))
        doc->root = snd_node_map(doc);
    if (!doc->root)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory reading %s", path);
    if (doc->root->kind != SND_NODE_MAP)
        return snd_fail(err, SONDE_E_FORMAT, "%s: expected a map, got %s", path,
                        snd_node_said(doc->root, said));
    return SONDE_OK;
}
