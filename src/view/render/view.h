/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/view.h - the views and the table that lists them (views.c).
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
    bool fixed_order; /* a sort key makes no sense */
    bool own_order;   /* the view has read the sort key itself */
};

extern const struct snd_view snd_views[];
extern const size_t          snd_view_count;

#define SND_VIEW_BUILD(name)                                                                      \
    enum sonde_status name(struct sonde_trace *trace, const struct sonde_report_options *options, \
                           struct snd_doc *doc, struct sonde_error *err)
SND_VIEW_BUILD(snd_view_summary);
SND_VIEW_BUILD(snd_view_ops);
SND_VIEW_BUILD(snd_view_tree);
SND_VIEW_BUILD(snd_view_roofline);
SND_VIEW_BUILD(snd_view_depths);
SND_VIEW_BUILD(snd_view_model);
SND_VIEW_BUILD(snd_view_modules);
SND_VIEW_BUILD(snd_view_functions);
SND_VIEW_BUILD(snd_view_heap);
SND_VIEW_BUILD(snd_view_lines);
SND_VIEW_BUILD(snd_view_line_memory);
SND_VIEW_BUILD(snd_view_source);
SND_VIEW_BUILD(snd_view_asm);
SND_VIEW_BUILD(snd_view_samples);
SND_VIEW_BUILD(snd_view_graph);
SND_VIEW_BUILD(snd_view_layers);
SND_VIEW_BUILD(snd_view_counters);
SND_VIEW_BUILD(snd_view_range_counters);
SND_VIEW_BUILD(snd_view_function_counters);
SND_VIEW_BUILD(snd_view_kernels);
SND_VIEW_BUILD(snd_view_gpu);
SND_VIEW_BUILD(snd_view_memory);
SND_VIEW_BUILD(snd_view_tensors);
SND_VIEW_BUILD(snd_view_tensor_lines);
SND_VIEW_BUILD(snd_view_threads);
SND_VIEW_BUILD(snd_view_steps);
SND_VIEW_BUILD(snd_view_ledger);

#endif
