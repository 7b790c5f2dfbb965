/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/runfinish.h - the end of `sonde run`: gives the trace its name, shows it or says why nothing
 * was recorded.
 *
 * Layer:   cli. Threads: one.
 */
#ifndef SND_CLI_RUNFINISH_H
#define SND_CLI_RUNFINISH_H

#include "cli/child.h"
#include "cli/runargs.h"
#include "cli/runfolder.h"

/* The program has ended. Signals stay blocked until the trace has its name. */
void snd_run_finish(const struct snd_run_args *args, struct snd_run_folder *folder, char **program,
                    const struct snd_child *child);

#endif
