/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/sentinel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* Linux 5.9 */
#endif
#define LATE_NS 2000000 /* the longest a signal to a group takes to reach its last process */

/* Does not return. It keeps none of our descriptors: a reader of a pipe must see its end. */
static void wait_for_end(pid_t parent)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "sonde-sentinel");
    if (syscall(SYS_close_range, 0u, ~0u, 0u) != 0)
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
    while (getppid() == parent)
        pause();
    _exit(0);
}

void snd_sentinel_start(struct snd_sentinel *sentinel)
{
    pid_t    parent = getpid();
    sigset_t all, before;

    /* Blocked from before the fork: it is never ended by what is sent to the group. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    sentinel->seen = sentinel->repeated = 0;
    sentinel->pid = fork();
    if (sentinel->pid == 0)
        wait_for_end(parent);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* The signals that wait for the process, a bit each; 0 where that is unknown. */
static unsigned long long read_pending(pid_t pid)
{
    char               line[128];
    unsigned long long pending = 0;

    snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    FILE *file = fopen(line, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "ShdPnd: %llx", &pending) == 1)
            break;
    fclose(file);
    return pending;
}

static bool is_pending_here(int number)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
}

/*
 * Adds what was sent to the group since; a new sentinel has nothing pending. The old one is read again
 * once the new one is there, for what came meanwhile. Only a repeat of a signal that was pending in the
 * old one leaves no mark there: it is taken for what the one before it was, as the kernel itself makes
 * one of two equal signals.
 */
static void look(struct snd_sentinel *sentinel, int number)
{
    unsigned long long pending = read_pending(sentinel->pid), bit = 1ull << (number - 1);

    if (pending == 0)
        return;
    struct snd_sentinel old = *sentinel;
    snd_sentinel_start(sentinel);
    sentinel->seen = old.seen | pending | read_pending(old.pid);
    sentinel->repeated = old.repeated;
    if ((sentinel->seen & bit) && is_pending_here(number) &&
        !(sentinel->pid > 0 && read_pending(sentinel->pid) & bit))
        sentinel->repeated |= bit;
    snd_sentinel_end(&old);
}

bool snd_sentinel_has(struct snd_sentinel *sentinel, int number)
{
    const struct timespec late = { 0, LATE_NS };
    unsigned long long    bit = 1ull << (number - 1);

    if (sentinel->pid < 0)
        return false;
    bool has = sentinel->repeated & bit;
    sentinel->repeated &= ~bit;
    look(sentinel, number);
    if (!has && !(sentinel->seen & bit)) { /* the kernel promises no order within a group */
        clock_nanosleep(CLOCK_MONOTONIC, 0, &late, NULL);
        look(sentinel, number);
    }
    has = has || sentinel->seen & bit;
    sentinel->seen &= ~bit;
    return has;
}

void snd_sentinel_end(struct snd_sentinel *sentinel)
{
    if (sentinel->pid < 0)
        return;
    kill(sentinel->pid, SIGKILL);
    while (waitpid(sentinel->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    sentinel->pid = -1;
}
