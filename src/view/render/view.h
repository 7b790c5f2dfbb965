/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/view.h - what a view is, and the table of them: view/views.def.
 *
 * A new view: CONTRIBUTING.md has the list of places; a test fails until all of them are there.
 *
 * Layer: view. Threads: as a trace.
 */
#ifndef SND_VIEW_RENDER_VIEW_H
#define SND_VIEW_RENDER_VIEW_H

#include "base/count_of.h"
#include "sonde/export.h"
#include "view/render/doc.h"

struct snd_view {
    struct sonde_view_info info;
    /* Fills the document; snd_doc_summary() computes `doc->summary`. Rows: in the view's own order. */
    enum sonde_status (*build)(struct sonde_trace                *trace,
                               const struct sonde_report_options *options, struct snd_doc *doc,
                               struct sonde_error *err);
    enum snd_sorting { SND_SORTED, SND_FIXED, SND_SORTS_ITSELF } sorting; /* as in views.def */
};

#define SND_VIEW_BUILD(name)                                                                      \
    enum sonde_status name(struct sonde_trace *trace, const struct sonde_report_options *options, \
                           struct snd_doc *doc, struct sonde_error *err)
#define SND_VIEW(name, function, summary, groups, sorting, page, absence) SND_VIEW_BUILD(function);
#include "view/views.def"
#undef SND_VIEW

#endif
