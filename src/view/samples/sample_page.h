/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/samples/sample_page.h - what the views of samples share: which threads are merged, what stands above.
 *
 * Layer: view. Threads: as a document.
 */
#ifndef SND_VIEW_SAMPLES_SAMPLE_PAGE_H
#define SND_VIEW_SAMPLES_SAMPLE_PAGE_H

#include "view/samples/sample_tree_text.h"

/* What --group-by says: all threads are merged unless it names thread or process. */
enum sonde_samples_by snd_samples_by(const struct sonde_report_options *options);

/* Was time off the CPU requested? Then it is shown. */
bool snd_samples_has_waits(const struct sonde_trace *trace);

/* doc->data of these views. */
struct snd_samples_data {
    struct sonde_samples          *samples; /* by thread */
    struct sonde_samples          *shown;   /* merged as text shows them, or NULL */
    struct sonde_sample_functions *functions;
};

static inline struct snd_samples_data *snd_samples_data(const struct snd_doc *doc)
{
    return doc->data;
}

/*
 * Makes doc->data: the samples, and if `merged` those shown: merged as was asked, recursion folded.
 * Where several threads are merged, the time in which they waited is left out, unless that is all, or
 * was asked for.
 */
enum sonde_status snd_samples_load(struct sonde_trace                *trace,
                                   const struct sonde_report_options *options, bool merged,
                                   struct snd_doc *doc, struct sonde_error *err);

/* Pyinstrument's banner, and what was merged, left out and shortened, in a line each. */
void snd_samples_head(const struct snd_doc *doc, const struct sonde_report_options *options,
                      const struct snd_pypaths *paths, struct snd_out *out);

#endif
