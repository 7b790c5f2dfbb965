/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/file/trace_file.h - the trace file as the recorder sees it: made, grown, mapped, trimmed.
 *
 * Layer:   record. Bytes: docs/FORMAT.md.
 * Threads: nothing here locks; the callers say who may call (state.h).
 */
#ifndef SND_RECORD_FILE_TRACE_FILE_H
#define SND_RECORD_FILE_TRACE_FILE_H

#include "record/state.h"

/*
 * Makes the file for the current cycle from snd_rec.path, stores its name in
 * snd_rec.file_path and its descriptor in snd_rec.file, reserves the first grain and maps the
 * header page at snd_header, filled in.
 * Errors: SONDE_E_IO, SONDE_E_NOMEM, SONDE_E_ARGUMENT (path too long); no file remains then.
 */
SND_CHECKED enum sonde_status snd_file_create(struct sonde_error *err);

/*
 * Gives [offset, offset + size) real blocks, so that a store into a mapping of it does not raise
 * SIGBUS when the disk is full. (Where it does all the
 * same: bus_errors.h.) Makes system calls. Returns 0 or an errno (ENOSPC, EDQUOT, ...).
 */
int snd_file_reserve(uint64_t offset, uint64_t size);

/* Free bytes of its file system when last queried; UINT64_MAX: unknown. */
uint64_t snd_file_free(void);

/* Maps a reserved part for writing and faults it in; NULL with errno set on failure. */
void *snd_file_map(uint64_t offset, uint64_t size);
/* The same without faulting it in: what is there already. */
void *snd_file_view(uint64_t offset, uint64_t size);

/* Ends a mapping of the file. */
void snd_file_unmap(void *map, size_t size);

/* Maps anonymous memory over a mapping: later stores are discarded. */
void snd_file_park(void *map, size_t size);

/* Gives back the disk blocks of [from, to), which no mapping may be using any more. */
void snd_file_punch(uint64_t from, uint64_t to);

/* Cuts the file to `size`, parks the header page and closes the descriptor. */
void snd_file_close(uint64_t size);

/* In a forked child: parks the header page and closes the descriptor; the file is the parent's. */
void snd_file_leave(void);

/* A second mapping of the header page, whatever became of the file's name; or NULL. */
struct snd_file_header *snd_file_header_again(void);

#endif
