/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/ops_wait.h"

#include "model/ops/averages.h"
#include "read/walk/kinds.h"

/*
 * Nodes of a tree are in the order in which ranges are met, and averages charge a thread's memory to ranges of others: of one thread, any
 * walk will do.
 */
static bool is_of_one_thread(const struct sonde_trace *trace)
{
    return trace->thread_count == 1;
}

/* Frees without a size, and what GPUs did, are added to ranges by averages: others on the same walk would count them too. */
static enum sonde_status changes_ranges(struct sonde_trace *trace, bool *changes,
                                        struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       status = snd_trace_kinds(trace, &kinds, err);

    *changes = status != SONDE_OK || kinds->unsized_free || snd_trace_has_works(trace);
    return status;
}

/* Rows by name and shape, of which those by name are the sums; by name, where there are no shapes. */
static struct sonde_averages_options choose_groups(const struct sonde_trace *trace)
{
    struct sonde_averages_options options = SONDE_AVERAGES_OPTIONS_INIT;

    for (uint32_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].tables.shape_count > 1)
            options.groups = SONDE_GROUP_SHAPE;
    return options;
}

enum sonde_status snd_ops_wait(struct sonde_trace *trace, struct snd_ops *ops,
                               struct sonde_error *err)
{
    const struct sonde_averages_options options = choose_groups(trace);
    bool                                changes;

    *ops = (struct snd_ops){ 0 };
    if (!is_of_one_thread(trace))
        return SONDE_OK;
    enum sonde_status status = snd_tree_wait(trace, &ops->tree, err);
    if (status == SONDE_OK)
        status = changes_ranges(trace, &changes, err);
    if (status == SONDE_OK && !changes)
        status = snd_averages_wait(trace, &options, &ops->averages, err);
    return status;
}

/* Averages that nobody has made: of those by name there are only sums to make, then. */
static enum sonde_status make_averages(struct sonde_trace *trace, struct sonde_averages **out,
                                       struct sonde_error *err)
{
    const struct sonde_averages_options options = choose_groups(trace);

    return sonde_averages_new(trace, &options, out, err);
}

enum sonde_status snd_ops_finish(struct sonde_trace *trace, struct snd_ops *ops,
                                 struct sonde_error *err)
{
    enum sonde_status status = ops->tree ? snd_tree_finish(&ops->tree, err)
                                         : sonde_tree_new(trace, false, &ops->tree, err);

    if (status != SONDE_OK)
        return status;
    return ops->averages ? snd_averages_finish(&ops->averages, err)
                         : make_averages(trace, &ops->averages, err);
}

void snd_ops_release(struct snd_ops *ops)
{
    sonde_tree_free(ops->tree);
    sonde_averages_free(ops->averages);
}
