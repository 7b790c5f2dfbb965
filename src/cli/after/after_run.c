/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/after/after_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/folders.h"
#include "base/text/compare.h"
#include "base/text/nearest.h"
#include "base/text/unknown_name.h"
#include "cli/process/child.h"
#include "cli/after/kept_trace.h"
#include "cli/commands.h"
#include "cli/run/run_folder.h"
#include "cli/options/try_report.h"
#include "model/highlights/advice.h"

/* ------------------------------------------------------------- the values */

static bool is_view(const char *name, size_t length)
{
    const struct sonde_view_info *info;

    for (size_t i = 0; (info = sonde_view_info(i)) != NULL; i++)
        if (strlen(info->name) == length && strncmp(info->name, name, length) == 0)
            return true;
    return false;
}

static const char *view_at(size_t index)
{
    const struct sonde_view_info *info = sonde_view_info(index);

    return info ? info->name : NULL;
}

static int refuse_view(const struct snd_command *self, const char *name, size_t length)
{
    struct sonde_buffer text = { 0 };

    int status = snd_usage_error(self, "%s",
                                 snd_unknown_text(&text, "view", name, length, view_at));
    sonde_buffer_release(&text);
    return status;
}

static int check_views(const struct snd_command *self, const char *list)
{
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        if (!is_view(at, length))
            return refuse_view(self, at, length);
        if (at[length] == '\0')
            return -1;
        at += length + 1;
    }
}

/* Refuses options of how to show the trace where it is not shown. -1 to go on. */
static int check_shown(const struct snd_command *self, const struct snd_after_run *after)
{
    const char *given = after->view ? "view" : snd_view_args_given(&after->shown);

    if (given && !after->print)
        return snd_usage_error(self, "--%s has an effect only with --print; add --print", given);
    return -1;
}

/* Whether `path` ends in `ending`, and is longer than it. */
static bool has_ending(const char *path, size_t length, const char *ending)
{
    return length > strlen(ending) && snd_ends_with_at(path, length, ending);
}

/* The format with the longest extension that `path` ends in; NULL: it is a trace. */
static const struct sonde_exporter_info *format_of(const char *path)
{
    const struct sonde_exporter_info *info, *best = NULL;
    size_t                            length = strlen(path);

    if (has_ending(path, length, ".gz"))
        length -= strlen(".gz");
    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++)
        if (has_ending(path, length, info->suffix) &&
            (!best || strlen(info->suffix) > strlen(best->suffix)))
            best = info;
    return best;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* A trace is NAME or NAME.sonde; any other extension selects a format. -1 to go on. */
static int check_ending(const struct snd_command *self, const char *output)
{
    const struct sonde_exporter_info *info;
    const char                       *name = last_part(output);
    const char                       *dot = *name ? strrchr(name + 1, '.') : NULL;
    struct sonde_buffer               endings = { 0 };
    char                              hint[SND_HINT_MAX];

    if (!dot || strcmp(dot, ".sonde") == 0 || format_of(output))
        return -1;
    struct snd_nearest nearest = { .word = dot, .length = strlen(dot) };
    snd_nearest_try(&nearest, ".sonde");
    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++) {
        snd_buf_format(&endings, ", %s", info->suffix);
        snd_nearest_try(&nearest, info->suffix);
    }
    int status = snd_usage_error(
        self, "--output %s: unknown extension '%s'%s; a trace ends in .sonde, other formats in%s",
        output, dot, snd_nearest_hint(&nearest, hint), snd_buf_string(&endings) + 1);
    sonde_buffer_release(&endings);
    return status;
}

int snd_after_run_check(const struct snd_command *self, const struct snd_after_run *after)
{
    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    int                         status = check_shown(self, after);

    if (status < 0)
        status = snd_view_args_fill(self, &after->shown, &report);
    if (status >= 0)
        return status;
    if (after->output && strcmp(after->output, "-") == 0)
        return snd_usage_error(self, "--output -: a trace cannot be written to standard output; "
                                     "give a file name (--print shows the trace)");
    if (after->output && (status = check_ending(self, after->output)) >= 0)
        return status;
    return after->view ? check_views(self, after->view) : -1;
}

