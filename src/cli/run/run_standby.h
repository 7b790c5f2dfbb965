/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_standby.h - `sonde run --standby`: a program that records nothing until `sonde record`
 * asks its processes to (cmd_record.c). They listen in the folder of its traces.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUN_RUN_STANDBY_H
#define SND_CLI_RUN_RUN_STANDBY_H

#include "cli/run/run_args.h"

#define SND_STANDBY_VARIABLE \
    "SONDE_STANDBY"                  /* the folder, absolute; in the program's environment */
#define SND_STANDBY_FOLDER "standby" /* in it: a socket of each process that listens */

/* What a run that is only to stand by cannot be asked for. -1 to go on, or the exit status. */
int snd_run_standby_check(const struct snd_command *self, const struct snd_run_args *args);

/* Runs the program; returns its exit status. `name`: of the program. */
int snd_run_standby(const struct snd_run_args *args, const char *name, size_t length,
                    char **program);

#endif
