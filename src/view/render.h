/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render.h - a document as text, JSON or CSV.
 *
 * Text follows torch.profiler's table: columns right-aligned, two blanks after each, rules of
 * dashes. JSON is {"view": .., "rows": [{..}], "totals": {..}, "ledger": {..}}.
 *
 * Layer: view. Threads: as the document.
 */
#ifndef SND_VIEW_RENDER_H
#define SND_VIEW_RENDER_H

#include "base/sink.h"
#include "sonde/export.h"
#include "view/doc.h"

void snd_render_text(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out);
void snd_render_json(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out);
void snd_render_csv(const struct snd_doc *doc, const struct sonde_report_options *options,
                    struct snd_out *out);

/* How many rows of `table` are shown. */
size_t snd_rows_shown(const struct snd_table *table, const struct sonde_report_options *options);

#endif
