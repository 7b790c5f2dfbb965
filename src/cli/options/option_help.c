/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/option_help.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/options/options.h"

#define FILE_WIDTH 100 /* of help that is not written to a terminal */
#define TEXT_LEAST 30  /* a narrower column is harder to read than lines that the terminal breaks */

uint32_t snd_terminal_width(void)
{
    const char    *columns = getenv("COLUMNS");
    struct winsize size;
    char          *end;
    long           width = columns && *columns ? strtol(columns, &end, 10) : 0;

    if (width > 0 && *end == '\0')
        return width > 1000000 ? 1000000 : (uint32_t)width;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* How much of `text` a line of `room` columns takes: it ends before a blank, if there is one. */
static size_t count_fitting(const char *text, size_t room)
{
    size_t length = strlen(text), at = room;

    if (length <= room)
        return length;
    while (at > 0 && text[at] != ' ')
        at--;
    return at > 0 ? at : strcspn(text, " ");
}

/* The text, whose first line begins in column `indent`; the others are indented to it. */
static void put_wrapped(const char *text, size_t indent, size_t width, FILE *out)
{
    size_t room = width > indent + TEXT_LEAST ? width - indent : TEXT_LEAST;

    for (;;) {
        size_t fitting = count_fitting(text, room);
        fprintf(out, "%.*s\n", (int)fitting, text);
        text += fitting;
        while (*text == ' ')
            text++;
        if (!*text)
            return;
        fprintf(out, "%*s", (int)indent, "");
    }
}

static int format_label(const struct snd_option *option, char *text, size_t size)
{
    char letter[8] = "    ";

    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    const char *argument = option->argument ? option->argument : "";
    return snprintf(text, size, "%s--%s%s%s", letter, option->name,
                    *argument && option->kind != SND_OPTION_WORDS ? " " : "", argument);
}

/* The title of the group that an option opens; NULL: it opens none. */
static const char *find_title(const struct snd_command *command, size_t index)
{
    const struct snd_option_group *group = command->groups;

    for (; group && group->first; group++)
        if (strcmp(group->first, command->options[index].name) == 0)
            return group->title;
    return index == 0 ? "options" : NULL;
}

void snd_command_help(const struct snd_command *command, FILE *out)
{
    char   label[80];
    int    widest = 0;
    size_t width = isatty(fileno(out)) ? snd_terminal_width() : 0;

    fprintf(out, "usage: sonde %s%s%s%s\n\n%s\n", command->name,
            command->option_count ? " [OPTIONS]" : "", *command->operands ? " " : "",
            command->operands, command->summary);
    for (size_t i = 0; i < command->option_count; i++) {
        int length = format_label(&command->options[i], label, sizeof label);
        widest = length > widest ? length : widest;
    }
    for (size_t i = 0; i < command->option_count; i++) {
        const char *title = find_title(command, i);
        if (title)
            fprintf(out, "\n%s:\n", title);
        format_label(&command->options[i], label, sizeof label);
        fprintf(out, "  %-*s  ", widest, label);
        put_wrapped(command->options[i].help, (size_t)widest + 4, width ? width : FILE_WIDTH, out);
    }
}
