/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/watcher.h - someone who is handed each range as a model adds it to a row: sonde diff, which
 * wants the times of each step besides their sums; exports of tables, which have a row for each.
 *
 * A rider (assembly.h) sees ranges as they are assembled, a watcher as they are counted: folded, and
 * with the row they belong to.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_OPS_WATCHER_H
#define SND_MODEL_OPS_WATCHER_H

#include "model/ranges/assembly.h"

struct snd_watcher {
    void *user;
    /* `id`: of averages (then r->node is how many ranges it lies in) snd_average_id(), of modules the node. Walks are by time. */
    void (*count)(void *user, uint32_t id, const struct snd_lane *lane, const struct snd_range *r);
    void (*step)(void *user, const struct snd_lane *lane, int64_t ns);
    /* Of averages: memory, marks, steps, counters, samples and what else is no range. Or NULL. */
    void (*event)(void *user, const struct snd_lane *lane, int64_t ns, const uint64_t *words);
};

#endif
