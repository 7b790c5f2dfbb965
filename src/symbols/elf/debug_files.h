/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/elf/debug_files.h - the separate file that has a program's symbols and DWARF.
 *
 * Layer: symbols (sees base/).
 */
#ifndef SND_SYMBOLS_ELF_DEBUG_FILES_H
#define SND_SYMBOLS_ELF_DEBUG_FILES_H

#include "base/files/elf_image.h"

/*
 * Opens the debug file of `image`: by build id below /usr/lib/debug/.build-id, then by debug link beside the file,
 * in its folder's .debug, and below /usr/lib/debug. `file` and `opened` as in symbols.h: where the
 * latter is below another root (/proc/PID/root), that root is searched first. Only a file with the
 * same build id, or with the checksum of the link, is taken.
 */
bool snd_debug_file_open(const struct snd_image *image, const char *file, const char *opened,
                         struct snd_image *out);

/* By build id alone, for a file that is gone. */
bool snd_debug_file_by_id(const char *build_id, struct snd_image *out);

#endif
