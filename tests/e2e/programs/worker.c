/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for the tests of `sonde run`: what it does is its first argument.
 *
 *     worker args A B ..     prints its arguments, one a line
 *     worker copy            copies standard input to standard output
 *     worker exit N          ends with this status
 *     worker raise N         ends itself by this signal
 *     worker wait            says "ready", then the number of each signal it is sent; ends at TERM
 *     worker fork N          N children, each with a range; they and it record
 *     worker steps N [M]     N steps with a range each; then, at the end of standard input, M more
 *     worker names           ranges with strange names
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/record.h>

static int do_args(int argc, char **argv)
{
    SONDE_RANGE("args");
    for (int i = 2; i < argc; i++)
        puts(argv[i]);
    return 0;
}

static int do_copy(int argc, char **argv)
{
    char   bytes[4096];
    size_t n;

    (void)argc;
    (void)argv;
    SONDE_RANGE("copy");
    while ((n = fread(bytes, 1, sizeof bytes, stdin)) > 0)
        fwrite(bytes, 1, n, stdout);
    return 0;
}

static int do_exit(int argc, char **argv)
{
    SONDE_RANGE("exit");
    return argc > 2 ? atoi(argv[2]) : 1;
}

static int do_raise(int argc, char **argv)
{
    SONDE_RANGE("raise");
    fflush(NULL);
    raise(argc > 2 ? atoi(argv[2]) : SIGTERM);
    return 1;
}

static int do_wait(int argc, char **argv)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };
    sigset_t         set;
    int              number;

    (void)argc;
    (void)argv;
    SONDE_RANGE("wait");
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    puts("ready");
    fflush(stdout);
    do {
        if (sigwait(&set, &number) != 0)
            return 1;
        printf("%d\n", number);
        fflush(stdout);
    } while (number != SIGTERM);
    return 0;
}

static int do_fork(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[2]) : 1, status = 0;

    SONDE_RANGE("parent");
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            sonde_begin("child");
            sonde_end();
            _exit(0);
        }
        status |= pid < 0;
    }
    for (int i = 0, ended; i < count; i++)
        status |= wait(&ended) < 0 || ended != 0;
    return status;
}

static void make_steps(int count)
{
    for (int i = 0; i < count; i++) {
        SONDE_RANGE("step");
        sonde_step();
    }
}

static int do_steps(int argc, char **argv)
{
    make_steps(argc > 2 ? atoi(argv[2]) : 1);
    if (argc > 3) {
        while (getchar() != EOF)
            continue;
        make_steps(atoi(argv[3]));
    }
    return 0;
}

static int do_names(int argc, char **argv)
{
    static const char *const names[] = { "plain",    "\"quotes\" and \\", "new\nline",
                                         "\x01\x7f", "\xf0\x9f\x9a\x80",  "\xff not UTF-8 \xc3" };

    (void)argc;
    (void)argv;
    SONDE_RANGE("outer");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sonde_begin_text(names[i]);
        sonde_end();
    }
    return 0;
}

static const struct {
    const char *name;
    int (*act)(int argc, char **argv);
} acts[] = {
    { "args", do_args }, { "copy", do_copy }, { "exit", do_exit },   { "raise", do_raise },
    { "wait", do_wait }, { "fork", do_fork }, { "steps", do_steps }, { "names", do_names },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof acts / sizeof acts[0]; i++)
        if (strcmp(argv[1], acts[i].name) == 0)
            return acts[i].act(argc, argv);
    return 99;
}
