/* SPDX-License-Identifier: Apache-2.0 */
/* sonde report: one view of a trace, as text, JSON or CSV. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/commands.h"

struct report_args {
    const char *view, *sort, *groups, *time_unit, *header, *flops;
    int64_t     rows, stack_depth, max_name, max_shapes, max_source;
    bool        json, csv, top_level, wide;
    bool        callers, callees, tree, awaiting, summary, skip_zero, show_all, peak;
};

#define AT(member) offsetof(struct report_args, member)
static const struct snd_option options[] = {
    { 'v', "view", "VIEW",
      "what to show (ops, or what the trace has instead): summary, ops, tree, model, modules, "
      "depths, layers, functions, lines, line-memory, samples, memory, tensors, tensor-lines, "
      "threads, steps, ledger",
      SND_OPTION_TEXT, AT(view), 0 },
    { 's', "sort", "KEY",
      "sort by this column, greatest first; 'none' keeps the order of the "
      "trace",
      SND_OPTION_TEXT, AT(sort), 0 },
    { 'n', "rows", "N", "show at most N rows; -1 shows all (100 in text, all in data)",
      SND_OPTION_NUMBER, AT(rows), -1 },
    { 'g', "group-by", "LIST",
      "ops: shape, stack, thread, process, module, overload, with "
      "commas; tree: thread; samples: thread or process",
      SND_OPTION_TEXT, AT(groups), 0 },
    { 0, "stack-depth", "N", "ops: frames that count when grouped by stack (5)", SND_OPTION_NUMBER,
      AT(stack_depth), 1 },
    { 0, "top-level", NULL, "ops: only ranges that lie in no other", SND_OPTION_FLAG, AT(top_level),
      0 },
    { 0, "flops", "MODE", "ops, modules: full (the default), torch (its seven operators), none",
      SND_OPTION_TEXT, AT(flops), 0 },
    { 0, "callers", NULL, "functions: by whom each was called", SND_OPTION_FLAG, AT(callers), 0 },
    { 0, "callees", NULL, "functions: whom each called", SND_OPTION_FLAG, AT(callees), 0 },
    { 0, "tree", NULL, "functions: the call tree, times shared out among callers", SND_OPTION_FLAG,
      AT(tree), 0 },
    { 0, "awaiting", NULL, "functions: resumptions of generators and coroutines, time awaited",
      SND_OPTION_FLAG, AT(awaiting), 0 },
    { 0, "summary", NULL, "lines: and one line a function after them", SND_OPTION_FLAG, AT(summary),
      0 },
    { 0, "skip-zero", NULL, "lines: leave out functions that did not run", SND_OPTION_FLAG,
      AT(skip_zero), 0 },
    { 0, "show-all", NULL,
      "samples: everything: short and libraries' frames, levels of recursion, idle time",
      SND_OPTION_FLAG, AT(show_all), 0 },
    { 0, "peak", NULL, "line-memory: a column with each line's peak", SND_OPTION_FLAG, AT(peak),
      0 },
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, AT(json), 0 },
    { 0, "csv", NULL, "write CSV", SND_OPTION_FLAG, AT(csv), 0 },
    { 0, "time-unit", "UNIT", "text: us, ms or s for every time (each its own)", SND_OPTION_TEXT,
      AT(time_unit), 0 },
    { 0, "header", "TEXT", "ops, text: a title over the table", SND_OPTION_TEXT, AT(header), 0 },
    { 0, "max-name", "N", "text: widest column of names (55); 0 for no limit", SND_OPTION_NUMBER,
      AT(max_name), 0 },
    { 0, "max-shapes", "N", "text: widest column of shapes (80); 0 for no limit", SND_OPTION_NUMBER,
      AT(max_shapes), 0 },
    { 0, "max-source", "N", "text: widest column of source lines (75); 0 for no limit",
      SND_OPTION_NUMBER, AT(max_source), 0 },
    { 0, "wide", NULL, "text: do not cut lines to the width of the terminal", SND_OPTION_FLAG,
      AT(wide), 0 },
};

/* Names of a list with commas, each a bit; 0 if one is unknown, and *bad has it. */
static unsigned parse_groups(const char *list, struct snd_nearest *bad)
{
    static const struct {
        const char *name;
        unsigned    bit;
    } groups[] = {
        { "shape", SONDE_GROUP_SHAPE },   { "stack", SONDE_GROUP_STACK },
        { "thread", SONDE_GROUP_THREAD }, { "process", SONDE_GROUP_PROCESS },
        { "module", SONDE_GROUP_MODULE }, { "overload", SONDE_GROUP_OVERLOAD },
    };
    unsigned mask = 0;

    while (*list) {
        size_t   length = strcspn(list, ",");
        unsigned bit = 0;
        *bad = (struct snd_nearest){ .word = list, .length = length };
        for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
            if (strlen(groups[i].name) == length && strncmp(groups[i].name, list, length) == 0)
                bit = groups[i].bit;
            snd_nearest_try(bad, groups[i].name);
        }
        if (!bit)
            return 0;
        mask |= bit;
        list += length + (list[length] == ',');
    }
    return mask;
}

