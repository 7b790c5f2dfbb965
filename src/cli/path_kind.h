/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/path_kind.h - what is at a path: a trace, a folder of traces, something else.
 *
 * Layer: cli. Threads: any.
 */
#ifndef SND_CLI_PATH_KIND_H
#define SND_CLI_PATH_KIND_H

enum snd_path_kind {
    SND_PATH_NONE,   /* nothing is there */
    SND_PATH_TRACE,  /* a trace file */
    SND_PATH_FOLDER, /* a folder that holds trace files and nothing else, or nothing */
    SND_PATH_OTHER,
};
enum snd_path_kind snd_path_kind(const char *path);

#endif
