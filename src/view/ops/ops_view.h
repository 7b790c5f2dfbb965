/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/ops/ops_view.h - torch.profiler's table, of whatever rows.
 *
 * Layer: view. Threads: as a document.
 */
#ifndef SND_VIEW_OPS_OPS_VIEW_H
#define SND_VIEW_OPS_OPS_VIEW_H

#include "view/render/view.h"

struct snd_ops {
    struct snd_doc                     *doc;
    const struct sonde_trace           *trace;
    const struct sonde_averages_totals *all;
    unsigned                            shown; /* columns that some row gives reason to show */
};

/* Rows are added in order; `all` (self_ns and device_ns alone) stays until the end. */
void snd_ops_begin(struct snd_ops *ops, struct snd_doc *doc, const struct sonde_trace *trace,
                   const struct sonde_averages_totals *all);
/* Texts are borrowed until the document is printed. */
void snd_ops_add(struct snd_ops *ops, const struct sonde_average *row);
/* Which of the columns that only some tables have are shown. */
void snd_ops_end(struct snd_ops *ops, bool memory, bool flops);

/* Sorts, writes as text and releases the document. */
SND_CHECKED enum sonde_status snd_ops_print(struct snd_doc                    *doc,
                                            const struct sonde_report_options *options,
                                            const struct sonde_sink *sink, struct sonde_error *err);

#endif
