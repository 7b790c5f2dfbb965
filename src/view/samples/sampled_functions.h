/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/samples/sampled_functions.h - the functions view, made of samples.
 *
 * Layer: view. Threads: as a document.
 */
#ifndef SND_VIEW_SAMPLES_SAMPLED_FUNCTIONS_H
#define SND_VIEW_SAMPLES_SAMPLED_FUNCTIONS_H

#include "view/render/view.h"

/* Whether the trace has samples; then, of the main part, rows, sorted: doc->rows and doc->data are made anew. */
enum sonde_status snd_sampled_functions(struct sonde_trace                *trace,
                                        const struct sonde_report_options *options,
                                        struct snd_doc *doc, bool *found, struct sonde_error *err);

#endif
