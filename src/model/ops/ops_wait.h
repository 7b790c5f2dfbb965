/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/ops_wait.h - the tree and averages of a walk that somebody makes.
 *
 *     struct snd_ops ops;
 *     snd_ops_wait(trace, &ops, err);
 *     ... a walk of another model ...
 *     snd_ops_finish(trace, &ops, err);        sonde_tree_new() and sonde_averages_new() have them lent from now on
 *     snd_ops_release(&ops);
 *
 * Where it matters in which order threads are walked, they do not wait, but make walks of their own when they are asked for. Averages are by name and shape, if there are shapes: sonde_averages_new() makes those by
 * name of their sums.
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_OPS_OPS_WAIT_H
#define SND_MODEL_OPS_OPS_WAIT_H

#include "base/error.h"
#include "sonde/model.h"

struct snd_ops {
    struct sonde_tree     *tree; /* or NULL */
    struct sonde_averages *averages;
};

/* Of a trace whose models are kept (model/kept.h). Release `ops` in any case, before snd_kept_end(). */
SND_CHECKED enum sonde_status snd_ops_wait(struct sonde_trace *trace, struct snd_ops *ops,
                                           struct sonde_error *err);
SND_CHECKED enum sonde_status snd_ops_finish(struct sonde_trace *trace, struct snd_ops *ops,
                                             struct sonde_error *err);
void                          snd_ops_release(struct snd_ops *ops);

/* tree.c: a merged tree that waits at the trace (snd_wait()); and is there. An error of the second frees it. */
SND_CHECKED enum sonde_status snd_tree_wait(struct sonde_trace *trace, struct sonde_tree **out,
                                            struct sonde_error *err);
SND_CHECKED enum sonde_status snd_tree_finish(struct sonde_tree **tree, struct sonde_error *err);

#endif
