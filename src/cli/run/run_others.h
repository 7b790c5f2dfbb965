/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_others.h - a place for traces of processes that have changed their user.
 *
 * A program that root runs may become another user and then execute the next: that one may not
 * write into root's folder. It is given one inside it that anybody may write to who knows its name,
 * which is random, and told to the processes of the run alone. Below a folder that others may not enter it would
 * be out of reach: then it is in /tmp. What is there is moved when the run has ended.
 *
 * Layer: cli.
 */
#ifndef SND_CLI_RUN_RUN_OTHERS_H
#define SND_CLI_RUN_RUN_OTHERS_H

#include "cli/run/run_folder.h"

/* Makes it in the run's folder, and sets folder->others. Without root's rights there is none. */
void snd_run_others_make(struct snd_run_folder *folder);

/* Moves what is in it into the run's folder, and removes it. */
void snd_run_others_collect(struct snd_run_folder *folder);

#endif
