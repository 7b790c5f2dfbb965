/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options/option_help.h - the help of a command, from its table of options.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_OPTIONS_OPTION_HELP_H
#define SND_CLI_OPTIONS_OPTION_HELP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct snd_command;

/* Usage, summary and options; wrapped to the terminal, or to 100 columns where there is none. */
void snd_command_help(const struct snd_command *command, FILE *out);

/* Standard output's width in columns: $COLUMNS, or the terminal's; 0 if neither is known. */
uint32_t snd_terminal_width(void);

#endif
