/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/viewoptions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli/commands.h"

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
                               "--group-by: unknown group '%.*s'%s; groups: shape, stack, thread, "
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
    return mode ? snd_usage_error(self, "--flops: expected full, torch or none, got '%s'", mode)
                : -1;
}

/* The options that choose a part of a view, and whose view it is. */
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
#define PART_COUNT (sizeof parts / sizeof parts[0])

int snd_view_args_part(const struct snd_command *self, const struct snd_view_args *args,
                       const char *view, enum sonde_report_part *part)
{
    *part = SONDE_PART_MAIN;
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (!*(const bool *)((const char *)args + parts[i].offset))
            continue;
        if (*part != SONDE_PART_MAIN)
            return snd_usage_error(
                self, "give only one of --callers, --callees, --tree, --awaiting, --summary");
        if (!view || strcmp(view, parts[i].view) != 0)
            return snd_usage_error(self, "--%s applies only to --view %s", parts[i].option,
                                   parts[i].view);
        *part = parts[i].part;
    }
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

void snd_fit_stdout(bool wide, struct sonde_report_options *report)
{
    report->width = !wide && isatty(STDOUT_FILENO) ? terminal_width() : 0;
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
    report->colour = text && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    snd_fit_stdout(args->wide || !text, report);
    report->max_name = clamp(args->max_name);
    report->max_shapes = clamp(args->max_shapes);
    report->max_source = clamp(args->max_source);
    report->skip_zero = args->skip_zero;
    report->show_all = args->show_all;
    report->peak = args->peak;
    int status = fill_groups(self, args->groups, report);
    if (status < 0)
        status = fill_flops(self, args->flops, report);
    if (status < 0 && args->time_unit && !snd_time_unit(args->time_unit, &report->time_unit))
        status = snd_usage_error(self, SND_NO_TIME_UNIT, args->time_unit);
    return status;
}

/* ------------------------------------------------------------ several views */

#define AT(member) offsetof(struct snd_view_args, member)
static const struct snd_option options[] = { SND_VIEW_OPTIONS(AT) };

const char *snd_view_args_given(const struct snd_view_args *args)
{
    static const struct snd_view_args unset = SND_VIEW_ARGS_INIT;

    for (size_t i = 0; i < SND_OPTION_COUNT(options); i++) {
        const struct snd_option *o = &options[i];
        size_t                   size = o->kind == SND_OPTION_FLAG   ? sizeof(bool)
                                        : o->kind == SND_OPTION_TEXT ? sizeof(char *)
                                                                     : sizeof(int64_t);
        if (memcmp((const char *)args + o->offset, (const char *)&unset + o->offset, size) != 0)
            return o->name;
    }
    return NULL;
}

void snd_view_args_narrow(struct snd_view_args *args, const char *view)
{
    const struct sonde_view_info *info;
    struct snd_nearest            bad = { .word = "" };

    for (size_t i = 0; i < PART_COUNT; i++)
        if (strcmp(parts[i].view, view) != 0)
            *(bool *)((char *)args + parts[i].offset) = false;
    for (size_t i = 0; args->groups && (info = sonde_view_info(i)) != NULL; i++)
        if (strcmp(info->name, view) == 0 && (parse_groups(args->groups, &bad) & ~info->groups))
            args->groups = NULL;
}
