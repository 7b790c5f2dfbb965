/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/file/source.h - the bytes of one trace file, from disk or from memory.
 *
 * Read by copying, never by mapping: a file that another process cuts short while it is
 * mapped would end the reader with SIGBUS.
 *
 * Layer: read (sees base/, format/). Threads: one at a time.
 */
#ifndef SND_READ_FILE_SOURCE_H
#define SND_READ_FILE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct snd_source {
    const char    *path;   /* owned; NULL for memory */
    const uint8_t *memory; /* borrowed */
    int            fd;     /* -1: opened for each read, since a folder may hold thousands */
    uint64_t       size;   /* when it was opened */
};

/*
 * Opens a regular file; `keep` keeps the descriptor.
 * Errors: SONDE_E_IO (also for what is no regular file), SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_source_open(struct snd_source *source, const char *path,
                                              bool keep, struct sonde_error *err);
/* Whether the file may be a trace of another tool's (import/import.h), by its first bytes. */
bool snd_source_is_foreign(const char *path);
/* Opens such a file, as the trace that it is imported to. Errors: as snd_import(). */
SND_CHECKED enum sonde_status snd_source_import(struct snd_source *source, const char *path,
                                                struct sonde_error *err);
void                          snd_source_release(struct snd_source *source);

/* Copies up to `size` bytes at `offset`; returns how many: fewer at the end or on failure. */
size_t snd_source_read(const struct snd_source *source, uint64_t offset, void *out, size_t size);

#endif
