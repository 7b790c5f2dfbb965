/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/trace_path.h - the trace that a command line means.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_TRACE_PATH_H
#define SND_CLI_TRACE_PATH_H

#include "cli/options/options.h"
#include "sonde/sonde.h"

/*
 * Sets argv[0] to the one trace that a command takes: the operand, or without one the latest
 * NAME.sonde of the current folder, which it names on stderr. -1 to go on, or the exit status.
 */
int snd_take_trace(const struct snd_command *command, int operands, char **argv);
/* The same, and opens it. */
int snd_open_trace(const struct snd_command *command, int operands, char **argv,
                   struct sonde_trace **trace);

#endif
