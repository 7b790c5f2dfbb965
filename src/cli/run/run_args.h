/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_args.h - the options of `sonde run`, and what is wrong with a combination of them.
 *
 * Layer:   cli. Threads: one.
 */
#ifndef SND_CLI_RUN_RUN_ARGS_H
#define SND_CLI_RUN_RUN_ARGS_H

#include "cli/after/after_run.h"
#include "cli/options/options.h"
#include "cli/process/outside.h"
#include "cli/run/run_parents.h"
#include "cli/run/run_probes.h"

struct snd_run_args {
    const char            *schedule;
    uint64_t               max_size;
    int64_t                repeat;
    bool                   keep_last, quiet, verbose, roof, standby;
    struct snd_run_probes  probes;
    struct snd_after_run   after;
    struct snd_run_parents parents;
    struct snd_outside     outside;
};

/*
 * Checks the options before anything is started: the recorder and the probes run in another
 * process and cannot report a mistake there. -1 to go on, or the exit status.
 */
int snd_run_args_check(const struct snd_command *self, struct snd_run_args *args, int operands);

/* --gpu=HOW, of `sonde record` too: NULL, "", full or light. -1 to go on, or the exit status. */
int snd_run_args_check_gpu(const struct snd_command *self, const char *how);

/*
 * What --output and --view show must be recorded. Call it once the default probes are chosen
 * (snd_run_probes_default). -1 to go on, or the exit status.
 */
int snd_run_args_check_recorded(const struct snd_command *self, const struct snd_run_args *args);

#endif
