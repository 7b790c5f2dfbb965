/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/file/trace_paths.h - where the trace's files are: names, making, replacing, removing.
 *
 * The folder is kept open from the start of the recording on. A program that then changes its
 * root (chroot) or whose folder is moved still reaches it, and so do its children. Without the
 * descriptor (programs close what they did not open) the path has to do.
 *
 * Layer:   record.
 * Threads: with the control lock or snd_rec.lock held; snd_place_reopen needs none.
 */
#ifndef SND_RECORD_FILE_TRACE_PATHS_H
#define SND_RECORD_FILE_TRACE_PATHS_H

#include "record/state.h"

/*
 * Opens the folder of snd_rec.path, and closes it. A folder that cannot be opened is not an error.
 */
void snd_place_open(void);
void snd_place_close(void);

/*
 * Makes the file of the current cycle: its name in snd_rec.file_path, its descriptor in
 * snd_rec.file. A trace of that name is replaced if the options say so, anything else never.
 * Errors: SONDE_E_IO, SONDE_E_ARGUMENT (path too long).
 */
SND_CHECKED enum sonde_status snd_place_create(struct sonde_error *err);

/*
 * Opens the current file again after the program closed its descriptor; the caller checks that it
 * is the same file.
 */
int snd_place_reopen(void);

/* Removes the current file, or that of the cycle that has just ended. */
void snd_place_remove(void);

#endif
