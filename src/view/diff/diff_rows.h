/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/diff/diff_rows.h - the rows of `sonde diff`: their columns, order and cells.
 *
 * Layer: view. Threads: any.
 */
#ifndef SND_VIEW_DIFF_DIFF_ROWS_H
#define SND_VIEW_DIFF_DIFF_ROWS_H

#include "model/diff/diff.h"
#include "view/diff/diff_conditions.h"
#include "view/render/doc.h"

/* Verdicts in words, by enum snd_diff_verdict. */
extern const char *const snd_diff_verdicts[];

/* Whether the row lies outside every step: then it is not compared. */
bool snd_diff_is_outside(const struct snd_diff_row *row);

/* A ratio in percent, or an empty cell. Rounded: the last digits depend on the processor. */
struct snd_cell snd_diff_percent(bool known, double ratio);

/*
 * Adds all rows to the document, changed ones first. `failed` grows by the number of rows for which
 * one of the conditions holds. False when out of memory.
 */
bool snd_diff_add_rows(struct snd_doc *doc, const struct snd_diff *d,
                       const struct snd_conditions *conditions, size_t *failed);

#endif
