/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/child.h - runs a program as if it had been run alone.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_CHILD_H
#define SND_CLI_CHILD_H

struct snd_child {
    int wait_status; /* as waitpid gives it */
};

/*
 * Runs `program` (NULL-terminated) and waits for its end, passing signals on meanwhile.
 * -1 when it ran; 127 when there is no such program, 126 when it cannot be run, 1 when no
 * process could be made: then it has said so on stderr.
 */
int snd_child_run(char **program, struct snd_child *child);

/* The program's exit status; does not return when a signal ended it: ends us by the same. */
int snd_child_status(const struct snd_child *child);

#endif