static int fill_groups(const struct snd_command *self, const char *list,
                       struct sonde_report_options *report)
{
    struct snd_nearest bad = { .word = "" };
    char               hint[SND_HINT_MAX];

    if (!list)
        return -1;
    report->groups = parse_groups(list, &bad);
    if (report->groups == 0)
        return snd_usage_error(self,
                               "cannot group by '%.*s'%s: the groups are shape, stack, thread, "
                               "process, module, overload",
                               (int)(bad.length < 60 ? bad.length : 60), bad.word,
                               snd_nearest_hint(&bad, hint));
    return -1;
}

static int fill_flops(const struct snd_command *self, const char *mode,
                      struct sonde_report_options *report)
{
    static const char *const names[] = {
        [SONDE_FLOPS_FULL] = "full", [SONDE_FLOPS_TORCH] = "torch", [SONDE_FLOPS_NONE] = "none"
    };

    for (unsigned i = 0; mode && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(mode, names[i]) == 0) {
            report->flops = (enum sonde_flops_mode)i;
            return -1;
        }
    }
    return mode
               ? snd_usage_error(self, "cannot count FLOPs by '%s': the ways are full, torch, none",
                                 mode)
               : -1;
}

/* Parts of a view; -1 to go on, or the exit status. */
static int fill_part(const struct snd_command *self, const struct report_args *args,
                     struct sonde_report_options *report)
{
    const struct {
        bool                   asked;
        const char            *option, *view;
        enum sonde_report_part part;
    } parts[] = {
        { args->callers, "callers", "functions", SONDE_PART_CALLERS },
        { args->callees, "callees", "functions", SONDE_PART_CALLEES },
        { args->tree, "tree", "functions", SONDE_PART_TREE },
        { args->awaiting, "awaiting", "functions", SONDE_PART_AWAITING },
        { args->summary, "summary", "lines", SONDE_PART_SUMMARY },
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!parts[i].asked)
            continue;
        if (report->part != SONDE_PART_MAIN)
            return snd_usage_error(self, "--callers, --callees, --tree, --awaiting or --summary: "
                                         "one of them");
        if (!args->view || strcmp(args->view, parts[i].view) != 0)
            return snd_usage_error(self, "--%s belongs to --view %s", parts[i].option,
                                   parts[i].view);
        report->part = parts[i].part;
    }
    report->skip_zero = args->skip_zero;
    report->show_all = args->show_all;
    report->peak = args->peak;
    return -1;
}

static uint32_t clamp(int64_t width)
{
    return width > 1000000 ? 1000000 : (uint32_t)width;
}

/* What $COLUMNS says, or the terminal; 0 if neither does. */
static uint32_t terminal_width(void)
{
    const char    *columns = getenv("COLUMNS");
    struct winsize size;
    char          *end;
    long           width = columns && *columns ? strtol(columns, &end, 10) : 0;

    if (width > 0 && *end == '\0')
        return clamp(width);
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* The C locale's characters are ASCII's; setlocale() would not know a locale that is not installed. */
static bool is_ascii_locale(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcmp(value, "C") == 0 || strcmp(value, "POSIX") == 0;
    }
    return true;
}

