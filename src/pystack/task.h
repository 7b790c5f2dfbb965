/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/task.h - what the kernel says of a thread: processor time, running or waiting for what.
 *
 * Layer:   pystack. Threads: one at a time uses a task.
 */
#ifndef SND_PYSTACK_TASK_H
#define SND_PYSTACK_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ownfd.h"

struct snd_task {
    pid_t    pid;
    uint32_t tid;
    bool     own;        /* a thread of this process: its clock can be read */
    int      sched_fd;   /* of another process; -1: not open */
    bool     unopenable; /* `waiting` may not be read: then "stat" is */

    struct snd_ownfd waiting; /* "syscall" in /proc */
};

void snd_task_open(struct snd_task *task, pid_t pid, uint32_t tid);
void snd_task_close(struct snd_task *task);

/* Processor time in ns; false when the thread has ended. */
bool snd_task_cpu_ns(struct snd_task *task, uint64_t *ns);

/*
 * Is it running or ready to? If not, *futex is the address that it waits at, 0 if it waits for
 * something else than a futex, or the kernel does not tell.
 */
bool snd_task_is_running(struct snd_task *task, uint64_t *futex);

/* Does it block the signal `number`, 1 to 31? False if the kernel does not tell. */
bool snd_task_blocks(const struct snd_task *task, int number);

/* The kernel's name of the thread, at most 16 bytes; "" if it has ended. */
void snd_task_name(const struct snd_task *task, char name[17]);

/*
 * The number that we have for the thread which calls itself `tid`: another one where the process
 * is in a PID namespace of its own, as in a container. 0: there is no such thread.
 */
uint32_t snd_task_number(pid_t pid, uint32_t tid);

/*
 * The same of the thread that pthread_t `ident` is, for Pythons that do not keep its number.
 * *offset: where in glibc's own record it lies; 0 at first, found and kept. 0: unknown.
 */
uint32_t snd_task_tid(pid_t pid, uint64_t ident, uint32_t *offset);

#endif
