/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/samples/sampled_lines.h - the lines view of a trace with samples: source lines with their share.
 *
 * Layer: view. Threads: as a trace.
 */
#ifndef SND_VIEW_SAMPLES_SAMPLED_LINES_H
#define SND_VIEW_SAMPLES_SAMPLED_LINES_H

#include "view/render/view.h"

/* Fills `doc` from the samples; *found is false, and nothing is filled, where none has a line. */
SND_CHECKED enum sonde_status snd_sampled_lines(struct sonde_trace                *trace,
                                                const struct sonde_report_options *options,
                                                struct snd_doc *doc, bool *found,
                                                struct sonde_error *err);

#endif
