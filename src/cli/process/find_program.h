/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/find_program.h - the file that a name runs.
 *
 * Layer: cli. Threads: any, while none changes the environment.
 */
#ifndef SND_CLI_PROCESS_FIND_PROGRAM_H
#define SND_CLI_PROCESS_FIND_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* The first executable of that name on the PATH; `path` may be NULL. False: there is none. */
bool snd_find_on_path(const char *name, char path[PATH_MAX]);

/* What execvp() runs: a name with a slash is the path itself, whether or not it exists. */
bool snd_find_program(const char *name, char path[PATH_MAX]);

/* The same as /proc/PID/exe has it: absolute, links followed. Empty: there is no such file. */
void snd_program_file(const char *name, char path[PATH_MAX]);

#endif
