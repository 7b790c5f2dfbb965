/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/yaml/yaml_write.c - a tree to text as PyYAML's safe dumper writes it, and text to a file.
 */
#include "pipe/yaml/yaml.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "pipe/yaml/scalar.h"
#include "pipe/whole_file.h"
#include "snd_config.h"

#if SND_HAVE_YAML
#include <yaml.h>

/* ----------------------------------------------------------------- sorting */

struct pair {
    struct snd_node *key, *value;
};

static int compare_texts(const void *a, const void *b)
{
    const struct snd_node *left = ((const struct pair *)a)->key;
    const struct snd_node *right = ((const struct pair *)b)->key;
    size_t                 shared = left->length < right->length ? left->length : right->length;
    int                    order = memcmp(left->text, right->text, shared);

    return order ? order : (left->length > right->length) - (left->length < right->length);
}

static int compare_numbers(const void *a, const void *b)
{
    double left = ((const struct pair *)a)->key->real;
    double right = ((const struct pair *)b)->key->real;

    return (left > right) - (left < right);
}

/* Keys of one sort are put in order; a mixture stays as it is, as Python cannot compare it. */
static void sort_map(struct snd_node *map)
{
    bool texts = true, numbers = true;

    for (uint32_t i = 0; i < map->count; i += 2) {
        texts = texts && map->items[i]->kind == SND_NODE_TEXT;
        numbers = numbers && snd_node_is_number(map->items[i]);
    }
    if (map->count > 2 && (texts || numbers))
        qsort(map->items, map->count / 2, sizeof(struct pair),
              texts ? compare_texts : compare_numbers);
}

/* ---------------------------------------------------------------- emitting */

static int append(void *user, unsigned char *bytes, size_t length)
{
    struct sonde_buffer *text = user;

    snd_buf_put(text, bytes, length);
    return !text->failed;
}

/* Shown only where a scalar that is not text must be quoted: [!!int '1:30']. */
static const char *const tags[] = {
    [SND_NODE_NULL] = YAML_NULL_TAG, [SND_NODE_BOOL] = YAML_BOOL_TAG,
    [SND_NODE_INT] = YAML_INT_TAG,   [SND_NODE_REAL] = YAML_FLOAT_TAG,
    [SND_NODE_TEXT] = YAML_STR_TAG,  [SND_NODE_STAMP] = YAML_TIMESTAMP_TAG,
};

static bool emit_scalar(yaml_emitter_t *emitter, const struct snd_node *node, bool in_flow)
{
    yaml_event_t event;
    bool         is_text = node->kind == SND_NODE_TEXT, is_null = node->kind == SND_NODE_NULL;
    /* An empty null would be written '', which is text. */
    const char *text = is_null ? "null" : node->text;
    size_t      length = is_null ? 4 : node->length;
    /* Unquoted where it is read back as what it is; quotes make text of anything. */
    bool plain = is_text ? !snd_scalar_is_special(text, length) : !in_flow || !strchr(text, ':');

    return yaml_scalar_event_initialize(&event, NULL, (const yaml_char_t *)tags[node->kind],
                                        (const yaml_char_t *)text, (int)length, plain, is_text,
                                        YAML_ANY_SCALAR_STYLE) &&
           yaml_emitter_emit(emitter, &event);
}

/* A list or map of scalars only is written on one line, wrapped. */
static bool is_flow(const struct snd_node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (!snd_node_is_scalar(node->items[i]))
            return false;
    return true;
}

static bool emit(yaml_emitter_t *emitter, struct snd_node *node, bool in_flow)
{
    yaml_event_t event;
    bool         is_map = node->kind == SND_NODE_MAP, flow = is_flow(node), good;

    if (snd_node_is_scalar(node))
        return emit_scalar(emitter, node, in_flow);
    if (is_map) {
        sort_map(node);
        good = yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
                                                   flow ? YAML_FLOW_MAPPING_STYLE
                                                        : YAML_BLOCK_MAPPING_STYLE);
    } else {
        good = yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                    flow ? YAML_FLOW_SEQUENCE_STYLE
                                                         : YAML_BLOCK_SEQUENCE_STYLE);
    }
    good = good && yaml_emitter_emit(emitter, &event);
    for (uint32_t i = 0; i < node->count && good; i++)
        good = emit(emitter, node->items[i], flow);
    good = good && (is_map ? yaml_mapping_end_event_initialize(&event)
                           : yaml_sequence_end_event_initialize(&event));
    return good && yaml_emitter_emit(emitter, &event);
}

static bool emit_document(yaml_emitter_t *emitter, struct snd_node *root)
{
    yaml_event_t event;

    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit(emitter, root, false) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

enum sonde_status snd_yaml_write(struct snd_document *doc, struct sonde_buffer *text,
                                 struct sonde_error *err)
{
    yaml_emitter_t    emitter;
    enum sonde_status status = SONDE_OK;

    if (doc->failed || !doc->root || !yaml_emitter_initialize(&emitter))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory writing YAML");
    yaml_emitter_set_output(&emitter, append, text);
    if (!emit_document(&emitter, doc->root)) {
        if (emitter.error == YAML_MEMORY_ERROR || text->failed)
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory writing YAML");
        else
            status = snd_fail(err, SONDE_E_FORMAT, "cannot be written as YAML: %s",
                              emitter.problem ? emitter.problem : "text that is not UTF-8");
    }
    yaml_emitter_delete(&emitter);
    return status;
}

#else

enum sonde_status snd_yaml_write(struct snd_document *doc, struct sonde_buffer *text,
                                 struct sonde_error *err)
{
    (void)doc;
    (void)text;
    return snd_fail(err, SONDE_E_UNSUPPORTED,
                    "cannot write YAML: this build lacks libyaml; build it again with libyaml-dev");
}

#endif

enum sonde_status snd_yaml_save(struct snd_document *doc, const char *path, struct sonde_error *err)
{
    struct sonde_buffer text = { 0 };
    enum sonde_status   status = snd_yaml_write(doc, &text, err);

    if (status == SONDE_OK)
        status = snd_whole_file_write(path, snd_buf_string(&text), text.length, err);
    sonde_buffer_release(&text);
    return status;
}
