/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/observers.h - a process and its descendants, each sampled by an observer of its own.
 *
 * The recorder writes one process's trace, so each process that is observed has a process of ours
 * that observes it. New descendants are found while it goes on; those that run no Python, or have
 * not started it yet, are asked again for a while and then left alone.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_OBSERVERS_H
#define SND_CLI_PROCESS_OBSERVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct snd_observers {
    pid_t               root;
    const char         *folder; /* where the traces go, ending in '/' */
    uint64_t            period_ns;
    bool                nonblocking; /* no thread is ever halted */
    uint64_t            duration_ns; /* 0: until all have ended */
    const volatile int *quit;        /* not 0: end; also set by the handler of SIGTERM */
};

/* Returns when all have ended, the time is over, or *quit. Says on stderr what went wrong. */
void snd_observers_run(const struct snd_observers *observers);

#endif
