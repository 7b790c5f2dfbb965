/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: one view of a trace, as text, JSON or CSV. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options/view_options.h"

struct report_args {
    const char          *view;
    struct snd_view_args shown;
    bool                 list;
};

#define AT(member) offsetof(struct report_args, member)
#define SHOWN(member) AT(shown.member)
static const struct snd_option options[] = {
    { 'v', "view", "VIEW",
      "view to show; --list lists them (default: ops, or of a trace without ranges what it has)",
      SND_OPTION_TEXT, AT(view), 0 },
    SND_VIEW_OPTIONS(SHOWN),
    { 'l', "list", NULL, "list the views", SND_OPTION_FLAG, AT(list), 0 },
};

static int list_views(const struct snd_command *self)
{
    const struct sonde_view_info *info;

    for (size_t i = 0; (info = sonde_view_info(i)) != NULL; i++)
        printf("%-17s  %s\n", info->name, info->summary);
    return snd_finish_stdout(self);
}

/* Which views the trace has data for, as far as that was checked. */
struct content {
    const char *views[SONDE_CONTENT_VIEWS];
    size_t      count;
};

static void choose_view(const struct report_args *args, struct sonde_trace *trace,
                        struct content *content, struct sonde_report_options *report)
{
    if (!args->view)
        content->count = sonde_views_with_content(trace, content->views, SONDE_CONTENT_VIEWS);
    report->view = args->view ? args->view : content->count > 0 ? content->views[0] : "ops";
    report->sort = args->shown.sort;
    if (!args->shown.sort && strcmp(report->view, "ops") == 0)
        report->sort = "self_cpu_time_total";
    else if (args->shown.sort && strcmp(args->shown.sort, "none") == 0)
        report->sort = NULL;
}

/* If we chose the view: names the other views with data. */
static void say_others(const struct content *content)
{
    for (size_t i = 1; i < content->count; i++)
        fprintf(stderr, "%s --view %s%s", i == 1 ? "sonde: the trace has more:" : ",",
                content->views[i], i + 1 == content->count ? "\n" : "");
}

static bool note_event(const struct sonde_event *event, void *user)
{
    (void)event;
    *(bool *)user = true;
    return false;
}

/* Explains an empty table: torch prints nothing then, or only a note of the ledger. */
static void say_empty(struct sonde_trace *trace, const char *name, const struct report_args *args)
{
    struct sonde_error err;
    bool               has_events = args->view != NULL; /* only that view is empty */

    if (!has_events &&
        sonde_trace_walk(trace, SONDE_BY_THREAD, note_event, &has_events, &err) != SONDE_OK)
        has_events = true;
    fprintf(stderr, "sonde: report %s: %s\n", name,
            has_events ? "the trace has no ranges"
                       : "the trace is empty: the program was too short, or recorded nothing");
}

static bool write_counted(void *user, const void *data, size_t length)
{
    size_t *written = user;

    *written += length;
    return fwrite(data, 1, length, stdout) == length;
}

static int show(const struct snd_command *self, struct report_args *args, int operands, char **argv)
{
    size_t                      written = 0;
    struct content              content = { .count = 0 };
    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_trace         *trace;
    struct sonde_error          err;

    int status = snd_view_args_fill(self, &args->shown, &report);
    if (status < 0)
        status = snd_view_args_part(self, &args->shown, &args->view, &report.part);
    if (status < 0)
        status = snd_open_trace(self, operands, argv, &trace);
    if (status >= 0)
        return status;

    struct sonde_sink out = { write_counted, &written };
    snd_progress_start("sonde: reading the trace");
    choose_view(args, trace, &content, &report);
    enum sonde_status st = sonde_report(trace, &report, &out, &err);
    snd_progress_stop();
    if (st != SONDE_OK)
        status = snd_report_error(self, argv[0], &err);
    else
        status = snd_finish_stdout(self);
    if (status == SND_EXIT_OK && report.format == SONDE_REPORT_TEXT) {
        if (written == 0 || (!args->view && content.count == 0))
            say_empty(trace, argv[0], args);
        say_others(&content);
    }
    sonde_trace_close(trace);
    return status;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct report_args args = { .shown = SND_VIEW_ARGS_INIT };
    int                operands;
    int                status = snd_options_parse(self, argc, argv, &args, &operands);

    if (status >= 0)
        return status;
    return args.list ? list_views(self) : show(self, &args, operands, argv);
}

int snd_report_show(const char *path, const char *view, const struct snd_view_args *shown)
{
    struct report_args args = { .view = view, .shown = *shown };

    return show(&snd_command_report, &args, 1, &(char *){ (char *)path });
}

const struct snd_command snd_command_report = {
    .name = "report",
    .operands = "[TRACE]",
    .summary = "show a trace: a table of ranges, a tree, memory, threads, steps",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
