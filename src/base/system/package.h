/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/package.h - finds files of the Python package that was installed with this program.
 *
 * `make` and `meson install` put the package below PREFIX/lib and the recorder's library in
 * PREFIX/lib; pip puts both below PREFIX/lib/python3.X/site-packages.
 *
 * Layer: base. Threads: any; nothing here keeps state.
 */
#ifndef SND_BASE_SYSTEM_PACKAGE_H
#define SND_BASE_SYSTEM_PACKAGE_H

#include <stdbool.h>

#include "base/text/buf.h"

/*
 * Finds `file` ("_native/libsonde_record.so.1") of the package: of the one that $SONDE_PYTHON names, or
 * else of the one below this program's PREFIX. Its absolute path is in `path`; false if there is none.
 */
bool snd_package_find(const char *file, struct sonde_buffer *path);

/* The last name of `path` is cut off. False if there is no other. */
bool snd_path_up(struct sonde_buffer *path);

#endif
