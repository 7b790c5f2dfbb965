/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/arena.h"
#include "base/text/nearest.h"
#include "cli/options/option_help.h"

/* ----------------------------------------------------------------- saying */

__attribute__((__format__(__printf__, 2, 0))) static void
say(const char *before, const char *format, va_list args, const char *after)
{
    char text[1024];

    fflush(stdout);
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "sonde: %s%s%s\n", before, snd_make_plain(text), after);
}

/* Names come from files: without control characters they cannot control the terminal. */
char *snd_make_plain(char *text)
{
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    return text;
}

int snd_usage_error(const struct snd_command *command, const char *format, ...)
{
    char    before[64], after[64];
    va_list args;

    snprintf(before, sizeof before, "%s: ", command->name);
    snprintf(after, sizeof after, "; see 'sonde help %s'", command->name);
    va_start(args, format);
    say(before, format, args, after);
    va_end(args);
    return SND_EXIT_USAGE;
}

int snd_failure(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("", format, args, "");
    va_end(args);
    return SND_EXIT_FAILED;
}

/* ---------------------------------------------------------------- parsing */

static bool parse_number(const char *text, int64_t least, int64_t *number)
{
    char *end;

    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < least)
        return false;
    *number = value;
    return true;
}

bool snd_size_parse(const char *text, uint64_t *size)
{
    static const char units[] = "KMGT";
    char             *end;

    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    unsigned    shift = unit ? 10 * ((unsigned)(unit - units) + 1) : 0;
    if (unit)
        end++;
    if (unit && (strcmp(end, "B") == 0 || strcmp(end, "iB") == 0))
        end += strlen(end);
    if (*end != '\0' || value == 0 || value > UINT64_MAX >> shift)
        return false;
    *size = (uint64_t)value << shift;
    return true;
}

/*
 * A list that is given several times. What is joined lives as long as argv, as other values do. NULL: out of memory.
 */
static const char *join(const char *before, const char *value)
{
    static struct snd_arena joined;
    size_t                  size = strlen(before) + strlen(value) + 2;
    char                   *text = snd_arena_take(&joined, size);

    if (text)
        (void)snprintf(text, size, "%s,%s", before, value);
    return text;
}

static int store_list(const struct snd_command *command, const char *value, const char **place)
{
    bool is_first = !*place || !**place;

    if (is_first || *value)
        *place = is_first ? value : join(*place, value);
    return *place ? -1 : snd_failure("%s: out of memory", command->name);
}

/* Puts the value of one option in its place. -1 or an exit status. */
static int store(const struct snd_command *command, const struct snd_option *option,
                 const char *value, void *values)
{
    void *place = (char *)values + option->offset;

    switch (option->kind) {
    case SND_OPTION_FLAG:
        *(bool *)place = true;
        return -1;
    case SND_OPTION_TEXT:
        *(const char **)place = value;
        return -1;
    case SND_OPTION_LIST:
    case SND_OPTION_WORDS:
        return store_list(command, value ? value : "", place);
    case SND_OPTION_NUMBER:
        if (parse_number(value, option->least, place))
            return -1;
        return snd_usage_error(command, "--%s: expected an integer >= %lld, got '%s'", option->name,
                               (long long)option->least, value);
    case SND_OPTION_SIZE:
        if (snd_size_parse(value, place))
            return -1;
        return snd_usage_error(command, "--%s: expected a size such as 500M or 2G, got '%s'",
                               option->name, value);
    case SND_OPTION_MAYBE:
        *(int64_t *)place = -1;
        if (!value || parse_number(value, 1, place))
            return -1;
        return snd_usage_error(command, "--%s: expected an integer >= 1, got '%s'", option->name,
                               value);
    }
    return -1;
}

static const struct snd_option *find_long(const struct snd_command *command, const char *text)
{
    size_t length = strcspn(text, "=");

    for (size_t i = 0; i < command->option_count; i++)
        if (strlen(command->options[i].name) == length &&
            strncmp(command->options[i].name, text, length) == 0)
            return &command->options[i];
    return NULL;
}

static const struct snd_option *find_letter(const struct snd_command *command, char letter)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].letter == letter)
            return &command->options[i];
    return NULL;
}

static int refuse_option(const struct snd_command *command, const char *text)
{
    char               names[64], hint[SND_HINT_MAX];
    struct snd_nearest nearest = { .word = text + 2, .length = strcspn(text + 2, "=") };

    if (text[1] != '-')
        return snd_usage_error(command, "unknown option '%s'", text);
    for (size_t i = 0; i < command->option_count; i++)
        snd_nearest_try(&nearest, command->options[i].name);
    if (nearest.best) { /* as it is to be typed */
        snprintf(names, sizeof names, "--%s", nearest.best);
        nearest.best = names;
    }
    return snd_usage_error(command, "unknown option '%s'%s", text,
                           snd_nearest_hint(&nearest, hint));
}

static bool is_optional(const struct snd_option *option)
{
    return option->kind == SND_OPTION_MAYBE || option->kind == SND_OPTION_WORDS;
}

/* Whether it is written as an option of this command, or ends them. */
static bool is_option(const struct snd_command *command, const char *text)
{
    if (text[0] != '-')
        return false;
    if (text[1] == '-')
        return text[2] == '\0' || find_long(command, text + 2);
    return text[1] != '\0' && text[2] == '\0' && find_letter(command, text[1]);
}

/*
 * Whether `next` may be the option's value: of one whose value may be left out, only a number; of
 * another, no option, since its value has been forgotten then ("=" hands one over that looks so).
 */
static bool may_follow(const struct snd_command *command, const struct snd_option *option,
                       const char *next)
{
    if (!is_optional(option))
        return !is_option(command, next);
    return option->kind == SND_OPTION_MAYBE && *next && strspn(next, "0123456789") == strlen(next);
}

/* "--name", "--name=value", "--name value", "-x", "-xvalue", "-x value". -1 or exit status. */
static int parse_one(const struct snd_command *command, int argc, char **argv, int *at,
                     void *values)
{
    const char              *text = argv[*at], *value = NULL;
    bool                     is_long = text[1] == '-';
    const struct snd_option *option = is_long ? find_long(command, text + 2)
                                              : find_letter(command, text[1]);

    if (!option)
        return refuse_option(command, text);
    const char *inside = is_long ? strchr(text, '=') : text + 2;
    if (inside && *inside)
        value = is_long ? inside + 1 : inside;
    if (!option->argument) {
        if (value)
            return snd_usage_error(command, "option '%s' takes no value", text);
    } else if (!value && *at + 1 < argc && may_follow(command, option, argv[*at + 1])) {
        value = argv[++*at];
    } else if (!value && !is_optional(option)) {
        return snd_usage_error(command, "--%s: missing value %s", option->name, option->argument);
    }
    return store(command, option, value, values);
}

static bool asks_help(const char *text)
{
    return strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}

int snd_options_parse(const struct snd_command *command, int argc, char **argv, void *values,
                      int *operands)
{
    bool ended = false;

    *operands = 0;
    for (int at = 1; at < argc; at++) {
        if (!ended && strcmp(argv[at], "--") == 0) {
            ended = true;
        } else if (!ended && asks_help(argv[at])) {
            snd_command_help(command, stdout);
            return SND_EXIT_OK;
        } else if (!ended && argv[at][0] == '-' && argv[at][1] != '\0') {
            int status = parse_one(command, argc, argv, &at, values);
            if (status >= 0)
                return status;
        } else {
            argv[(*operands)++] = argv[at];
            ended = ended || command->program_follows;
        }
    }
    return -1;
}
