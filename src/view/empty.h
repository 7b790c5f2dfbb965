/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/empty.h - what a view says when the trace has nothing for it.
 *
 * Layer: view. Threads: any.
 */
#ifndef SND_VIEW_EMPTY_H
#define SND_VIEW_EMPTY_H

#include "sonde/trace.h"

/*
 * How to record what the view shows; or, where the trace's metadata say that it was asked for, why
 * nothing came of it. Static; NULL: the view says it itself.
 */
const char *snd_empty_text(const struct sonde_trace *trace, const char *view);

#endif
