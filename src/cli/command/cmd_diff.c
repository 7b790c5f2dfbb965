/* SPDX-License-Identifier: Apache-2.0 */
/* sonde diff: what changed between two runs, or two sets of runs, and whether that is noise. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/diff_runs.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options/view_options.h"

struct diff_args {
    const char *by, *fail_if, *sort, *time_unit, *html, *record, *keep;
    int64_t     rows, least, within, seconds;
    bool        json, csv, wide, no_source, run;
};

#define AT(member) offsetof(struct diff_args, member)
static const struct snd_option options[] = {
    { 'b', "by", "WHAT",
      "rows to compare: ops, modules, layers, functions, lines, run (default: the first of these "
      "that all runs have)",
      SND_OPTION_TEXT, AT(by), 0 },
    { 0, "fail-if", "LIST",
      "exit with status 1 if a change is real and beyond a limit: 'time>+5%', 'step>+3%', "
      "'count>0%', 'memory>+1%', 'flops<-1%', comma-separated",
      SND_OPTION_LIST, AT(fail_if), 0 },
    { 0, "least", "PERCENT", "smaller changes of time are not called changed (2)",
      SND_OPTION_NUMBER, AT(least), 0 },
    { 0, "run", NULL,
      "A and B are commands: record them in turn until the change of the whole is known within "
      "--within, or for --for seconds",
      SND_OPTION_FLAG, AT(run), 0 },
    { 0, "record", "OPTIONS", "options of sonde run for --run, in one word: '--ops --memory'",
      SND_OPTION_TEXT, AT(record), 0 },
    { 0, "within", "PERCENT", "margin at which --run ends (1)", SND_OPTION_NUMBER, AT(within), 1 },
    { 0, "for", "SECONDS", "how long --run may take (60); three runs of each are made in any case",
      SND_OPTION_NUMBER, AT(seconds), 0 },
    { 0, "keep", "FOLDER", "keep the traces of --run in a new folder", SND_OPTION_TEXT, AT(keep),
      0 },
    { 's', "sort", "KEY", "sort by this column, greatest first (default: changed rows first)",
      SND_OPTION_TEXT, AT(sort), 0 },
    { 'n', "rows", "N", "show at most N rows; -1 shows all (100 in text, all in data)",
      SND_OPTION_NUMBER, AT(rows), -1 },
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, AT(json), 0 },
    { 0, "csv", NULL, "write CSV", SND_OPTION_FLAG, AT(csv), 0 },
    { 0, "html", "FILE",
      "write the report page of B with what changed, too ('-': in place of text)", SND_OPTION_TEXT,
      AT(html), 0 },
    { 0, "no-source", NULL, "leave the text of source files out of the page of --html",
      SND_OPTION_FLAG, AT(no_source), 0 },
    { 0, "time-unit", "UNIT", "text: unit of all times: us, ms or s (default: each its own)",
      SND_OPTION_TEXT, AT(time_unit), 0 },
    { 0, "wide", NULL, "text: do not truncate lines to the terminal's width", SND_OPTION_FLAG,
      AT(wide), 0 },
};

static int fill_report(const struct snd_command *self, const struct diff_args *args,
                       struct sonde_report_options *report)
{
    struct sonde_error err;
    int                unit = SONDE_TIME_AUTO;

    if (args->json && args->csv)
        return snd_usage_error(self, "--json and --csv: only one of them");
    if (args->time_unit &&
        sonde_word_value(SONDE_WORDS_TIME_UNIT, args->time_unit, &unit, &err) != SONDE_OK)
        return snd_usage_error(self, "--time-unit: %s", err.message);
    bool text = !args->json && !args->csv;
    report->format = args->json  ? SONDE_REPORT_JSON
                     : args->csv ? SONDE_REPORT_CSV
                                 : SONDE_REPORT_TEXT;
    report->rows = args->rows != INT64_MIN ? args->rows : text ? 100 : -1;
    report->sort = args->sort;
    report->time_unit = (enum sonde_time_unit)unit;
    report->colour = text && snd_has_colours(stdout);
    snd_fit_stdout(args->wide || !text, report);
    return -1;
}

/* The page as a file; '-': standard output. */
static int write_page(const struct snd_command *self, const struct diff_args *args,
                      struct sonde_trace **traces, size_t a_runs, size_t b_runs)
{
    const char        *path = args->html;
    bool               is_stdout = strcmp(path, "-") == 0;
    FILE              *file = is_stdout ? stdout : fopen(path, "we");
    struct sonde_error err;

    if (!file)
        return snd_failure("%s: --html: cannot write %s: %s", self->name, path, strerror(errno));
    struct sonde_sink           sink = sonde_sink_file(file);
    struct sonde_export_options exporting = SONDE_EXPORT_OPTIONS_INIT;
    exporting.no_source = args->no_source;
    snd_progress_start("sonde: making the page");
    enum sonde_status st = sonde_diff_page(traces, a_runs, b_runs, &exporting, &sink, &err);
    snd_progress_stop();
    if (!is_stdout && fclose(file) != 0 && st == SONDE_OK)
        return snd_failure("%s: --html: cannot write %s: %s", self->name, path, strerror(errno));
    return st == SONDE_OK ? -1 : snd_failure("%s: --html: %s", self->name, err.message);
}

