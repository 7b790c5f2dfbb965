/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/clock_ns.h"
#include "base/system/proc_files.h"
#include "cli/options/options.h"
#include "cli/process/sentinel.h"

#define WAKE_LOOK_NS 100000000 /* how often a stopped program is checked */

/* Signals sent to us that are meant for the program that we run. */
static const int passed_on[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,  SIGUSR1,
                                 SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH, SIGALRM };

/*
 * Does not return. Waits until the other end of `gate` is closed, and writes to `report` why the
 * program could not be executed.
 */
static void become(char **program, const sigset_t *mask, int gate, int report)
{
    char none;

    while (gate >= 0 && read(gate, &none, 1) < 0 && errno == EINTR)
        ;
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(program[0], program);
    int why = errno;
    while (write(report, &why, sizeof why) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/* ---------------------------------------------------------------- waiting */

/*
 * Does not return. A user who continues only the program does not know that we are stopped as well.
 * Continuing us once may be too early, so this repeats until we end it.
 */
static void wake_with(pid_t pid, pid_t sonde)
{
    const struct timespec rest = { 0, WAKE_LOOK_NS };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == sonde) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        if (snd_proc_state(pid) != 'T')
            kill(sonde, SIGCONT);
    }
    _exit(0);
}

/*
 * The program was stopped by the signal `number`: we stop as well, so that our parent sees the same,
 * until it continues. Returns the process that watches for that.
 */
static pid_t stop_with(pid_t pid, int number)
{
    pid_t    sonde = getpid(), waker = fork();
    sigset_t only;

    if (waker == 0)
        wake_with(pid, sonde);
    sigemptyset(&only);
    sigaddset(&only, number);
    raise(number); /* still blocked, unless it is SIGSTOP */
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
    if (waker > 0) {
        kill(waker, SIGKILL);
        while (waitpid(waker, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return waker;
}

static bool ends_programs(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

/* The program decides whether it stops: if a signal stops it, waitpid returns that. */
static int wait_for(pid_t pid, const sigset_t *set, struct snd_sentinel *sentinel,
                    struct snd_child *child)
{
    siginfo_t info;
    pid_t     waker = -1;
    int       status;

    for (;;) {
        if (wait4(pid, &status, WNOHANG | WUNTRACED, &child->usage) == pid) {
            if (!WIFSTOPPED(status))
                return status;
            waker = stop_with(pid, WSTOPSIG(status));
        }
        if (sigwaitinfo(set, &info) < 0 || info.si_signo == SIGCHLD)
            continue;
        child->interrupted |= ends_programs(info.si_signo);
        bool is_our_own = info.si_code <= 0 && info.si_pid == waker;
        if (!is_our_own && !snd_sentinel_has(sentinel, info.si_signo))
            kill(pid, info.si_signo);
    }
}

/* Drops signals that arrived while the program ended: they were meant for it. */
static void drop_pending(const sigset_t *set, struct snd_child *child)
{
    const struct timespec now = { 0, 0 };
    int                   number;

    while ((number = sigtimedwait(set, NULL, &now)) > 0)
        child->interrupted |= ends_programs(number);
}

/* ------------------------------------------------------------------ whole */

static int refuse(const char *program, int why)
{
    bool absent = why == ENOENT || why == ENOTDIR;

    snd_failure("run: cannot run %s: %s%s", program, strerror(why),
                absent && !strchr(program, '/')
                    ? "; for a program in the current folder write ./NAME"
                    : "");
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

/* Calls the `forked` callback, then opens the gate; returns the time at which it opened. */
static int64_t let_go(const struct snd_child *child, pid_t pid, int gate[2])
{
    if (gate[0] >= 0)
        close(gate[0]);
    if (pid > 0 && child->forked)
        child->forked(child->user, pid);
    int64_t now = (int64_t)snd_clock_ns(CLOCK_MONOTONIC);
    if (gate[1] >= 0)
        close(gate[1]);
    return now;
}

int snd_child_run(char **program, struct snd_child *child)
{
    struct sigaction    usual = { .sa_handler = SIG_DFL };
    struct snd_sentinel sentinel;
    sigset_t            set;
    int                 ends[2], gate[2] = { -1, -1 };

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < SND_COUNT_OF(passed_on); i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &child->before);
    if (pipe2(ends, O_CLOEXEC) != 0 || (child->forked && pipe2(gate, O_CLOEXEC) != 0))
        return snd_failure("run: cannot make a pipe: %s", strerror(errno));
    /* If our parent ignored SIGCHLD, the kernel would reap children before we wait for them. */
    sigaction(SIGCHLD, &usual, NULL);
    snd_sentinel_start(&sentinel);
    pid_t pid = fork();
    if (pid == 0) {
        if (gate[1] >= 0)
            close(gate[1]);
        become(program, &child->before, gate[0], ends[1]);
    }
    int     failed = errno;
    int64_t start_ns = let_go(child, pid, gate);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        snd_sentinel_end(&sentinel);
        return snd_failure("run: cannot start a process: %s", strerror(failed));
    }
    int why = read_reason(ends[0]);
    child->wait_status = wait_for(pid, &set, &sentinel, child);
    child->elapsed_ns = (int64_t)snd_clock_ns(CLOCK_MONOTONIC) - start_ns;
    snd_sentinel_end(&sentinel);
    drop_pending(&set, child);
    return why < 0 ? -1 : refuse(program[0], why);
}

void snd_child_leave(const struct snd_child *child)
{
    sigprocmask(SIG_SETMASK, &child->before, NULL);
}

int snd_child_status(const struct snd_child *child)
{
    if (WIFEXITED(child->wait_status))
        return WEXITSTATUS(child->wait_status);

    /* We end by the same signal, so that our parent sees it; without a core dump of our own. */
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
