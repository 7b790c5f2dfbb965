/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/diff_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "base/files/folders.h"
#include "base/system/clock_ns.h"
#include "base/text/buf.h"
#include "cli/process/child.h"
#include "cli/run/run_folder.h"

static int64_t now_ns(void)
{
    return (int64_t)snd_clock_ns(CLOCK_MONOTONIC);
}

/* --------------------------------------------------------------- the words */

/* Splits `text` as a shell does; nothing is executed for it. -1 to go on, or the exit status. */
static int split(const struct snd_command *self, const char *what, const char *text,
                 wordexp_t *words)
{
    static const struct {
        int         error;
        const char *why;
    } reasons[] = {
        { WRDE_BADCHAR, "only one command with its words, without pipes and redirections: put "
                        "those into a script" },
        { WRDE_CMDSUB, "commands inside of commands are not run: put them into a script" },
        { WRDE_SYNTAX, "a quote is not closed" },
    };
    int error = wordexp(text, words, WRDE_NOCMD | WRDE_SHOWERR);

    if (error == 0)
        return -1;
    for (size_t i = 0; i < SND_COUNT_OF(reasons); i++)
        if (reasons[i].error == error)
            return snd_usage_error(self, "%s: '%.60s': %s", what, text, reasons[i].why);
    return snd_failure("%s: out of memory", self->name);
}

/* -------------------------------------------------------------- the folder */

static int make_folder(const struct snd_command *self, struct snd_diff_runs *runs)
{
    if (!runs->folder && snd_folder_scratch("sonde-diff", &runs->path))
        return -1;
    if (!runs->folder)
        return snd_failure("%s: " SND_NO_SCRATCH, self->name, strerror(errno));
    snd_buf_text(&runs->path, runs->folder);
    if (!runs->path.failed && mkdir(runs->folder, 0700) == 0)
        return -1;
    return snd_failure("%s: cannot create %s: %s", self->name, runs->folder, strerror(errno));
}

/* --------------------------------------------------------------- one run */

/* While it lives, what the programs print goes nowhere, and they read nothing: the table is ours. */
struct silence {
    int kept[2]; /* our standard input and output */
};

static bool begin_silence(struct silence *silence)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    fflush(stdout);
    silence->kept[0] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    silence->kept[1] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    bool done = nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
                dup2(nothing, STDOUT_FILENO) >= 0;
    if (nothing >= 0)
        close(nothing);
    return done;
}

static void end_silence(const struct silence *silence)
{
    for (int i = 0; i < 2; i++) {
        if (silence->kept[i] < 0) { /* it was closed */
            close(i);
            continue;
        }
        dup2(silence->kept[i], i);
        close(silence->kept[i]);
    }
}

/* `sonde run -q -o PATH OPTIONS -- COMMAND`; -1 if it ended well, or the exit status. */
static int record(const struct snd_command *self, const wordexp_t *options,
                  const wordexp_t *command, char *path)
{
    char             own[PATH_MAX];
    char             run[] = "run", quiet[] = "-q", output[] = "-o", end[] = "--";
    struct snd_child child = { 0 };
    struct silence   silence;
    size_t           n = 0;
    char           **words = calloc(7 + options->we_wordc + command->we_wordc, sizeof *words);
    ssize_t          length = readlink("/proc/self/exe", own, sizeof own - 1);

    if (!words || length <= 0) {
        free(words);
        return snd_failure("%s: %s", self->name, words ? strerror(errno) : "out of memory");
    }
    own[length] = '\0';
    char *first[] = { own, run, quiet, output, path };
    for (size_t i = 0; i < SND_COUNT_OF(first); i++)
        words[n++] = first[i];
    for (size_t i = 0; i < options->we_wordc; i++)
        words[n++] = options->we_wordv[i];
    words[n++] = end;
    for (size_t i = 0; i < command->we_wordc; i++)
        words[n++] = command->we_wordv[i];
    int status = begin_silence(&silence) ? snd_child_run(words, &child) : 1;
    end_silence(&silence);
    snd_child_leave(&child);
    free(words);
    if (status >= 0)
        return snd_failure("%s: '%s' could not be run", self->name, command->we_wordv[0]);
    if (child.wait_status == 0)
        return -1;
    if (WIFSIGNALED(child.wait_status))
        return snd_failure("%s: '%s' was ended by signal %d", self->name, command->we_wordv[0],
                           WTERMSIG(child.wait_status));
    return snd_failure("%s: '%s' ended with status %d", self->name, command->we_wordv[0],
                       WEXITSTATUS(child.wait_status));
}

/* ----------------------------------------------------------------- rounds */

struct words {
    wordexp_t options, commands[2];
};

/* Records side `side` once; opened as `trace`, or removed again if that is NULL. */
static int run_side(const struct snd_command *self, struct snd_diff_runs *runs,
                    const struct words *words, int side, struct sonde_trace **trace)
{
    struct sonde_buffer path = { 0 };
    char                what[48], number[24];

    snprintf(number, sizeof number, "%zu", runs->count + 1);
    snprintf(what, sizeof what, "sonde: run %s of %c", trace ? number : "0", 'A' + side);
    snd_buf_format(&path, "%s/%c%s.sonde", runs->path.bytes, 'a' + side, trace ? number : "0");
    if (path.failed)
        return snd_failure("%s: out of memory", self->name);
    snd_progress_start(what);
    int status = record(self, &words->options, &words->commands[side], path.bytes);
    snd_progress_stop();
    if (status < 0 && trace)
        status = snd_open_trace(self, 1, &path.bytes, trace);
    else if (status < 0)
        snd_run_folder_drop(path.bytes);
    sonde_buffer_release(&path);
    return status;
}

