/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/view_options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "cli/console.h"
#include "cli/commands.h"
#include "cli/options/option_help.h"

/* The value of an option's word, or an error that names the option. */
static int fill_word(const struct snd_command *self, const char *option, enum sonde_word_list list,
                     const char *text, int *value)
{
    struct sonde_error err = { 0 };

    if (!text || sonde_word_value(list, text, value, &err) == SONDE_OK)
        return -1;
    return snd_usage_error(self, "%s%s", option, err.message);
}

static int fill_words(const struct snd_command *self, const struct snd_view_args *args,
                      struct sonde_report_options *report)
{
    int groups = 0, flops = (int)report->flops, unit = (int)report->time_unit;
    int status = fill_word(self, "--group-by: ", SONDE_WORDS_GROUP, args->groups, &groups);

    if (status < 0)
        status = fill_word(self, "--flops: ", SONDE_WORDS_FLOPS, args->flops, &flops);
    if (status < 0)
        status = fill_word(self, "", SONDE_WORDS_TIME_UNIT, args->time_unit, &unit);
    report->groups = (unsigned)groups;
    report->flops = (enum sonde_flops_mode)flops;
    report->time_unit = (enum sonde_time_unit)unit;
    return status;
}

/* The options that choose a part of a view, and the view that each belongs to. */
static const struct {
    const char            *option, *view;
    size_t                 offset;
    enum sonde_report_part part;
} parts[] = {
    { "callers", "functions", offsetof(struct snd_view_args, callers), SONDE_PART_CALLERS },
    { "callees", "functions", offsetof(struct snd_view_args, callees), SONDE_PART_CALLEES },
    { "tree", "functions", offsetof(struct snd_view_args, tree), SONDE_PART_TREE },
    { "awaiting", "functions", offsetof(struct snd_view_args, awaiting), SONDE_PART_AWAITING },
    { "summary", "lines", offsetof(struct snd_view_args, summary), SONDE_PART_SUMMARY },
};
#define PART_COUNT SND_COUNT_OF(parts)

int snd_view_args_part(const struct snd_command *self, const struct snd_view_args *args,
                       const char **view, enum sonde_report_part *part)
{
    const char *asked = *view;

    *part = SONDE_PART_MAIN;
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (!*(const bool *)((const char *)args + parts[i].offset))
            continue;
        if (*part != SONDE_PART_MAIN)
            return snd_usage_error(
                self, "give only one of --callers, --callees, --tree, --awaiting, --summary");
        if (asked && strcmp(asked, parts[i].view) != 0)
            return snd_usage_error(self, "--%s applies only to --view %s", parts[i].option,
                                   parts[i].view);
        *part = parts[i].part;
        *view = parts[i].view;
    }
    if (args->gil && !*view)
        *view = "samples";
    if (args->at && !*view)
        *view = "heap";
    return -1;
}

static uint32_t clamp(int64_t width)
{
    return width > 1000000 ? 1000000 : (uint32_t)width;
}

/* The C locale's characters are ASCII's; setlocale() would not know a locale that is not installed. */
static bool is_ascii_locale(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < SND_COUNT_OF(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcmp(value, "C") == 0 || strcmp(value, "POSIX") == 0;
    }
    return true;
}

void snd_fit_stdout(bool wide, struct sonde_report_options *report)
{
    report->width = !wide && isatty(STDOUT_FILENO) ? snd_terminal_width() : 0;
    report->ascii = is_ascii_locale();
}

int snd_view_args_fill(const struct snd_command *self, const struct snd_view_args *args,
                       struct sonde_report_options *report)
{
    bool text = !args->json && !args->csv;

    if (args->json && args->csv)
        return snd_usage_error(self, "give --json or --csv, not both");
    report->rows = args->rows != INT64_MIN ? args->rows : text ? 100 : -1;
    report->stack_depth = clamp(args->stack_depth);
    report->format = args->json  ? SONDE_REPORT_JSON
                     : args->csv ? SONDE_REPORT_CSV
                                 : SONDE_REPORT_TEXT;
    report->top_level = args->top_level;
    report->header = args->header;
    report->colour = text && snd_has_colours(stdout);
    snd_fit_stdout(args->wide || !text, report);
    report->max_name = clamp(args->max_name);
    report->max_shapes = clamp(args->max_shapes);
    report->max_source = clamp(args->max_source);
    report->skip_zero = args->skip_zero;
    report->show_all = args->show_all;
    report->peak = args->peak;
    report->gil = args->gil;
    report->at_ns = args->at;
    return fill_words(self, args, report);
}

/* ------------------------------------------------------------ several views */

#define AT(member) offsetof(struct snd_view_args, member)
static const struct snd_option options[] = { SND_VIEW_OPTIONS(AT) };

const char *snd_view_args_given(const struct snd_view_args *args)
{
    static const struct snd_view_args unset = SND_VIEW_ARGS_INIT;

    for (size_t i = 0; i < SND_COUNT_OF(options); i++) {
        const struct snd_option *o = &options[i];
        bool                     is_text = o->kind == SND_OPTION_TEXT || o->kind == SND_OPTION_LIST;
        size_t                   size = o->kind == SND_OPTION_FLAG ? sizeof(bool)
                                        : is_text                  ? sizeof(char *)
                                                                   : sizeof(int64_t);
        if (memcmp((const char *)args + o->offset, (const char *)&unset + o->offset, size) != 0)
            return o->name;
    }
    return NULL;
}

void snd_view_args_narrow(struct snd_view_args *args, const char *view)
{
    const struct sonde_view_info *info;
    int                           groups = 0;

    for (size_t i = 0; i < PART_COUNT; i++)
        if (strcmp(parts[i].view, view) != 0)
            *(bool *)((char *)args + parts[i].offset) = false;
    if (strcmp(view, "samples") != 0)
        args->gil = false;
    if (strcmp(view, "heap") != 0)
        args->at = 0;
    for (size_t i = 0; args->groups && (info = sonde_view_info(i)) != NULL; i++)
        if (strcmp(info->name, view) == 0 &&
            sonde_word_value(SONDE_WORDS_GROUP, args->groups, &groups, NULL) == SONDE_OK &&
            ((unsigned)groups & ~info->groups))
            args->groups = NULL;
}