int snd_after_run_check_sort(const struct snd_command *self, const struct snd_after_run *after,
                             const char *views)
{
    struct sonde_error err, first = { 0 };
    const char        *list = after->view ? after->view : views;
    bool               many = !after->view; /* then any view may be the first */

    if (!after->shown.sort || strcmp(after->shown.sort, "none") == 0)
        return -1;
    do {
        size_t length = strcspn(list, ",");
        char   view[64];
        snprintf(view, sizeof view, "%.*s", (int)length, list);
        if (snd_try_report(view, after->shown.sort, &err) != SONDE_E_ARGUMENT)
            return -1;
        if (first.status == SONDE_OK)
            first = err;
        list += length + (list[length] == ',');
    } while (many && *list);
    return snd_usage_error(self, "--sort: %s", first.message);
}

/* -------------------------------------------------------------- the place */

static char *make_scratch(void)
{
    struct sonde_buffer path = { 0 };

    if (!snd_folder_scratch("sonde-run", &path))
        (void)snd_failure(SND_NO_SCRATCH
                          "; the program runs unrecorded (-o gives the trace a place)",
                          strerror(errno));
    return path.bytes;
}

bool snd_after_run_place(struct snd_after_run *after, const char *subject, size_t length,
                         struct sonde_buffer *trace)
{
    after->format = after->output ? format_of(after->output) : NULL;
    after->is_kept = after->output ? !after->format : !after->print;
    if (after->format) {
        snd_buf_format(trace, "%s.%ld.sonde", after->output, (long)getpid());
    } else if (after->output) {
        snd_buf_text(trace, after->output);
    } else {
        after->scratch = after->print ? make_scratch() : NULL;
        if (after->print && !after->scratch)
            return false;
        snd_buf_format(trace, "%s%s%.*s.sonde", after->scratch ? after->scratch : "",
                       after->scratch ? "/" : "", (int)length, subject);
    }
    while (trace->length > 1 && trace->bytes[trace->length - 1] == '/')
        trace->bytes[--trace->length] = '\0';
    return true;
}

void snd_after_run_release(struct snd_after_run *after)
{
    if (after->scratch)
        rmdir(after->scratch); /* fails if a trace was left in it: it stays */
    free(after->scratch);
    after->scratch = NULL;
}

/* ----------------------------------------------------------- what is done */

/* The words of a command line for one of the other commands. */
struct words {
    char *list[16];
    int   count;
};

static void add(struct words *words, const char *text)
{
    words->list[words->count++] = (char *)text; /* commands move the pointers, never the text */
}

static void add_option(struct words *words, const char *name, const char *value)
{
    if (value) {
        add(words, name);
        add(words, value);
    }
}

static bool run_command(const struct snd_command *command, struct words *words)
{
    return command->run(command, words->count, words->list) == SND_EXIT_OK;
}

/* `first`: it is the first view shown, which the sort key belongs to. */
static bool show_one(const struct snd_after_run *after, const char *trace, const char *view,
                     bool first)
{
    struct snd_view_args shown = after->shown;

    if (!first)
        shown.sort = NULL;
    if (view)
        snd_view_args_narrow(&shown, view);
    return snd_report_show(trace, view, &shown) == SND_EXIT_OK;
}

/* The requested views, or every view that the trace has data for, separated by commas. */
static void list_views(const struct snd_after_run *after, const char *trace,
                       struct sonde_buffer *list)
{
    const char         *found[SONDE_CONTENT_VIEWS];
    struct sonde_trace *opened;
    struct sonde_error  err;

    const char *asked = after->print ? after->view : after->aside;
    if (asked) {
        snd_buf_text(list, asked);
    } else if (sonde_trace_open(trace, &opened, &err) == SONDE_OK) {
        size_t count = sonde_views_with_content(opened, found, SONDE_CONTENT_VIEWS);
        for (size_t i = 0; i < count; i++)
            snd_buf_format(list, "%s%s", i ? "," : "", found[i]);
        sonde_trace_close(opened);
    }
}

