/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options.h"

/* Signals that a person or a program sends to us and means for the program that we run. */
static const int passed_on[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,  SIGUSR1,
                                 SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH, SIGALRM };

/* Does not return. Tells through the pipe why the program could not be run. */
static void become(char **program, const sigset_t *mask, int report)
{
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(program[0], program);
    int why = errno;
    while (write(report, &why, sizeof why) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/*
 * A terminal sends its signals to the whole foreground group: the program has them already.
 * Those of kill(1) come to us alone.
 */
static bool came_from_terminal(const siginfo_t *info)
{
    return info->si_code > 0;
}

static void pass_on(pid_t pid, const siginfo_t *info)
{
    if (!came_from_terminal(info))
        kill(pid, info->si_signo);
    /* Stopping is for us as well; we have blocked what would do it. */
    if (info->si_signo == SIGTSTP)
        raise(SIGSTOP);
}

static int wait_for(pid_t pid, const sigset_t *set)
{
    siginfo_t info;
    int       status;

    for (;;) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        if (sigwaitinfo(set, &info) < 0 || info.si_signo == SIGCHLD)
            continue;
        pass_on(pid, &info);
    }
}

static int refuse(const char *program, int why)
{
    bool absent = why == ENOENT || why == ENOTDIR;

    snd_failure("run: cannot run %s: %s%s", program, strerror(why),
                absent && !strchr(program, '/') ? "; a program in this folder is ./NAME" : "");
    return absent ? 127 : 126;
}

/* -1, or the errno with which the program could not be run. */
static int read_reason(int fd)
{
    int     why;
    ssize_t n;

    do
        n = read(fd, &why, sizeof why);
    while (n < 0 && errno == EINTR);
    close(fd);
    return n == (ssize_t)sizeof why ? why : -1;
}

int snd_child_run(char **program, struct snd_child *child)
{
    struct sigaction usual = { .sa_handler = SIG_DFL };
    sigset_t         set, before;
    int              ends[2];

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof passed_on[0]; i++)
        sigaddset(&set, passed_on[i]);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return snd_failure("run: cannot make a pipe: %s", strerror(errno));
    /* If the parent ignored it, children would vanish without a word. */
    sigaction(SIGCHLD, &usual, NULL);
    sigprocmask(SIG_BLOCK, &set, &before);
    pid_t pid = fork();
    if (pid == 0)
        become(program, &before, ends[1]);
    int failed = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return snd_failure("run: cannot start a process: %s", strerror(failed));
    }
    int why = read_reason(ends[0]);
    child->wait_status = wait_for(pid, &set);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return why < 0 ? -1 : refuse(program[0], why);
}

int snd_child_status(const struct snd_child *child)
{
    if (WIFEXITED(child->wait_status))
        return WEXITSTATUS(child->wait_status);

    /* Whoever waits for us sees what it would have seen of the program; one core is enough. */
    struct rlimit    none = { 0, 0 };
    struct sigaction usual = { .sa_handler = SIG_DFL };
    int              number = WTERMSIG(child->wait_status);
    sigset_t         only;
    setrlimit(RLIMIT_CORE, &none);
    sigaction(number, &usual, NULL);
    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(number);
    return 128 + number;
}
