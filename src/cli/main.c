/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: finds the command and lets it run. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/nearest.h"
#include "cli/commands.h"
#include "cli/options/option_help.h"

static const struct snd_command *const commands[] = {
#define SND_COMMAND(name) &snd_command_##name,
#include "cli/commands.def"
};

static void print_help(FILE *out)
{
    fprintf(out,
            "usage: sonde COMMAND [OPTIONS] ...\n\n"
            "A profiler for deep-learning models and the programs around them.\n\ncommands:\n");
    for (size_t i = 0; i < SND_COUNT_OF(commands); i++)
        fprintf(out, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "  %-10s  %s\n", "help", "show how a command is used");
    fprintf(out, "\nSee 'sonde help COMMAND' or 'man sonde-COMMAND'.\n");
}

static const struct snd_command *find_command(const char *name)
{
    for (size_t i = 0; i < SND_COUNT_OF(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int refuse(const char *name)
{
    struct snd_nearest nearest = { .word = name, .length = strlen(name) };
    char               hint[SND_HINT_MAX], shown[256];

    for (size_t i = 0; i < SND_COUNT_OF(commands); i++)
        snd_nearest_try(&nearest, commands[i]->name);
    snd_nearest_try(&nearest, "help");
    snprintf(shown, sizeof shown, "%s", name);
    fprintf(stderr, "sonde: unknown command '%s'%s; see 'sonde --help'\n", snd_make_plain(shown),
            snd_nearest_hint(&nearest, hint));
    return SND_EXIT_USAGE;
}

static int help(int argc, char **argv)
{
    if (argc > 2) {
        fprintf(stderr, "sonde: help: expected one command; see 'sonde --help'\n");
        return SND_EXIT_USAGE;
    }
    if (argc < 2) {
        print_help(stdout);
        return SND_EXIT_OK;
    }
    if (strcmp(argv[1], "help") == 0) {
        printf("usage: sonde help [COMMAND]\n\nshow how a command is used\n");
        return SND_EXIT_OK;
    }
    const struct snd_command *command = find_command(argv[1]);
    if (!command)
        return refuse(argv[1]);
    snd_command_help(command, stdout);
    return SND_EXIT_OK;
}

static int run(const char *name, int argc, char **argv)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(1, argv);
    if (strcmp(name, "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("sonde %s\n", sonde_version());
        return SND_EXIT_OK;
    }
    const struct snd_command *command = find_command(name);
    return command ? command->run(command, argc - 1, argv + 1) : refuse(name);
}

/*
 * A file that would pass RLIMIT_FSIZE is an error to be reported, no reason to die. A handler, as the
 * program that is run has the signal as it was: execve() puts handlers back, but not SIG_IGN.
 */
static void take_no_notice(int number)
{
    (void)number;
}

static void survive_size_limit(void)
{
    struct sigaction now, ours = { .sa_handler = take_no_notice, .sa_flags = SA_RESTART };

    if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaction(SIGXFSZ, &ours, NULL);
}

int main(int argc, char **argv)
{
    survive_size_limit();
    if (argc < 2) {
        print_help(stderr);
        return SND_EXIT_USAGE;
    }
    int status = run(argv[1], argc, argv);
    /* Output that could not be written, of help or a list; commands report their own. */
    if (status == SND_EXIT_OK && (fflush(stdout) != 0 || ferror(stdout)))
        status = snd_failure("cannot write to standard output: %s", strerror(errno));
    return status;
}
