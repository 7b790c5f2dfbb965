/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/after/losses.h - says in one line what a trace has lost, and how much of it that is.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_AFTER_LOSSES_H
#define SND_CLI_AFTER_LOSSES_H

#include "sonde/sonde.h"

/*
 * "sonde: COMMAND: 12.5 % of the events were lost (3 of 24): why" on stderr if the ledger has a
 * loss; nothing otherwise. Reads the events only if there is one.
 */
void snd_say_losses(const char *command, struct sonde_trace *trace);

/* The same of the trace at `path`, if it can be opened. */
void snd_say_losses_at(const char *command, const char *path);

#endif
