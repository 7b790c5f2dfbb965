/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/folders.h - folders of our own among the temporary files, and their end.
 */
#ifndef SND_BASE_FOLDERS_H
#define SND_BASE_FOLDERS_H

#include <stdbool.h>

#include "base/text/buf.h"

/*
 * Makes a folder "STEM-XXXXXX" that only its owner can enter, in $TMPDIR, /tmp or /var/tmp: nobody else can put a file or a
 * link there. false: none of them could be used, or memory is out; errno says why, *path is empty.
 */
#define SND_NO_SCRATCH "cannot make a temporary folder in $TMPDIR, /tmp or /var/tmp: %s"
bool snd_folder_scratch(const char *stem, struct sonde_buffer *path);

/* A temporary file without a name, for reading and writing; -1 with errno. */
int snd_temporary_file(void);

/* Removes a folder and all in it. Needs no memory: it may be out. */
void snd_folder_remove(const char *path);

#endif
