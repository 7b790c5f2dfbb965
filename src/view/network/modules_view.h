/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/network/modules_view.h - what the views of modules share.
 *
 * Layer: view. Threads: as a document.
 */
#ifndef SND_VIEW_NETWORK_MODULES_VIEW_H
#define SND_VIEW_NETWORK_MODULES_VIEW_H

#include "view/render/view.h"

/* The modules of the trace. Owns: the document. Errors: as sonde_modules_new(). */
SND_CHECKED enum sonde_status snd_modules_load(struct sonde_trace                *trace,
                                               const struct sonde_report_options *options,
                                               struct snd_doc *doc, struct sonde_modules **out,
                                               struct sonde_error *err);

#endif
