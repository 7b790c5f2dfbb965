/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/render.h - a document as text, JSON or CSV.
 *
 * Text follows torch.profiler's table: columns right-aligned, two blanks after each, rules of
 * dashes. JSON is {"view": .., "rows": [{..}], "totals": {..}, "ledger": {..}}. "Columns" is JSON for a
 * program that draws the table: columns with title and kind, rows as lists of cells.
 *
 * Layer: view. Threads: as the document.
 */
#ifndef SND_VIEW_RENDER_RENDER_H
#define SND_VIEW_RENDER_RENDER_H

#include "base/text/json.h"
#include "base/files/sink.h"
#include "sonde/export.h"
#include "view/render/doc.h"

void snd_render_text(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out);

/* In the requested format, cut to the width of a terminal. Errors: SONDE_E_IO. */
SND_CHECKED enum sonde_status snd_render(const struct snd_doc              *doc,
                                         const struct sonde_report_options *options,
                                         const struct sonde_sink *sink, struct sonde_error *err);
/* What the caller gave, the rest as by default. Errors: SONDE_E_ARGUMENT: an unknown format. */
SND_CHECKED enum sonde_status snd_report_options(const struct sonde_report_options *given,
                                                 struct sonde_report_options       *used,
                                                 struct sonde_error                *err);

/* How many rows of `table` are shown. */
size_t snd_rows_shown(const struct snd_table *table, const struct sonde_report_options *options);

#endif
