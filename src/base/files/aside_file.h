/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/aside_file.h - a file that is written beside its target and renamed, so that the old one
 * stays whole until the new one is.
 *
 *     int fd = snd_aside_open(target, 0666, &aside);     ".NAME.PID-N" in the same folder
 *     good = write(fd, ...);
 *     snd_aside_end(fd, aside, target, good, true);      renamed, or removed
 *
 * Layer: base. Threads: any; of two at one target the later rename counts.
 */
#ifndef SND_BASE_FILES_ASIDE_FILE_H
#define SND_BASE_FILES_ASIDE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* A new file, hidden from readers of the folder. *aside is to be freed; it is NULL, and -1 returned with errno, on failure. */
int snd_aside_open(const char *target, mode_t mode, char **aside);

/*
 * Closes the file and gives it its target's name; removes it if not `good`, with errno as it was, or if that fails.
 * `durable`: it is on disk before. Returns whether the target is the new file; otherwise errno is set.
 */
bool snd_aside_end(int fd, const char *aside, const char *target, bool good, bool durable);

#endif