/* One of each, the side first that was last before. */
static int run_round(const struct snd_command *self, struct snd_diff_runs *runs,
                     const struct words *words)
{
    struct sonde_trace *fresh[2] = { NULL, NULL };
    int                 status = -1;

    for (size_t i = 0; status < 0 && i < 2; i++) {
        size_t side = (i + runs->count) % 2;
        status = run_side(self, runs, words, (int)side, &fresh[side]);
    }
    for (size_t side = 0; side < 2; side++)
        if (status < 0)
            runs->traces[side][runs->count] = fresh[side];
        else if (fresh[side])
            sonde_trace_close(fresh[side]);
    runs->count += status < 0;
    return status;
}

void snd_diff_runs_list(const struct snd_diff_runs *runs,
                        struct sonde_trace         *all[2 * SND_DIFF_RUNS_MOST])
{
    memcpy(all, runs->traces[0], runs->count * sizeof *all);
    memcpy(all + runs->count, runs->traces[1], runs->count * sizeof *all);
}

int snd_diff_refused(const struct snd_command *self, enum sonde_status why,
                     const struct sonde_error *err)
{
    if (why == SONDE_E_ARGUMENT)
        return snd_usage_error(self, "%s", err->message);
    (void)snd_failure("%s: %s", self->name, err->message);
    return why == SONDE_E_STATE ? SND_EXIT_USAGE : SND_EXIT_FAILED;
}

static int find_margin(const struct snd_command *self, struct snd_diff_runs *runs)
{
    struct sonde_diff_options options = SONDE_DIFF_OPTIONS_INIT;
    struct sonde_trace       *all[2 * SND_DIFF_RUNS_MOST];
    struct sonde_error        err;

    options.by = runs->by;
    options.fail_if = runs->fail_if;
    snd_diff_runs_list(runs, all);
    enum sonde_status st = sonde_diff_margin(all, runs->count, runs->count, &options, &runs->margin,
                                             &err);
    return st == SONDE_OK ? -1 : snd_diff_refused(self, st, &err);
}

static void say_margin(const struct snd_diff_runs *runs, int64_t began_ns)
{
    bool is_close = runs->margin <= runs->within;

    fprintf(stderr,
            "sonde: %zu runs of each in %.1f s; the change of the whole is known to %.2g %%",
            runs->count, (double)(now_ns() - began_ns) / 1e9, runs->margin);
    if (is_close)
        fputc('\n', stderr);
    else
        fprintf(stderr, ", not to the %g %% asked: %s\n", runs->within,
                runs->count == SND_DIFF_RUNS_MOST ? "more runs are not made"
                                                  : "--for gives it more seconds");
}

static int run_rounds(const struct snd_command *self, struct snd_diff_runs *runs,
                      const struct words *words)
{
    int64_t began = now_ns(), longest = 0;
    int     status = -1;

    for (int side = 0; status < 0 && side < 2; side++)
        status = run_side(self, runs, words, side, NULL);
    for (runs->margin = INFINITY; status < 0 && runs->count < SND_DIFF_RUNS_MOST;) {
        int64_t round = now_ns();
        bool    is_late = round - began + longest > runs->seconds * INT64_C(1000000000);
        if (runs->count >= SND_DIFF_RUNS_LEAST && (runs->margin <= runs->within || is_late))
            break;
        status = run_round(self, runs, words);
        if (status < 0 && runs->count >= SND_DIFF_RUNS_LEAST)
            status = find_margin(self, runs);
        round = now_ns() - round;
        longest = round > longest ? round : longest;
    }
    if (status < 0)
        say_margin(runs, began);
    return status;
}

int snd_diff_runs_make(const struct snd_command *self, struct snd_diff_runs *runs)
{
    struct words words = { 0 };

    int status = split(self, "--record", runs->record ? runs->record : "", &words.options);
    for (int side = 0; status < 0 && side < 2; side++) {
        status = split(self, "--run", runs->commands[side], &words.commands[side]);
        if (status < 0 && words.commands[side].we_wordc == 0)
            status = snd_usage_error(self, "--run: the command of %c is empty", 'A' + side);
    }
    if (status < 0)
        status = make_folder(self, runs);
    if (status < 0)
        status = run_rounds(self, runs, &words);
    wordfree(&words.options);
    wordfree(&words.commands[0]);
    wordfree(&words.commands[1]);
    return status;
}

void snd_diff_runs_release(struct snd_diff_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        for (size_t side = 0; side < 2; side++)
            sonde_trace_close(runs->traces[side][i]);
    if (!runs->folder && runs->path.length > 0)
        snd_folder_remove(runs->path.bytes);
    sonde_buffer_release(&runs->path);
}
