/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_parents.h - what `sonde run` itself records of the program, from outside: the probes that
 * SND_BY_PARENT of probes/probes.def starts.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUN_RUN_PARENTS_H
#define SND_CLI_RUN_RUN_PARENTS_H

#include "cli/process/child.h"
#include "cli/run/run_probes.h"

/* How one of them is started and ended. Functions that are not needed are NULL. */
struct snd_run_parent {
    /*
     * Reads the value of the option. -1, or the exit status of a usage error. *state is the caller's
     * to hand over below, and to release.
     */
    int (*prepare)(const struct snd_command *self, const struct snd_run_probes *chosen,
                   void **state);
    /* The program's process is there and waits: it becomes the program after this returns. */
    void (*forked)(void *state, pid_t pid);
    /* The program has ended. With --repeat both are called for each run. */
    void (*ended)(void *state, const struct snd_child *child);
    /* After the last run: writes what was recorded into the trace's folder, which ends in '/'. */
    void (*write)(void *state, const char *folder, char **program);
    void (*release)(void *state);
};

#define SND_RUN_PARENTS_MAX 4u

/* Those of the table. */
extern const struct snd_run_parent snd_parent_counters;

/* Those that were chosen, with their states. */
struct snd_run_parents {
    struct {
        const struct snd_run_parent *parent;
        void                        *state; /* owned */
    } list[SND_RUN_PARENTS_MAX];
    size_t count;
};

/* -1, or an exit status after saying why. The caller releases it in both cases. */
int  snd_run_parents_prepare(const struct snd_command *self, const struct snd_run_probes *chosen,
                             struct snd_run_parents *parents);
void snd_run_parents_release(struct snd_run_parents *parents);

/* For struct snd_child: calls `forked` of each. */
void snd_run_parents_forked(void *parents, pid_t pid);
void snd_run_parents_ended(const struct snd_run_parents *parents, const struct snd_child *child);
void snd_run_parents_write(const struct snd_run_parents *parents, const char *folder,
                           char **program);

#endif