/* Whether the trace has a pattern that there is advice for: of a program without one nothing is printed. */
static bool has_advice(const char *trace)
{
    struct sonde_trace       *opened;
    struct sonde_summary     *summary = NULL;
    struct snd_advisor       *advisor;
    const struct snd_advices *advices;
    struct sonde_error        err;
    bool                      found = false;

    if (sonde_trace_open(trace, &opened, &err) == SONDE_OK) {
        found = snd_advisor_new(opened, &advisor, &err) == SONDE_OK &&
                sonde_summary_new(opened, &summary, &err) == SONDE_OK &&
                snd_advice_find(advisor, summary, &advices, &err) == SONDE_OK && advices->count > 0;
        sonde_summary_free(summary);
        snd_advisor_free(advisor);
        sonde_trace_close(opened);
    }
    return found;
}

static bool show(const struct snd_after_run *after, const char *trace)
{
    struct sonde_buffer list = { 0 };
    char               *rest = NULL;
    bool                done = true, first = true;

    list_views(after, trace, &list);
    if (list.length == 0)
        done = show_one(after, trace, NULL, true); /* which reports what is wrong with it */
    const char *name = list.length ? strtok_r(list.bytes, ",", &rest) : NULL;
    for (; name; name = strtok_r(NULL, ",", &rest), first = false)
        done &= show_one(after, trace, name, first);
    if (after->print && (!after->view || after->unasked) && list.length > 0 && !after->shown.json &&
        !after->shown.csv && has_advice(trace)) {
        printf("\n");
        done &= show_one(after, trace, "advice", false);
    }
    done &= !list.failed;
    sonde_buffer_release(&list);
    return done;
}

/*
 * In a separate process: its reader may exit early (`| head`), and SIGPIPE would end this one before
 * it can clean up.
 */
static bool show_apart(const struct snd_after_run *after, const char *trace,
                       struct snd_child *child)
{
    const struct sigaction usual = { .sa_handler = SIG_DFL }, ignored = { .sa_handler = SIG_IGN };
    struct sigaction       before;

    fflush(stdout);
    sigaction(SIGINT, &ignored, &before);
    pid_t pid = fork();
    if (pid == 0) {
        if (before.sa_handler != SIG_IGN)
            sigaction(SIGINT, &usual, NULL);
        if (!after->print)
            dup2(STDERR_FILENO, STDOUT_FILENO);
        _exit(show(after, trace) ? SND_EXIT_OK : SND_EXIT_FAILED);
    }
    while (pid > 0 && waitpid(pid, &child->wait_status, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGINT, &before, NULL);
    return pid > 0 ? child->wait_status == 0 : after->print && show(after, trace);
}

static bool write_out(const struct snd_after_run *after, const char *trace)
{
    struct words words = { 0 };

    add(&words, "export");
    add(&words, trace);
    add_option(&words, "--to", after->format->name);
    add_option(&words, "--output", after->output);
    return run_command(&snd_command_export, &words);
}

/* What was shown stays until the next one, for a second look; what another file was made of does not. */
static void keep_or_drop(const struct snd_after_run *after, const char *trace)
{
    struct sonde_buffer path = { 0 };

    if (!after->scratch || !snd_kept_store(trace, &path))
        snd_run_folder_drop(trace);
    else if (!after->quiet && isatty(STDERR_FILENO)) /* scripts want what they asked for alone */
        fprintf(stderr, "sonde: kept until the next --print: %s; next: sonde report\n",
                snd_buf_string(&path));
    sonde_buffer_release(&path);
}

bool snd_after_run_finish(const struct snd_after_run *after, const char *trace, bool is_live)
{
    struct snd_child child = { 0 };
    bool             done = true, unread;

    if (after->format)
        done &= write_out(after, trace);
    if (after->print || after->aside)
        done &= show_apart(after, trace, &child);
    unread = WIFSIGNALED(child.wait_status) &&
             (WTERMSIG(child.wait_status) == SIGPIPE || WTERMSIG(child.wait_status) == SIGINT);
    if (!after->is_kept) {
        if ((done || unread) && !is_live)
            keep_or_drop(after, trace);
        else
            fprintf(stderr, "sonde: the trace is in %s\n", trace);
    }
    if (unread) {
        if (after->scratch)
            rmdir(after->scratch);
        snd_child_status(&child);
    }
    return done;
}
