/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command/diff_runs.h - `sonde diff --run`: records two commands in turn until their difference is known closely enough.
 *
 * A run of each comes first and is not compared: it fills caches. Then A B, B A, A B, ..: what drifts is in both alike.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_COMMAND_DIFF_RUNS_H
#define SND_CLI_COMMAND_DIFF_RUNS_H

#include "cli/commands.h"

#define SND_DIFF_RUNS_LEAST 3u /* of a side: of two, how much runs differ is hardly known */
#define SND_DIFF_RUNS_MOST 64u

struct snd_diff_runs {
    /* Set by the caller. */
    const char *commands[2];  /* A and B, in the words of a shell */
    const char *record;       /* options of sonde run, likewise; NULL: none */
    const char *folder;       /* a new one, which is kept; NULL: a temporary one */
    const char *by, *fail_if; /* as of struct sonde_diff_options */
    double      within;       /* per cent: the margin that is close enough */
    int64_t     seconds;      /* no round begins that would end later */

    struct sonde_trace *traces[2][SND_DIFF_RUNS_MOST];
    size_t              count;  /* runs of each side, as they are compared */
    double              margin; /* per cent; INFINITY: not known */
    struct sonde_buffer path;   /* of the folder */
};

/* -1 when there are runs to compare, or the exit status. Whatever it is: snd_diff_runs_release(). */
int  snd_diff_runs_make(const struct snd_command *self, struct snd_diff_runs *runs);
void snd_diff_runs_release(struct snd_diff_runs *runs);
/*
 * Says why they are not compared, and returns the exit status: of what these runs cannot tell, that of a wrong command line,
 * so that nobody who waits for the 1 of --fail-if takes it for a change.
 */
int snd_diff_refused(const struct snd_command *self, enum sonde_status why,
                     const struct sonde_error *err);
/* As sonde_diff() takes them: those of A, then those of B. */
void snd_diff_runs_list(const struct snd_diff_runs *runs,
                        struct sonde_trace         *all[2 * SND_DIFF_RUNS_MOST]);

#endif
