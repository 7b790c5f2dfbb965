/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/exercise_yaml.c - pipeline files: read, looked at, written, read again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "exercise.h"
#include "pipe/yaml/yaml.h"

static uint64_t sink; /* what was looked at, so that looking is not optimised away */

/* Touches every text, so that a wrong pointer shows. */
static size_t look_at(const struct snd_node *node)
{
    char   said[SND_NODE_SAID_MAX];
    size_t sum = strlen(snd_node_said(node, said));

    if (snd_node_is_scalar(node))
        return sum + node->length + (size_t)(unsigned char)node->text[node->length];
    for (uint32_t i = 0; i < node->count; i++)
        sum += look_at(node->items[i]);
    return sum + (snd_node_get(node, "layers") != NULL);
}

/* What was written once is read and written alike: nothing is lost on the way. */
static void check_round(struct snd_document *doc)
{
    struct snd_document again = SND_DOCUMENT_INIT;
    struct sonde_buffer first = { 0 }, second = { 0 };
    struct sonde_error  err = { SONDE_OK, 0, "" };

    if (snd_yaml_write(doc, &first, &err) == SONDE_OK) {
        if (snd_yaml_parse(&again, "written", first.bytes, first.length, &err) != SONDE_OK ||
            snd_yaml_write(&again, &second, &err) != SONDE_OK || first.length != second.length ||
            memcmp(first.bytes, second.bytes, first.length) != 0) {
            fprintf(stderr, "%s\n--\n%s\n--\n%s\n", err.message, snd_buf_string(&first),
                    snd_buf_string(&second));
            abort();
        }
    }
    snd_document_release(&again);
    sonde_buffer_release(&first);
    sonde_buffer_release(&second);
}

void exercise_yaml(const uint8_t *data, size_t size)
{
    struct snd_document doc = SND_DOCUMENT_INIT;
    struct sonde_error  err;

    if (snd_yaml_parse(&doc, "fuzz", (const char *)data, size, &err) == SONDE_OK) {
        sink += look_at(doc.root);
        if (doc.root->weight < 10000)
            check_round(&doc);
    }
    snd_document_release(&doc);
}
