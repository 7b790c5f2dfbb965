/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options/options.h - options described as tables; parsing and help (option_help.h) come from them.
 *
 * Each command has a table of its own and a struct of its own that the values go into.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_OPTIONS_OPTIONS_H
#define SND_CLI_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/count_of.h"

enum snd_option_kind {
    SND_OPTION_FLAG,   /* bool */
    SND_OPTION_TEXT,   /* const char * */
    SND_OPTION_LIST,   /* const char *; given several times, all of them with commas between */
    SND_OPTION_NUMBER, /* int64_t, from `least` */
    SND_OPTION_SIZE,   /* uint64_t bytes: a number with K, M or G (1024) */
    SND_OPTION_MAYBE,  /* int64_t, from 1; -1 where no number follows. "=N", or the next word */
    SND_OPTION_WORDS, /* as a list; "" where none follow. "=WORDS" alone: a program may come next */
};

struct snd_option {
    char                 letter;   /* 0: none */
    const char          *name;     /* without its dashes */
    const char          *argument; /* the metavariable in help; NULL for a flag */
    const char          *help;
    enum snd_option_kind kind;
    size_t               offset; /* in the command's struct */
    int64_t              least;
};

/* Options with a title of their own in help: from the option `first` up to the next group. */
struct snd_option_group {
    const char *first, *title;
};

struct snd_command {
    const char                    *name, *operands, *summary;
    const struct snd_option       *options;
    size_t                         option_count;
    const struct snd_option_group *groups; /* the last has no `first`; NULL: all are "options" */
    bool program_follows; /* the first operand ends the options: the rest is a program's */
    int (*run)(const struct snd_command *self, int argc, char **argv);
};

#define SND_EXIT_OK 0
#define SND_EXIT_FAILED 1
#define SND_EXIT_USAGE 2

/*
 * Reads argv[1..] into `values`; operands are moved to the front of argv, in order, and counted
 * in *operands. Returns -1 to go on, or the exit status: after --help, or a usage error, which
 * it has printed.
 */
int snd_options_parse(const struct snd_command *command, int argc, char **argv, void *values,
                      int *operands);

/* "500M", "2G", "4096": bytes, more than 0. */
bool snd_size_parse(const char *text, uint64_t *size);

/* Makes control characters question marks; returns `text`. */
char *snd_make_plain(char *text);

/* "sonde: NAME: message" on stderr, with a pointer to the help; returns SND_EXIT_USAGE. */
int snd_usage_error(const struct snd_command *command, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));
/* "sonde: message" on stderr; returns SND_EXIT_FAILED. */
int snd_failure(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

#endif
