/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stacks/tree_stacks.h"

#include <stdlib.h>

#include "format/limits.h"

static enum sonde_status open_functions(struct snd_tree_stacks *s, struct sonde_trace *trace,
                                        struct sonde_error *err)
{
    enum sonde_status st = sonde_functions_new(trace, &s->functions, err);

    if (st != SONDE_OK)
        return st;
    if (sonde_functions_count(s->functions) > 0)
        return sonde_call_tree_new(s->functions, &s->calls, err);
    sonde_functions_free(s->functions);
    s->functions = NULL;
    return SONDE_OK;
}

enum sonde_status snd_tree_stacks_open(struct snd_tree_stacks *s, struct sonde_trace *trace,
                                       struct sonde_error *err)
{
    *s = (struct snd_tree_stacks){ .at = 1 }; /* 0 is the root */
    s->frames = calloc(SND_MIXED_FRAMES_MAX, sizeof *s->frames);
    if (!s->frames)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    enum sonde_status st = open_functions(s, trace, err);
    if (st == SONDE_OK && !s->functions)
        st = sonde_tree_new(trace, false, &s->ranges, err);
    if (st == SONDE_OK && s->ranges && sonde_tree_count(s->ranges) < 2)
        st = snd_fail(err, SONDE_E_STATE,
                      "the trace has no samples, Python functions or ranges; record them with "
                      "sonde run --sample or --functions");
    return st;
}

void snd_tree_stacks_release(struct snd_tree_stacks *s)
{
    sonde_call_tree_free(s->calls);
    sonde_functions_free(s->functions);
    sonde_tree_free(s->ranges);
    free(s->frames);
}

static void add_frame(struct snd_tree_stacks *s, struct sonde_text name, struct sonde_text file,
                      uint32_t line)
{
    if (s->count < SND_MIXED_FRAMES_MAX) /* as of samples */
        s->frames[s->count++] = (struct snd_mixed_frame){
            .frame = { .function = name, .file = file, .line = line, .first_line = line },
            .is_range = s->ranges != NULL
        };
}

static void take_range(struct snd_tree_stacks *s, uint32_t at)
{
    const struct sonde_node *node = sonde_tree_node(s->ranges, at);

    s->call_count = node->count;
    s->self_ns = node->self_ns;
    for (; at != 0; at = node->parent) {
        node = sonde_tree_node(s->ranges, at);
        add_frame(s, node->name, (struct sonde_text){ "", 0 }, 0);
    }
}

static void take_call(struct snd_tree_stacks *s, uint32_t at)
{
    const struct sonde_call_node *node = sonde_call_tree_node(s->calls, at);

    s->call_count = node->calls < 0x1p64 ? (uint64_t)node->calls : UINT64_MAX;
    s->self_ns = node->self_ns;
    for (; at != 0; at = node->parent) {
        node = sonde_call_tree_node(s->calls, at);
        const struct sonde_function *f = sonde_functions_row(s->functions, node->function);
        bool is_c = f->line == 0 && f->file.length == 1 && f->file.bytes[0] == '~';
        add_frame(s, f->name, is_c ? (struct sonde_text){ "", 0 } : f->file, f->line);
    }
}

bool snd_tree_stacks_next(struct snd_tree_stacks *s)
{
    size_t end = s->functions ? sonde_call_tree_count(s->calls) : sonde_tree_count(s->ranges);

    while (s->at < end) {
        s->count = 0;
        if (s->functions)
            take_call(s, s->at++);
        else
            take_range(s, s->at++);
        s->self_ns = s->self_ns > 0 ? s->self_ns : 0;
        if (s->count > 0 && (s->self_ns > 0 || s->call_count > 0))
            return true;
    }
    return false;
}
