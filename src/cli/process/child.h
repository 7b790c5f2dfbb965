/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/child.h - runs a program as if it had been run alone.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_CHILD_H
#define SND_CLI_PROCESS_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct snd_child {
    /* Called when the process exists and waits to execute the program; or NULL. Set by the caller. */
    void (*forked)(void *user, pid_t pid);
    void *user;

    int           wait_status; /* as waitpid gives it */
    sigset_t      before;      /* the signals that were blocked before it ran */
    struct rusage usage;       /* of it, and of its children that it waited for */
    int64_t       elapsed_ns;  /* from just before exec to its end */
    bool          interrupted; /* a signal that ends programs reached us meanwhile */
};

/*
 * Runs `program` (NULL-terminated) and waits for its end. Signals that reach us and not the
 * program are passed on meanwhile; while the program is stopped, so are we. `child` is all zero, but
 * for what is the caller's.
 * -1 when it ran; 127 when there is no such program, 126 when it cannot be run, 1 when no
 * process could be made: then it has said so on stderr. Whatever it returns, the signals that
 * would end us stay blocked until snd_child_leave().
 */
int snd_child_run(char **program, struct snd_child *child);

/* Unblocks what snd_child_run has blocked. */
void snd_child_leave(const struct snd_child *child);

/* The program's exit status; does not return when a signal ended it: ends us by the same. */
int snd_child_status(const struct snd_child *child);

#endif
