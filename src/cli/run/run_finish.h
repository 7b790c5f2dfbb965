/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_finish.h - the end of `sonde run`: gives the trace its name, shows it or says why nothing
 * was recorded.
 *
 * Layer:   cli. Threads: one.
 */
#ifndef SND_CLI_RUN_RUN_FINISH_H
#define SND_CLI_RUN_RUN_FINISH_H

#include "cli/process/child.h"
#include "cli/run/run_args.h"
#include "cli/run/run_folder.h"

/* The program has ended. Signals stay blocked until the trace has its name. */
void snd_run_finish(const struct snd_run_args *args, struct snd_run_folder *folder, char **program,
                    const struct snd_child *child);

#endif
