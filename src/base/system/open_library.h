/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/open_library.h - shared libraries that are opened when they are needed.
 *
 * The static `sonde` (the option static_program of meson) has all in it that it can have, and opens none: a library
 * would bring a second C library into the process.
 *
 * Layer: base. Threads: as dlopen().
 */
#ifndef SND_BASE_SYSTEM_OPEN_LIBRARY_H
#define SND_BASE_SYSTEM_OPEN_LIBRARY_H

#include <dlfcn.h>
#include <stddef.h>

#include "snd_config.h"

/* NULL: it is not there, or cannot be opened. */
static inline void *snd_open_library(const char *path)
{
#if SND_STATIC_PROGRAM
    (void)path;
    return NULL;
#else
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
#endif
}

#endif
