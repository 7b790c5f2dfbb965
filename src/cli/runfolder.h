/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/runfolder.h - the folder that the processes of a `sonde run` write their files into.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUNFOLDER_H
#define SND_CLI_RUNFOLDER_H

#include <stddef.h>

/*
 * Makes the empty folder `path`; an older trace of that name waits as `aside` until there is a
 * newer one. -1, or an exit status after saying why.
 */
int snd_run_folder_make(const char *path, const char *aside);

/* Nothing was recorded: the older trace, if there was one, stays. */
void snd_run_folder_undo(const char *path, const char *aside);

/*
 * The program has ended: the older trace goes, and a single file becomes `path` itself. Returns
 * how many files there are; with none, it undoes.
 */
size_t snd_run_folder_settle(const char *path, const char *aside);

/* Removes a trace, file or folder; nothing but a trace may be there. */
void snd_run_folder_drop(const char *path);

#endif