static int compare(const struct snd_command *self, const struct diff_args *args,
                   struct sonde_trace **traces, size_t a_runs, size_t b_runs)
{
    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_diff_options   diff = SONDE_DIFF_OPTIONS_INIT;
    struct sonde_buffer         unseen = { 0 };
    bool                        has_text = !args->html || strcmp(args->html, "-") != 0;
    struct sonde_sink  out = has_text ? sonde_sink_file(stdout) : sonde_sink_buffer(&unseen);
    struct sonde_error err;
    size_t             failed = 0;

    int status = fill_report(self, args, &report);
    if (status >= 0)
        return status;
    diff.by = args->by;
    diff.fail_if = args->fail_if;
    diff.least_percent = (double)args->least;
    snd_progress_start("sonde: comparing");
    enum sonde_status st = sonde_diff(traces, a_runs, b_runs, &diff, &report, &out, &failed, &err);
    snd_progress_stop();
    sonde_buffer_release(&unseen);
    if (st != SONDE_OK)
        return snd_diff_refused(self, st, &err);
    if (args->html && (status = write_page(self, args, traces, a_runs, b_runs)) >= 0)
        return status;
    status = snd_finish_stdout(self);
    if (status == SND_EXIT_OK && failed > 0)
        return snd_failure("%s: --fail-if '%s': %zu beyond the limit", self->name, args->fail_if,
                           failed);
    return status;
}

/* Opens the trace of each operand: side A, then side B. */
static int open_all(const struct snd_command *self, const struct diff_args *args, char **a,
                    size_t a_runs, char **b, size_t b_runs)
{
    struct sonde_trace **traces = calloc(a_runs + b_runs, sizeof *traces);
    size_t               opened = 0;
    int                  status = -1;

    if (!traces)
        return snd_failure("%s: out of memory", self->name);
    while (status < 0 && opened < a_runs + b_runs) {
        char *path = opened < a_runs ? a[opened] : b[opened - a_runs];
        status = snd_open_trace(self, 1, &path, &traces[opened]);
        opened += status < 0;
    }
    if (status < 0)
        status = compare(self, args, traces, a_runs, b_runs);
    while (opened > 0)
        sonde_trace_close(traces[--opened]);
    free(traces);
    return status;
}

/* Two commands, one before and one after '--', or side by side. */
static int run_and_compare(const struct snd_command *self, const struct diff_args *args, char *a,
                           char *b)
{
    struct snd_diff_runs *runs = calloc(1, sizeof *runs);
    struct sonde_trace   *all[2 * SND_DIFF_RUNS_MOST];

    if (!runs)
        return snd_failure("%s: out of memory", self->name);
    runs->commands[0] = a;
    runs->commands[1] = b;
    runs->record = args->record;
    runs->folder = args->keep;
    runs->by = args->by;
    runs->fail_if = args->fail_if;
    runs->within = (double)args->within;
    runs->seconds = args->seconds;
    int status = snd_diff_runs_make(self, runs);
    if (status < 0) {
        snd_diff_runs_list(runs, all);
        status = compare(self, args, all, runs->count, runs->count);
    }
    snd_diff_runs_release(runs);
    free(runs);
    return status;
}

/* --record takes the next word, whatever it is. -1 to go on. */
static int check_record(const struct snd_command *self, const struct diff_args *args)
{
    const char *words = args->record ? args->record + strspn(args->record, " \t\n") : "";

    if (*words == '\0' || *words == '-')
        return -1;
    return snd_usage_error(self,
                           "--record: expected options of sonde run in one word ('--ops "
                           "--memory'), got '%.200s'",
                           args->record);
}

static int refuse_commands(const struct snd_command *self, const struct diff_args *args, int count)
{
    return snd_usage_error(self,
                           "--run: expected two commands, each in quotes if it has several words, "
                           "got %d%s%.200s%s",
                           count, args->record ? "; --record took '" : "",
                           args->record ? args->record : "", args->record ? "'" : "");
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct diff_args args = { .rows = INT64_MIN, .least = 2, .within = 1, .seconds = 60 };
    int              a_runs = 0, b_runs = 0, border = 1;

    while (border < argc && strcmp(argv[border], "--") != 0)
        border++;
    int status = snd_options_parse(self, border, argv, &args, &a_runs);
    if (status < 0 && border < argc)
        status = snd_options_parse(self, argc - border, argv + border, &args, &b_runs);
    if (status >= 0)
        return status;
    if (args.no_source && !args.html)
        return snd_usage_error(self, "--no-source requires --html");
    if ((args.record || args.keep) && !args.run)
        return snd_usage_error(self, "--%s requires --run", args.record ? "record" : "keep");
    if ((status = check_record(self, &args)) >= 0)
        return status;
    if (args.run && border < argc && a_runs == 1 && b_runs == 1)
        return run_and_compare(self, &args, argv[0], argv[border]);
    if (args.run && border == argc && a_runs == 2)
        return run_and_compare(self, &args, argv[0], argv[1]);
    if (args.run)
        return refuse_commands(self, &args, a_runs + b_runs);
    if (border < argc && (a_runs < 1 || b_runs < 1))
        return snd_usage_error(self, "expected traces before and after '--', got %d and %d", a_runs,
                               b_runs);
    if (border == argc && a_runs != 2)
        return snd_usage_error(
            self, "expected two traces, or several per side with '--' between them, got %d",
            a_runs);
    if (border < argc)
        return open_all(self, &args, argv, (size_t)a_runs, argv + border, (size_t)b_runs);
    return open_all(self, &args, argv, 1, argv + 1, 1);
}

const struct snd_command snd_command_diff = {
    .name = "diff",
    .operands = "A B | A.. -- B.. | --run A -- B",
    .summary = "say what changed between two runs, and whether that is noise",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
