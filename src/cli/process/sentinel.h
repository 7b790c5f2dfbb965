/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/sentinel.h - tells a signal that was sent to us alone from one sent to our process group.
 *
 * The siginfo of a signal does not say which: kill(pid) and kill(-group) look alike, and so do a
 * terminal's Ctrl-C (to the group) and its hangup (to the session leader alone). The sentinel is a
 * process of our group that blocks every signal: what is pending there was sent to the group, so
 * the program that we run has it already.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_SENTINEL_H
#define SND_CLI_PROCESS_SENTINEL_H

#include <stdbool.h>
#include <sys/types.h>

struct snd_sentinel {
    pid_t pid; /* -1: there is none; then every signal counts as sent to us alone */
    /* A bit for each signal. */
    unsigned long long seen;     /* sent to the group, and not yet taken by snd_sentinel_has() */
    unsigned long long repeated; /* came again while the sentinel was replaced; not yet taken */
};

/* Call with all signals of interest blocked. */
void snd_sentinel_start(struct snd_sentinel *sentinel);

/* Was the signal `number`, which we have just taken, sent to the whole group? */
bool snd_sentinel_has(struct snd_sentinel *sentinel, int number);

void snd_sentinel_end(struct snd_sentinel *sentinel);

#endif
