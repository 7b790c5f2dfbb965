/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_finish.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/find_python.h"
#include "cli/process/living.h"
#include "cli/after/losses.h"
#include "cli/run/autostart.h"
#include "cli/run/run_name.h"
#include "cli/after/trace_symbols.h"

static const char *why_nothing(const struct snd_run_args *args)
{
    const struct snd_run_probes *probes = &args->probes;

    if (args->schedule)
        return "--schedule records no step that it reached: a step ends with sonde_step() in C, "
               "sonde.step(), step() of a profile or of an optimizer in Python";
    if (args->outside.why[0])
        return args->outside.why;
    if (args->outside.wanted)
        return "it took too little time for a sample (a higher --sample RATE takes more of them)";
    if (probes->unasked)
        return "it neither runs a Python that loads our probes (python -I, -E and -S do not, nor "
               "one with an empty environment) nor uses <sonde/record.h>";
    if (probes->gpu && !probes->ops && !probes->functions && !probes->lines && !probes->line_memory)
        return "it made no call of the CUDA driver";
    return probes->ops ? "it neither imports torch nor uses <sonde/record.h>"
                       : "what was asked for is recorded of Python programs, and it runs none that "
                         "loads our probes (python -I, -E and -S do not, nor one with an empty "
                         "environment, nor a program made by PyInstaller)";
}

static void say_moved(const struct snd_run_folder *folder)
{
    char    link[64], now[PATH_MAX];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", folder->fd);
    n = readlink(link, now, sizeof now - 1);
    now[n > 0 ? n : 0] = '\0';
    struct stat st;
    if (n > 0 && stat(now, &st) == 0)
        (void)snd_failure("run: the trace folder %s was moved to %s while the program ran; %s",
                          folder->path.bytes, now,
                          folder->files ? "the trace is there" : "nothing is in it");
    else
        (void)snd_failure("run: the trace folder %s was removed while the program ran: nothing "
                          "is left of the recording",
                          folder->path.bytes);
}

/* A Python process records itself, by it. */
static bool has_package(void)
{
    struct sonde_buffer folder = { 0 };
    bool                found = snd_autostart_find(&folder);

    sonde_buffer_release(&folder);
    return found;
}

static void say_nothing_recorded(const struct snd_run_args *args, struct snd_run_folder *folder,
                                 char **program)
{
    char                inner[PATH_MAX];
    struct snd_run_name name = snd_run_name(program);
    int                 refused = snd_run_folder_try(folder);

    snd_run_folder_read_inner(folder, inner, sizeof inner);
    if (refused)
        (void)snd_failure("run: %s recorded nothing: cannot create a file in %s: %s", program[0],
                          folder->path.bytes, strerror(refused));
    else if (inner[0])
        (void)snd_failure("run: %s recorded nothing here: it runs another 'sonde run', which "
                          "recorded to %s",
                          program[0], inner);
    else if (name.deaf)
        (void)snd_failure("run: %s recorded nothing: with -%c it does not load our probes",
                          program[0], name.deaf);
    else if (snd_runs_python(program) && !has_package())
        (void)
            snd_failure("run: %s recorded nothing: sonde's Python package is not beside this "
                        "program; install it (pip install sonde), set SONDE_PYTHON to its folder, "
                        "or sample the running process with 'sonde attach'",
                        program[0]);
    else
        (void)snd_failure("run: %s recorded nothing; unless a line above gives the reason, %s, or "
                          "it ended before "
                          "its first event; see 'man sonde-run'",
                          program[0], why_nothing(args));
}

/* Reports where the trace is, and its losses. */
static void say_recorded(const struct snd_run_args *args, const struct snd_run_folder *folder)
{
    const char *path = folder->path.bytes;

    if (folder->living > 0 && folder->living != SND_LIVING_UNKNOWN)
        fprintf(stderr,
                "sonde: %zu process%s of it still run%s and may record; the trace is the "
                "folder %s\n",
                folder->living, folder->living == 1 ? "" : "es", folder->living == 1 ? "s" : "",
                path);
    if (args->outside.left && !args->quiet && folder->files > 0)
        fprintf(stderr, "sonde: what still runs of it was sampled up to here; 'sonde attach PID' "
                        "goes on with it\n");
    if (args->after.is_kept) {
        if (!args->quiet && folder->files > 0)
            fprintf(stderr, "sonde: recorded %s; next: sonde report %s\n", path, path);
        snd_say_losses_at("run", path);
    }
}

/* Drops samples that were not requested if the program, or an inner run, recorded something. */
static void drop_samples(const struct snd_run_args *args, const struct snd_run_folder *folder)
{
    if (args->outside.wanted && args->outside.unasked &&
        (snd_run_folder_has_others(folder, "samples.sonde") ||
         faccessat(folder->fd, SND_INNER_RUN, F_OK, 0) == 0))
        snd_outside_drop(&args->outside);
}

/* Adds function names of the recorded addresses now, while the files are those that ran. */
static void name_addresses(const struct snd_run_args *args, const struct snd_run_folder *folder)
{
    struct sonde_error err;

    if (args->probes.heap && folder->files > 0 &&
        snd_trace_symbolize(folder->path.bytes, folder->living == 0, NULL, &err) != SONDE_OK)
        (void)snd_failure("run: functions are shown as addresses: %s", err.message);
}

void snd_run_finish(const struct snd_run_args *args, struct snd_run_folder *folder, char **program,
                    const struct snd_child *child)
{
    char inner[8];

    drop_samples(args, folder);
    snd_run_folder_settle(folder);
    if (folder->moved) {
        say_moved(folder);
    } else if (folder->files == 0 && folder->living == 0) {
        say_nothing_recorded(args, folder, program);
        snd_run_folder_undo(folder);
    } else {
        snd_run_folder_read_inner(folder, inner, sizeof inner);
        snd_child_leave(child);
        name_addresses(args, folder);
        if (folder->files > 0)
            snd_after_run_finish(&args->after, folder->path.bytes, folder->living > 0);
        say_recorded(args, folder);
    }
    snd_child_leave(child);
}
