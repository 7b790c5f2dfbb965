/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/outside.h - a process of ours that samples the program of `sonde run` from outside.
 *
 * It is forked when the program's process is there and has not become the program yet, tells when the
 * kernel samples it, and ends when it is told to, or when we die. It has no signals of its own: what a
 * terminal sends to the group is the program's.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_OUTSIDE_H
#define SND_CLI_PROCESS_OUTSIDE_H

#include <stdbool.h>
#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/buf.h"

#define SND_OUTSIDE_HZ 1000

struct snd_outside {
    bool                wanted;
    bool                unasked; /* no message if it is not possible */
    int64_t             hz;      /* 0: the default */
    uint64_t            max_bytes;
    bool                keep_last, off_cpu;
    bool                clock;         /* samples by time */
    bool                per_function;  /* and by the counters of SONDE_FUNCTION_COUNTERS */
    bool                beside_python; /* only threads that their Python process does not sample */
    const char         *folder;        /* of the traces; borrowed, ends in '/' */
    unsigned            runs;          /* so far: each has its trace */
    struct sonde_buffer path;          /* of the trace of this run; owned, as the next */
    struct sonde_buffer command;       /* as a person types it */
    char                program[PATH_MAX]; /* its file; "": unknown */
    char                why[256];          /* why nothing is sampled; "" otherwise */
    pid_t               pid;               /* of the sampler; 0: none */
    int                 stop;              /* closed to end it */
    bool                left; /* processes of the program live on, and are sampled no further */
};

/* Sets the path of its trace, and the command line that it names; `folder` ends in '/'. */
void snd_outside_prepare(struct snd_outside *outside, const char *folder, char *const *program);
/* The program's process waits: sampling begins when it becomes the program. */
void snd_outside_start(struct snd_outside *outside, pid_t program);
/* The program has ended. Waits until the trace is whole. */
void snd_outside_end(struct snd_outside *outside);
/* Removes its trace: the program has recorded a better one itself. */
void snd_outside_drop(const struct snd_outside *outside);
void snd_outside_release(struct snd_outside *outside);

/* The command line of a living process, as a person types it; nothing if it cannot be read. */
void snd_read_command(pid_t pid, struct sonde_buffer *out);
/* Whether the process runs no Python; false also if its mappings cannot be read. */
bool snd_is_other_program(pid_t pid);

#endif
