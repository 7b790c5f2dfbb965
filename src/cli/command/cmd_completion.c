/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde completion: what a shell needs to complete our command lines, made from the tables of the
 * commands, the views and the formats.
 */
#include <string.h>

#include "base/count_of.h"
#include "cli/commands.h"

/* --------------------------------------------------------------- the values */

static const struct snd_command *const commands[] = {
#define SND_COMMAND(name) &snd_command_##name,
#include "cli/commands.def"
};

static void list_views(void)
{
    const struct sonde_view_info *info;

    for (size_t i = 0; (info = sonde_view_info(i)) != NULL; i++)
        printf("%s%s", i ? " " : "", info->name);
}

static void list_formats(void)
{
    const struct sonde_exporter_info *info;

    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++)
        printf("%s%s", i ? " " : "", info->name);
}

static void list_units(void)
{
    printf("us ms s auto");
}

/* Options whose values come from a list. The value of any other is completed as a file name. */
static const struct {
    const char *command, *option;
    void (*list)(void);
} lists[] = {
    { "run", "view", list_views },    { "run", "time-unit", list_units },
    { "attach", "view", list_views }, { "attach", "time-unit", list_units },
    { "report", "view", list_views }, { "report", "time-unit", list_units },
    { "export", "to", list_formats },
};

static void (*find_list(const struct snd_command *command, const struct snd_option *option))(void)
{
    for (size_t i = 0; i < SND_COUNT_OF(lists); i++)
        if (strcmp(lists[i].command, command->name) == 0 &&
            strcmp(lists[i].option, option->name) == 0)
            return lists[i].list;
    return NULL;
}

/* --------------------------------------------------------------------- bash */

static void write_bash_values(const struct snd_command *command)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct snd_option *option = &command->options[i];
        void (*list)(void) = find_list(command, option);
        if (!list)
            continue;
        printf("    '%s --%s'", command->name, option->name);
        if (option->letter)
            printf("|'%s -%c'", command->name, option->letter);
        printf(") words='");
        list();
        printf("' ;;\n");
    }
}

static void write_bash(void)
{
    printf("# bash completion of sonde, made by 'sonde completion bash'\n"
           "_sonde() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command=${COMP_WORDS[1]} words= i\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$COMP_CWORD\" -eq 2 ] && "
           "[ \"$command\" = help ]; }; then\n"
           "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < SND_COUNT_OF(commands); i++)
        printf("%s ", commands[i]->name);
    printf("help --help --version' -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
           "        [ \"${COMP_WORDS[i]}\" = -- ] && return\n"
           "    done\n"
           "    case \"$command $prev\" in\n");
    for (size_t i = 0; i < SND_COUNT_OF(commands); i++)
        write_bash_values(commands[i]);
    printf("    esac\n"
           "    if [ -z \"$words\" ] && [[ $cur == -* ]]; then\n"
           "        case $command in\n");
    for (size_t i = 0; i < SND_COUNT_OF(commands); i++) {
        printf("        %s) words='--help", commands[i]->name);
        for (size_t k = 0; k < commands[i]->option_count; k++)
            printf(" --%s", commands[i]->options[k].name);
        printf("' ;;\n");
    }
    printf("        esac\n"
           "    fi\n"
           "    [ -n \"$words\" ] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "}\n"
           "complete -o default -F _sonde sonde\n");
}

/* ---------------------------------------------------------------------- zsh */

/* Within single quotes and brackets: escapes the characters that _arguments interprets. */
static void write_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else
            printf("%s%c", strchr("[]:\\", *text) ? "\\" : "", *text);
    }
}

static void write_zsh_option(const struct snd_command *command, const struct snd_option *option)
{
    void (*list)(void) = find_list(command, option);

    if (option->letter)
        printf(" \\\n            '(-%c --%s)'{-%c,--%s%s}'[", option->letter, option->name,
               option->letter, option->name, option->argument ? "=" : "");
    else
        printf(" \\\n            '--%s%s[", option->name, option->argument ? "=" : "");
    write_zsh_text(option->help);
    printf("]");
    if (option->argument) {
        printf("%s",
               option->kind == SND_OPTION_MAYBE || option->kind == SND_OPTION_WORDS ? "::" : ":");
        write_zsh_text(option->argument);
        if (list) {
            printf(":(");
            list();
            printf(")");
        } else {
            printf("%s", option->kind == SND_OPTION_TEXT || option->kind == SND_OPTION_LIST
                             ? ":_files"
                             : ":");
        }
    }
    printf("'");
}

static void write_zsh(void)
{
    printf("#compdef sonde\n"
           "# zsh completion of sonde, made by 'sonde completion zsh'\n"
           "_sonde() {\n"
           "    local -a commands\n"
           "    commands=(\n");
    for (size_t i = 0; i < SND_COUNT_OF(commands); i++) {
        printf("        '%s:", commands[i]->name);
        write_zsh_text(commands[i]->summary);
        printf("'\n");
    }
    printf("        'help:show how a command is used'\n"
           "    )\n"
           "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $command in\n");
    for (size_t i = 0; i < SND_COUNT_OF(commands); i++) {
        printf("    %s)\n        _arguments -s -S '--help[show how it is used]'",
               commands[i]->name);
        for (size_t k = 0; k < commands[i]->option_count; k++)
            write_zsh_option(commands[i], &commands[i]->options[k]);
        printf(" \\\n            '%s' ;;\n",
               commands[i]->program_follows ? "*::program:_normal" : "*:file:_files");
    }
    printf(
        "    esac\n"
        "}\n"
        "if [[ ${funcstack[1]} == _sonde ]]; then _sonde \"$@\"; else compdef _sonde sonde; fi\n");
}

/* -------------------------------------------------------------------- whole */

static const struct {
    const char *name;
    void (*write)(void);
} shells[] = { { "bash", write_bash }, { "zsh", write_zsh } };

static int run(const struct snd_command *self, int argc, char **argv)
{
    int operands;

    int status = snd_options_parse(self, argc, argv, NULL, &operands); /* it has no options */
    if (status >= 0)
        return status;
    if (operands != 1)
        return snd_usage_error(self, "expected one shell: bash or zsh");
    for (size_t i = 0; i < SND_COUNT_OF(shells); i++) {
        if (strcmp(shells[i].name, argv[0]) == 0) {
            shells[i].write();
            return snd_finish_stdout(self);
        }
    }
    return snd_usage_error(self, "there is no completion for '%s': the shells are bash and zsh",
                           argv[0]);
}

const struct snd_command snd_command_completion = {
    .name = "completion",
    .operands = "bash|zsh",
    .summary = "write the completion of command lines for a shell",
    .run = run,
};
