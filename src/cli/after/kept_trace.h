/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/after/kept_trace.h - the trace of the last `--print`, which was not asked for by a name: it stays
 * in the user's cache folder until the next one replaces it.
 *
 *     $XDG_CACHE_HOME/sonde/last/NAME.sonde    (~/.cache/sonde/last/NAME.sonde)
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_AFTER_KEPT_TRACE_H
#define SND_CLI_AFTER_KEPT_TRACE_H

#include <stdbool.h>

#include "base/text/buf.h"

/*
 * Moves a trace, file or folder, to where the last one is kept, and appends its new path to `path`.
 * False: it is where it was, because there is no such folder that is the user's alone, or no room.
 */
bool snd_kept_store(const char *trace, struct sonde_buffer *path);

/*
 * Sets the path of what is kept, if anything is: a trace, unless somebody has put another file there.
 * `is_from_here`: the current folder is the one where it was recorded.
 */
bool snd_kept_find(struct sonde_buffer *path, bool *is_from_here);

#endif
