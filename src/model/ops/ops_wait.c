/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/ops_wait.h"

#include "model/ops/averages.h"
#include "read/walk/kinds.h"

/* Nodes of a tree are in the order in which ranges are met: of one thread, any walk will do. */
static bool can_tree_wait(const struct sonde_trace *trace)
{
    return trace->thread_count == 1;
}

/*
 * Averages of several threads are by time where there is memory, and else among all processors. They follow what GPUs did in fields of a range
 * that are other models' as well.
 */
static enum sonde_status can_averages_wait(struct sonde_trace *trace, bool *can,
                                           struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       status = snd_trace_kinds(trace, &kinds, err);

    *can = status == SONDE_OK && !snd_trace_has_works(trace) &&
           (trace->thread_count == 1 || kinds->events[SND_EV_ALLOC]);
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
    bool                                can;

    *ops = (struct snd_ops){ 0 };
    enum sonde_status status = can_averages_wait(trace, &can, err);
    if (status == SONDE_OK && can_tree_wait(trace))
        status = snd_tree_wait(trace, &ops->tree,
                               err); /* before averages: both keep something in a range */
    if (status == SONDE_OK && can)
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
