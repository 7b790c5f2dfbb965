/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/fd_io.h - whole reads and writes of file descriptors, interrupted system calls repeated.
 *
 * Layer: base. Threads: any. No allocation but in snd_sync_folder.
 */
#ifndef SND_BASE_FILES_FD_IO_H
#define SND_BASE_FILES_FD_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes all of it. False, with errno: some of it may be written. */
bool snd_write_all(int fd, const void *data, size_t size);

/* Reads `size` bytes at `offset`. How many there were: fewer at the end of the file or on an error. */
size_t snd_read_at(int fd, uint64_t offset, void *out, size_t size);

/* Opens a regular file to read; -1: it cannot, or is none. Not blocking: the name may lead to a pipe by now. */
int snd_open_regular(const char *path, uint64_t *size);

/* Makes a new name in the folder of `path` durable. A failure is ignored: the file itself is whole. */
void snd_sync_folder(const char *path);

#endif
