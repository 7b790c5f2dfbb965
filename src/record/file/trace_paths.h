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

/* Opens the folder of snd_rec.path and gives it back. That it cannot be opened is no failure. */
void snd_place_open(void);
void snd_place_close(void);

/*
 * Makes the file of the current cycle: its name in snd_rec.file_path, its descriptor in
 * snd_rec.file. A trace of that name is replaced if the options say so, anything else never.
 * Errors: SONDE_E_IO, SONDE_E_ARGUMENT (path too long).
 */
SND_CHECKED enum sonde_status snd_place_create(struct sonde_error *err);

/* Opens the file of now again, which the program has closed; the caller looks whether it is it. */
int snd_place_reopen(void);

/* Removes the file of now, or of the cycle that has just ended. */
void snd_place_remove(void);

#endif
