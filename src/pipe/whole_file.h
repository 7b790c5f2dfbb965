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
 * is followed, and the mode of a file that was there is kept. A path that is no regular file
 * (/dev/stdout, a pipe) is written to as it is.
 * Errors: SONDE_E_IO, SONDE_E_NOMEM: then the old file is as it was and nothing lies beside it.
 */
SND_CHECKED enum sonde_status snd_whole_file_write(const char *path, const char *bytes,
                                                   size_t length, struct sonde_error *err);

#endif
