/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks: "thread;range;range 1234", one line per path, with its self time in whole
 * microseconds; what flamegraph.pl, speedscope and inferno read.
 *
 * Of a trace with samples, their stacks: "thread;main (prog.py:1);work (prog.py:9) 1234". Of one
 * without them whose Python functions were counted, those, by their call tree.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/data/map.h"
#include "export/common/exporter.h"
#include "format/layout.h"
#include "read/said/trace_metadata.h"
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

static enum sonde_status write_ranges(const struct sonde_tree *tree, struct snd_out *out,
                                      struct sonde_error *err)
{
    size_t deepest = 1;

    for (size_t i = 0; i < sonde_tree_count(tree); i++)
        if (sonde_tree_node(tree, i)->depth > deepest)
            deepest = sonde_tree_node(tree, i)->depth;
    uint32_t *path = calloc(deepest, sizeof *path);
    if (!path)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for stacks of %zu frames", deepest);
    put_tree(out, tree, path, deepest);
    free(path);
    return SONDE_OK;
}

/* ------------------------------------------------- samples and functions */

/* "function (file:line)"; what separates frames or lines is no part of it. */
static void add_frame(struct sonde_buffer *path, struct sonde_text name, struct sonde_text file,
                      uint32_t line)
{
    size_t start = path->length + 1;

    snd_buf_text(path, ";");
    snd_buf_put(path, name.bytes, name.length);
    if (file.length > 0) {
        snd_buf_text(path, " (");
        snd_buf_put(path, file.bytes, file.length);
        if (line > 0)
            snd_buf_format(path, ":%" PRIu32, line);
        snd_buf_text(path, ")");
    }
    for (size_t i = start; i < path->length; i++)
        if (path->bytes[i] == ';' || (unsigned char)path->bytes[i] < ' ')
            path->bytes[i] = '_';
}

static void put_path(struct snd_out *out, const struct sonde_buffer *path, int64_t self_ns)
{
    if (self_ns < 1000 || path->length == 0)
        return;
    snd_out_put(out, path->bytes, path->length);
    snd_out_format(out, " %" PRId64 "\n", self_ns / 1000);
}

/* The length of the path down to each node on the way, so that going up cuts it. */
struct way {
    struct sonde_buffer path;
    uint32_t           *lengths;
    uint32_t            room;
    bool                failed;
};

/* Moves to a node at `depth`: deeper parts of the path are dropped. */
static bool go_to(struct way *way, uint32_t depth)
{
    while (depth >= way->room)
        if (!snd_grow(&way->lengths, &way->room, way->room, sizeof *way->lengths))
            return !(way->failed = true);
    if (depth > 0 && way->path.bytes) {
        way->path.length = way->lengths[depth - 1];
        way->path.bytes[way->path.length] = '\0';
    }
    return true;
}

static bool keep_length(struct way *way, uint32_t depth)
{
    if (way->path.length > UINT32_MAX)
        way->failed = true;
    way->lengths[depth] = (uint32_t)way->path.length;
    return !way->failed && !way->path.failed;
}

static void put_thread_name(const struct sonde_trace *trace, uint32_t thread,
                            struct sonde_buffer *path)
{
    const struct sonde_thread *t = sonde_trace_thread(trace, thread);

    char        text[SND_RANK_TEXT];
    const char *rank = snd_meta_rank(trace, t->process, text);

    snd_buf_clear(path);
    snd_buf_format(path, "%s%s", rank, rank[0] ? "," : "");
    if (t->name.length > 0)
        snd_buf_put(path, t->name.bytes, t->name.length);
    else
        snd_buf_format(path, "thread %" PRIu32, t->tid);
    for (size_t i = 0; i < path->length; i++)
        if (path->bytes[i] == ';' || (unsigned char)path->bytes[i] <= ' ')
            path->bytes[i] = '_';
}

static int64_t off_cpu(const struct sonde_sample_node *n)
{
    return n->time_ns - n->cpu_ns;
}

/* The time in which a node was innermost; `waits`: of that, the time off the CPU. */
static int64_t own_time(const struct sonde_samples *samples, const struct sonde_sample_node *n,
                        bool waits)
{
    int64_t ns = waits ? off_cpu(n) : n->self_ns;

    for (uint32_t at = waits ? n->first_child : 0; at != 0;
         at = sonde_samples_node(samples, at)->next_sibling)
        ns -= off_cpu(sonde_samples_node(samples, at));
    return ns;
}

