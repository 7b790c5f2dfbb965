/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/import.h - traces of other tools, as traces of sonde.
 *
 *     text/    a window over the file's text, unpacked; JSON read where it lies
 *     map/     an event of the file, and what it is in a trace
 *     out/     put in order, written
 *
 * A file is read once, an event at a time; memory does not grow with it but by its different names, ways of
 * calling operators and kinds of work.
 *
 * Layer: import (sees base/, format/). Threads: one at a time.
 */
#ifndef SND_IMPORT_IMPORT_H
#define SND_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Whether a file that begins so may be a trace of another tool's. */
bool snd_import_may_be(const void *bytes, size_t length);

/*
 * Reads `from` (`path` is its name, for messages and for the rank) and writes a packed trace to `to`, an empty file.
 * `level`: of zstd; -1: nothing is compressed.
 * Errors: SONDE_E_FORMAT (no event in it, with line and byte of what is wrong), SONDE_E_NOMEM, SONDE_E_IO.
 */
SND_CHECKED enum sonde_status snd_import(int from, const char *path, int to, int level,
                                         struct sonde_error *err);
/* The same of text in memory. */
SND_CHECKED enum sonde_status snd_import_text(const void *text, size_t length, const char *path,
                                              int to, int level, struct sonde_error *err);

/* Imports the file at `path` into a temporary file without a name; its descriptor in `*fd`. Errors: as above. */
SND_CHECKED enum sonde_status snd_import_aside(const char *path, int *fd, struct sonde_error *err);

#endif
