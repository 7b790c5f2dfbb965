/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/console.h - what a command prints: errors, notes, JSON, progress.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_CONSOLE_H
#define SND_CLI_CONSOLE_H

#include "base/text/json.h"
#include "cli/options/options.h"
#include "sonde/sonde.h"

/* "sonde: NAME OBJECT: why" on stderr; the exit status that fits the error. */
int snd_report_error(const struct snd_command *command, const char *object,
                     const struct sonde_error *err);
/* "sonde: NAME: line" on stderr for each line; the buffer is used up. */
void snd_say_notes(const struct snd_command *command, const struct sonde_buffer *notes);
/* JSON on stdout: one object; values down to depth `lines` have a line each. */
struct snd_stdout_json {
    struct sonde_sink sink;
    struct snd_out    out;
    struct snd_json   json;
};
struct snd_json *snd_stdout_json_begin(struct snd_stdout_json *output, unsigned lines);
void             snd_stdout_json_end(struct snd_stdout_json *output);
/* Flushes stdout; the exit status. */
int snd_finish_stdout(const struct snd_command *command);

/* Prints progress on stderr after two seconds, if it is a terminal, until it is stopped. */
void snd_progress_start(const char *what);
void snd_progress_stop(void);

/* A terminal that understands escape sequences, and may have colours. */
bool snd_has_colours(FILE *out);

#endif
