/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/commands.h - the commands, which commands.def lists, and what they need.
 *
 * A new command: CONTRIBUTING.md has the list of places; a test fails until all of them are there.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_COMMANDS_H
#define SND_CLI_COMMANDS_H

#include "cli/console.h"
#include "cli/options/options.h"
#include "cli/trace_path.h"

#define SND_COMMAND(name) extern const struct snd_command snd_command_##name;
#include "cli/commands.def"
#undef SND_COMMAND

#endif
