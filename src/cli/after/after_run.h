/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/after/after_run.h - what `sonde run` and `sonde attach` do with a trace once it is recorded: keep
 * it, write it in another format, show it.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_AFTER_AFTER_RUN_H
#define SND_CLI_AFTER_AFTER_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/buf.h"
#include "cli/options/view_options.h"
#include "sonde/export.h"

struct snd_after_run {
    const char          *output; /* the value of -o, or NULL */
    bool                 print;
    const char          *view;    /* views to show, separated by commas; NULL: all with data */
    bool                 unasked; /* `view` is what the modes show: nobody named one */
    const char          *aside;   /* without `print`: a view that is shown on stderr, or NULL */
    bool                 quiet;   /* do not say where the trace of a `print` is kept */
    struct snd_view_args shown;   /* its sort key applies to the first view only */
    /* Set by _place, when `output` is not to be a trace: */
    const struct sonde_exporter_info *format;
    bool                              is_kept; /* the trace itself stays: set by _place */
    char *scratch; /* a folder made for the trace alone, or NULL; owned */
};

/* Checks the values before anything runs. -1 to go on, or the exit status. */
int snd_after_run_check(const struct snd_command *self, const struct snd_after_run *after);

/*
 * Is the sort key one of the first view that will be shown? `views`, with commas, are those that
 * are recorded, if none was asked for. -1 to go on, or the exit status.
 */
int snd_after_run_check_sort(const struct snd_command *self, const struct snd_after_run *after,
                             const char *views);

/*
 * Where the trace of `subject`, a name of `length` bytes, goes: as -o says; beside the file that is
 * made of it; or, when it is only shown, into a new folder among the temporary files. False if no
 * such folder can be made: then it has said so on stderr.
 */
bool snd_after_run_place(struct snd_after_run *after, const char *subject, size_t length,
                         struct sonde_buffer *trace);

/*
 * Shows and writes what was asked for; false if that failed. A trace that was not asked for is
 * removed, or kept until the next one (kept_trace.h) if it was shown; unless what was to be made of it
 * failed, or it `is_live`: processes still write it. Then it says where the trace is. Does not return when nobody reads what is shown any more: ends
 * us by the same signal.
 */
bool snd_after_run_finish(const struct snd_after_run *after, const char *trace, bool is_live);

/* Nothing was recorded: removes the folder made for the trace. Also frees what `after` owns. */
void snd_after_run_release(struct snd_after_run *after);

#endif
