/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options/view_options.h - how a view is shown: the options that report, run --print and attach --print
 * share, and what is made of their values.
 *
 *     struct args { struct snd_view_args shown; };
 *     #define AT(member) offsetof(struct args, shown.member)
 *     static const struct snd_option options[] = { SND_VIEW_OPTIONS(AT) };
 *     struct args args = { SND_VIEW_ARGS_INIT };
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_OPTIONS_VIEW_OPTIONS_H
#define SND_CLI_OPTIONS_VIEW_OPTIONS_H

#include "cli/options/options.h"
#include "sonde/export.h"

struct snd_view_args {
    const char *sort, *groups, *time_unit, *header, *flops;
    int64_t     rows, stack_depth, max_name, max_shapes, max_source, at;
    bool        json, csv, top_level, wide;
    bool        callers, callees, tree, awaiting, summary, skip_zero, show_all, peak, gil;
};
#define SND_VIEW_ARGS_INIT                                                    \
    {                                                                         \
        .rows = INT64_MIN, .max_name = 55, .max_shapes = 80, .max_source = 75 \
    }

/* clang-format off */
#define SND_VIEW_OPTIONS(at_) \
    { 's', "sort", "KEY", \
      "sort by this column, greatest first; 'none' keeps the order of the " \
      "trace", \
      SND_OPTION_TEXT, at_(sort), 0 }, \
    { 'n', "rows", "N", "show at most N rows; -1 shows all (100 in text, all in data)", \
      SND_OPTION_NUMBER, at_(rows), -1 }, \
    { 'g', "group-by", "LIST", \
      "group rows by, comma-separated: shape, stack, thread, process, module, overload (ops); operator, module, stack, shape, grid, device, process (kernels); module, stack (memory); thread (tree); thread or process (samples); step (ranks)", \
      SND_OPTION_LIST, at_(groups), 0 }, \
    { 0, "stack-depth", "N", "ops, kernels, memory: frames to compare when grouping by stack (5)", SND_OPTION_NUMBER, \
      at_(stack_depth), 1 }, \
    { 0, "top-level", NULL, "ops: only ranges without a parent", SND_OPTION_FLAG, at_(top_level), \
      0 }, \
    { 0, "flops", "MODE", "ops, modules: full (the default), torch (its seven operators), none", \
      SND_OPTION_TEXT, at_(flops), 0 }, \
    { 0, "callers", NULL, "functions: callers of each", SND_OPTION_FLAG, at_(callers), 0 }, \
    { 0, "callees", NULL, "functions: callees of each", SND_OPTION_FLAG, at_(callees), 0 }, \
    { 0, "tree", NULL, "functions: the call tree; times are divided among callers", SND_OPTION_FLAG, \
      at_(tree), 0 }, \
    { 0, "awaiting", NULL, "functions: resumptions of generators and coroutines, time awaited", \
      SND_OPTION_FLAG, at_(awaiting), 0 }, \
    { 0, "summary", NULL, "lines: also one line per function at the end", SND_OPTION_FLAG, at_(summary), \
      0 }, \
    { 0, "skip-zero", NULL, "lines: leave out functions that did not run", SND_OPTION_FLAG, \
      at_(skip_zero), 0 }, \
    { 0, "show-all", NULL, \
      "samples: hide nothing: short frames, library frames, recursion levels, idle time", \
      SND_OPTION_FLAG, at_(show_all), 0 }, \
    { 0, "gil", NULL, "samples, functions: only samples of threads that held the interpreter's lock", \
      SND_OPTION_FLAG, at_(gil), 0 }, \
    { 0, "at", "NS", "heap: also what was held at this time of the trace, in ns; --view heap-moments lists them", \
      SND_OPTION_NUMBER, at_(at), 1 }, \
    { 0, "peak", NULL, "line-memory: a column with each line's peak", SND_OPTION_FLAG, at_(peak), \
      0 }, \
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, at_(json), 0 }, \
    { 0, "csv", NULL, "write CSV", SND_OPTION_FLAG, at_(csv), 0 }, \
    { 0, "time-unit", "UNIT", "text: unit of all times: us, ms or s (default: each its own)", SND_OPTION_TEXT, \
      at_(time_unit), 0 }, \
    { 0, "header", "TEXT", "ops, text: a title over the table", SND_OPTION_TEXT, at_(header), 0 }, \
    { 0, "max-name", "N", "text: widest column of names (55); 0 for no limit", SND_OPTION_NUMBER, \
      at_(max_name), 0 }, \
    { 0, "max-shapes", "N", "text: widest column of shapes (80); 0 for no limit", SND_OPTION_NUMBER, \
      at_(max_shapes), 0 }, \
    { 0, "max-source", "N", "text: widest column of source lines (75); 0 for no limit", \
      SND_OPTION_NUMBER, at_(max_source), 0 }, \
    { 0, "wide", NULL, "text: do not truncate lines to the terminal's width", SND_OPTION_FLAG, \
      at_(wide), 0 }
/* clang-format on */

/* The values as sonde_report() takes them, but for view and sort. -1 to go on, or the exit status. */
int snd_view_args_fill(const struct snd_command *self, const struct snd_view_args *args,
                       struct sonde_report_options *report);

/* Text for standard output: as wide as its terminal, if it is one and `wide` is not asked for. */
void snd_fit_stdout(bool wide, struct sonde_report_options *report);

/*
 * The part of `*view` that the options choose; a NULL *view becomes the part's. -1 to go on, or the
 * exit status.
 */
int snd_view_args_part(const struct snd_command *self, const struct snd_view_args *args,
                       const char **view, enum sonde_report_part *part);

/* The name of the first option that was given; NULL: none was. */
const char *snd_view_args_given(const struct snd_view_args *args);

/* What `sonde report --view VIEW` does with the trace at `path` (cmd_report.c); the exit status. */
int snd_report_show(const char *path, const char *view, const struct snd_view_args *args);

/* Clears options that do not apply to `view`: they are for other views of the command line. */
void snd_view_args_narrow(struct snd_view_args *args, const char *view);

#endif