/* -1 to go on, or the exit status. */
static int fill(const struct snd_command *self, const struct report_args *args,
                struct sonde_report_options *report)
{
    bool text = !args->json && !args->csv;

    if (args->json && args->csv)
        return snd_usage_error(self, "--json or --csv, not both");
    report->rows = args->rows != INT64_MIN ? args->rows : text ? 100 : -1;
    report->stack_depth = clamp(args->stack_depth);
    report->format = args->json  ? SONDE_REPORT_JSON
                     : args->csv ? SONDE_REPORT_CSV
                                 : SONDE_REPORT_TEXT;
    report->top_level = args->top_level;
    report->header = args->header;
    report->colour = text && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    report->width = text && !args->wide && isatty(STDOUT_FILENO) ? terminal_width() : 0;
    report->ascii = is_ascii_locale();
    report->max_name = clamp(args->max_name);
    report->max_shapes = clamp(args->max_shapes);
    report->max_source = clamp(args->max_source);
    int status = fill_groups(self, args->groups, report);
    if (status < 0)
        status = fill_flops(self, args->flops, report);
    if (status < 0)
        status = fill_part(self, args, report);
    if (status < 0 && args->time_unit && !snd_time_unit(args->time_unit, &report->time_unit))
        status = snd_usage_error(self, SND_NO_TIME_UNIT, args->time_unit);
    return status;
}

/* What a trace has something for, as far as that was asked. */
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
    report->sort = args->sort;
    if (!args->sort && strcmp(report->view, "ops") == 0)
        report->sort = "self_cpu_time_total";
    else if (args->sort && strcmp(args->sort, "none") == 0)
        report->sort = NULL;
}

/* Where the view was ours to choose: what else there was to choose from. */
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

/* torch's table of nothing is no text, or a note of the ledger alone: a person would wonder. */
static void say_empty(struct sonde_trace *trace, const char *name, const struct report_args *args)
{
    struct sonde_error err;
    bool               has_events = args->view != NULL; /* then only that is not there */

    if (!has_events &&
        sonde_trace_walk(trace, SONDE_BY_THREAD, note_event, &has_events, &err) != SONDE_OK)
        has_events = true;
    fprintf(stderr, "sonde: report %s: %s\n", name,
            has_events ? "the trace has no ranges"
                       : "there is nothing in the trace: what ran was too short, or recorded "
                         "nothing");
}

static bool write_counted(void *user, const void *data, size_t length)
{
    size_t *written = user;

    *written += length;
    return fwrite(data, 1, length, stdout) == length;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    size_t             written = 0;
    struct content     content = { .count = 0 };
    struct report_args args = {
        .rows = INT64_MIN, .max_name = 55, .max_shapes = 80, .max_source = 75
    };
    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_trace         *trace;
    struct sonde_error          err;
    int                         operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status < 0)
        status = fill(self, &args, &report);
    if (status < 0)
        status = snd_open_trace(self, operands, argv, &trace);
    if (status >= 0)
        return status;

    struct sonde_sink out = { write_counted, &written };
    snd_progress_start("sonde: reading the trace");
    choose_view(&args, trace, &content, &report);
    enum sonde_status st = sonde_report(trace, &report, &out, &err);
    snd_progress_stop();
    if (st != SONDE_OK)
        status = snd_report_error(self, argv[0], &err);
    else
        status = snd_finish_stdout(self);
    if (status == SND_EXIT_OK && report.format == SONDE_REPORT_TEXT) {
        if (written == 0 || (!args.view && content.count == 0))
            say_empty(trace, argv[0], &args);
        say_others(&content);
    }
    sonde_trace_close(trace);
    return status;
}

const struct snd_command snd_command_report = {
    "report",
    "[TRACE]",
    "show a trace: a table of ranges, a tree, memory, threads, steps",
    options,
    SND_OPTION_COUNT(options),
    false,
    run,
};
