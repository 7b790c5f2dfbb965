/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/commands.h - the commands; commands.c lists them.
 *
 * A new command: CONTRIBUTING.md has the list of places; a test fails until all of them are there.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_COMMANDS_H
#define SND_CLI_COMMANDS_H

#include "base/json.h"
#include "cli/options/options.h"
#include "sonde/sonde.h"

extern const struct snd_command snd_command_run, snd_command_report, snd_command_export,
    snd_command_check, snd_command_pack, snd_command_convert, snd_command_plan, snd_command_model,
    snd_command_layers, snd_command_doctor, snd_command_attach, snd_command_completion,
    snd_command_diff, snd_command_view, snd_command_sql;

extern const struct snd_command *const snd_commands[];
extern const size_t                    snd_command_count;

/* What several commands need. */

/* Sets argv[0] to the one trace that a command takes: the operand, or without one the latest
 * NAME.sonde of the current folder, which it names on stderr. -1 to go on, or the exit status.
 */
int snd_take_trace(const struct snd_command *command, int operands, char **argv);
/* The same, and opens it. */
int snd_open_trace(const struct snd_command *command, int operands, char **argv,
                   struct sonde_trace **trace);
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

enum snd_path_kind {
    SND_PATH_NONE,   /* nothing is there */
    SND_PATH_TRACE,  /* a trace file */
    SND_PATH_FOLDER, /* a folder that holds trace files and nothing else, or nothing */
    SND_PATH_OTHER,
};
enum snd_path_kind snd_path_kind(const char *path);

/* Prints progress on stderr after two seconds, if it is a terminal, until it is stopped. */
void snd_progress_start(const char *what);
void snd_progress_stop(void);

#endif
