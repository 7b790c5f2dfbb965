/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: "thread;range;range 1234", one line a path, with its self time in whole
 * microseconds; what flamegraph.pl, speedscope and inferno read.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "export/exporter.h"
#include "sonde/model.h"

/* As torch's export_stacks: what separates frames or lines cannot be in a name. */
static void put_name(struct snd_out *out, struct sonde_text name)
{
    for (size_t i = 0; i < name.length; i++) {
        char c = name.bytes[i];
        bool bad = c == ' ' || c == ';' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
        snd_out_put(out, bad ? "_" : &c, 1);
    }
    if (name.length == 0)
        snd_out_text(out, "_");
}

/* The nodes from the first level down to `node`. Returns how many; at most `room`. */
static size_t find_path(const struct sonde_tree *tree, uint32_t node, uint32_t *path, size_t room)
{
    size_t depth = sonde_tree_node(tree, node)->depth, count = depth < room ? depth : room;

    for (size_t i = depth; i-- > 0; node = sonde_tree_node(tree, node)->parent)
        if (i < room)
            path[i] = node;
    return count;
}

static void put_tree(struct snd_out *out, const struct sonde_tree *tree, uint32_t *path,
                     size_t room)
{
    for (uint32_t node = 1; node < sonde_tree_count(tree); node++) {
        int64_t us = sonde_tree_node(tree, node)->self_ns / 1000;
        if (us <= 0)
            continue;
        size_t count = find_path(tree, node, path, room);
        for (size_t i = 0; i < count; i++) {
            snd_out_text(out, i ? ";" : "");
            put_name(out, sonde_tree_node(tree, path[i])->name);
        }
        snd_out_format(out, " %" PRId64 "\n", us);
    }
}

SND_EXPORT_WRITE(snd_export_folded)
{
    struct sonde_tree *tree;
    size_t             deepest = 1;

    (void)options;
    enum sonde_status st = sonde_tree_new(trace, true, &tree, err);
    if (st != SONDE_OK)
        return st;
    for (size_t i = 0; i < sonde_tree_count(tree); i++)
        if (sonde_tree_node(tree, i)->depth > deepest)
            deepest = sonde_tree_node(tree, i)->depth;
    uint32_t *path = calloc(deepest, sizeof *path);
    if (path)
        put_tree(out, tree, path, deepest);
    else
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for stacks of %zu frames", deepest);
    free(path);
    sonde_tree_free(tree);
    return st;
}
