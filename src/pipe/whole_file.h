/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/whole_file.h - a file that is replaced whole, or not at all.
 *
 * Layer: pipe. Threads: any, for different files; of two at one file the later rename counts.
 */
#ifndef SND_PIPE_WHOLE_FILE_H
#define SND_PIPE_WHOLE_FILE_H

#include <stddef.h>

#include "base/error.h"

/*
 * Writes the bytes beside `path`, makes them durable, and gives them its name. A symbolic link
 * is followed, also to where no file is yet, and the mode of a file that was there is kept. A path that is no regular file
 * (/dev/stdout, a pipe) is written to as it is.
 * Errors: SONDE_E_IO, SONDE_E_NOMEM: then the old file is as it was and nothing lies beside it.
 */
SND_CHECKED enum sonde_status snd_whole_file_write(const char *path, const char *bytes,
                                                   size_t length, struct sonde_error *err);

/*
 * Whether that could begin: a folder that can be written to, or a thing that can be written.
 * Nothing is made or changed. For those who have much to do before they write.
 * Errors: SONDE_E_IO, SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_whole_file_check(const char *path, struct sonde_error *err);

#endif
