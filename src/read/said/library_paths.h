/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/said/library_paths.h - where the interpreters of a trace and their libraries are installed: tells a
 * program's own files from them.
 *
 * Layer: read. Threads: as a trace.
 */
#ifndef SND_READ_SAID_LIBRARY_PATHS_H
#define SND_READ_SAID_LIBRARY_PATHS_H

#include <stdbool.h>

#include "base/data/arena.h"
#include "sonde/trace.h"

/* A list of texts, from metadata of the kind LIST. */
struct snd_path_list {
    struct sonde_text *items;
    uint32_t           count, room;
};

struct snd_library_paths {
    struct snd_path_list prefixes;
    struct snd_arena     arena; /* of the texts */
};

/* Adds the strings of a JSON list, escapes of quotes and backslashes undone. False: no memory. */
bool snd_path_list_add(struct snd_path_list *list, struct snd_arena *arena, struct sonde_text json);

/* From the metadata python.sys_prefixes of every process. False: no memory; release it anyway. */
bool snd_library_paths_read(struct snd_library_paths *paths, const struct sonde_trace *trace);
void snd_library_paths_release(struct snd_library_paths *paths);
/* Whether a file of Python code belongs to the interpreter or to an installed library. */
bool snd_library_paths_has(const struct snd_library_paths *paths, struct sonde_text file);

/* Whether `file` is in `folder`, or in one below it. */
bool snd_path_lies_in(struct sonde_text file, struct sonde_text folder);

/* Whether a frame is code of the program itself, with a line to show: no library's, no interpreter's, no libc's. */
bool snd_library_paths_own(const struct snd_library_paths *paths, const struct sonde_frame *frame,
                           bool is_native);

#endif
