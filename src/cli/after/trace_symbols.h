/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/after/trace_symbols.h - the functions at the addresses of a trace, found after the run and
 * written into its files, so that it can be read on another machine.
 *
 * Layer: cli. Threads: one at a time.
 */
#ifndef SND_CLI_AFTER_TRACE_SYMBOLS_H
#define SND_CLI_AFTER_TRACE_SYMBOLS_H

#include <stdbool.h>

#include "symbols/symbols.h"

/*
 * Adds a chunk of strings and symbols to each file of the trace whose frames are addresses without a
 * symbol. `ended`: no process writes to them any more; otherwise a file that was not closed is left
 * unchanged. `stats` (may be NULL): what was found.
 * Errors: as sonde_trace_open; SONDE_E_IO: a file could not be written. The trace is readable whatever
 * happens.
 */
SND_CHECKED enum sonde_status snd_trace_symbolize(const char *path, bool ended,
                                                  struct snd_symbol_stats *stats,
                                                  struct sonde_error      *err);

#endif
