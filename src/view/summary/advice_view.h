/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/summary/advice_view.h - the advice for a trace as rows, of the view `advice` and in the summary.
 *
 * Layer: view. Threads: a document belongs to one thread.
 */
#ifndef SND_VIEW_SUMMARY_ADVICE_VIEW_H
#define SND_VIEW_SUMMARY_ADVICE_VIEW_H

#include "model/highlights/advice.h"
#include "view/render/view.h"

#define SND_ADVICE_TITLE "What to try"

/* What its rows have. */
extern const struct snd_column snd_advice_columns[];
extern const size_t            snd_advice_column_count;

/* Before the view's first walk; the document keeps it. */
SND_CHECKED enum sonde_status snd_advice_begin(struct snd_doc *doc, struct sonde_trace *trace,
                                               struct snd_advisor **out, struct sonde_error *err);
/* Fills `table`, whose columns are those above. The document's summary is finished by then. */
SND_CHECKED enum sonde_status snd_advice_rows(struct snd_doc *doc, struct snd_advisor *advisor,
                                              struct snd_table *table, struct sonde_error *err);
/* The rows as sentences: of a section. */
void snd_advice_text(const struct snd_table *table, const struct sonde_report_options *options,
                     struct snd_out *out);

#endif