static void put_samples(const struct sonde_trace *trace, const struct sonde_samples *samples,
                        bool waits, struct snd_out *out, struct way *way)
{
    for (size_t i = 0; i < sonde_samples_thread_count(samples); i++) {
        const struct sonde_sample_thread *t = sonde_samples_thread(samples, i);
        for (uint32_t at = t->root; at != 0; at = sonde_samples_next(samples, at, t->root)) {
            const struct sonde_sample_node *n = sonde_samples_node(samples, at);
            if (!go_to(way, n->depth))
                return;
            if (at == t->root)
                put_thread_name(trace, t->thread, &way->path);
            else
                add_frame(&way->path, n->function, n->file, n->line);
            if (!keep_length(way, n->depth))
                return;
            put_path(out, &way->path, own_time(samples, n, waits));
        }
    }
}

static void put_functions(const struct sonde_trace *trace, const struct sonde_functions *functions,
                          const struct sonde_call_tree *tree, struct snd_out *out, struct way *way)
{
    const char *program = sonde_trace_process(trace, 0)->program;

    for (uint32_t at = 0; at < sonde_call_tree_count(tree); at++) {
        const struct sonde_call_node *n = sonde_call_tree_node(tree, at);
        if (!go_to(way, n->depth))
            return;
        if (n->function == SONDE_NONE) {
            add_frame(&way->path, (struct sonde_text){ program, strlen(program) },
                      (struct sonde_text){ "", 0 }, 0);
            if (way->path.length > 0) /* nothing before the first */
                memmove(way->path.bytes, way->path.bytes + 1, way->path.length--);
        } else {
            const struct sonde_function *f = sonde_functions_row(functions, n->function);
            bool is_c = f->line == 0 && f->file.length == 1 && f->file.bytes[0] == '~';
            add_frame(&way->path, f->name, is_c ? (struct sonde_text){ "", 0 } : f->file, f->line);
        }
        if (!keep_length(way, n->depth))
            return;
        put_path(out, &way->path, n->self_ns);
    }
}

static enum sonde_status write_functions(struct sonde_trace *trace, struct snd_out *out,
                                         struct way *way, struct sonde_error *err)
{
    struct sonde_functions *functions;
    struct sonde_call_tree *tree = NULL;
    enum sonde_status       st = sonde_functions_new(trace, &functions, err);

    if (st != SONDE_OK)
        return st;
    st = sonde_call_tree_new(functions, &tree, err);
    if (st == SONDE_OK && sonde_functions_count(functions) > 0)
        put_functions(trace, functions, tree, out, way);
    sonde_call_tree_free(tree);
    sonde_functions_free(functions);
    return st;
}

/* ---------------------------------------------------------------- the whole */

static bool counts_calls(const struct sonde_trace *trace)
{
    struct sonde_tally_row row;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        for (uint32_t n = 0; sonde_trace_tally(trace, p, n, &row); n++)
            if (row.kind == SND_TALLY_CALLS)
                return true;
    return false;
}

static enum sonde_status write_others(struct sonde_trace *trace, struct snd_out *out,
                                      struct way *way, struct sonde_error *err)
{
    struct sonde_tree *tree;

    if (counts_calls(trace))
        return write_functions(trace, out, way, err);
    enum sonde_status st = sonde_tree_new(trace, true, &tree, err);
    if (st != SONDE_OK)
        return st;
    st = write_ranges(tree, out, err);
    sonde_tree_free(tree);
    return st;
}

SND_EXPORT_WRITE(snd_export_folded)
{
    struct sonde_samples *samples;
    struct way            way = { 0 };

    enum sonde_status st = sonde_samples_new(trace, NULL, &samples, err);
    if (st != SONDE_OK)
        return st;
    if (sonde_samples_thread_count(samples) > 0)
        put_samples(trace, samples, options->off_cpu, out, &way);
    else
        st = write_others(trace, out, &way, err);
    if (st == SONDE_OK && (way.failed || way.path.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    sonde_buffer_release(&way.path);
    free(way.lengths);
    sonde_samples_free(samples);
    return st;
}
