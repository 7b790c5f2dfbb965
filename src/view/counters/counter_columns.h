/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/counters/counter_columns.h - columns of counters of threads, two for each: total and self.
 *
 * Layer: view. Threads: one at a time.
 */
#ifndef SND_VIEW_COUNTERS_COUNTER_COLUMNS_H
#define SND_VIEW_COUNTERS_COUNTER_COLUMNS_H

#include "model/counters/counter_names.h"
#include "view/render/view.h"

#define SND_COUNTER_COLUMNS (2 * SND_THREAD_COUNTERS_MOST)

/* Writes them to `columns`, texts being kept by `doc`; returns how many. */
size_t snd_counter_columns(struct snd_doc *doc, const struct snd_counter_names *names,
                           struct snd_column *columns);

/* Writes the cells of a row; returns the next one. */
struct snd_cell *snd_counter_cells(struct snd_cell *cell, uint32_t count, const uint64_t *total,
                                   const uint64_t *self);

#endif
