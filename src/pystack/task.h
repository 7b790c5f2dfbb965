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

#include "base/files/own_fd.h"

struct snd_task {
    pid_t    pid;
    uint32_t tid;
    bool     own;        /* a thread of this process: its clock can be read */
    int      sched_fd;   /* of another process; -1: not open */
    bool     own_table;  /* no other thread can close what is opened here */
    bool     unopenable; /* `waiting` may not be read: then "stat" is */

    struct snd_ownfd waiting; /* "syscall" in /proc */
    struct snd_ownfd stat;    /* likewise, kept open in a table of our own */
};

void snd_task_open(struct snd_task *task, pid_t pid, uint32_t tid);
void snd_task_close(struct snd_task *task);

/* Processor time in ns; false when the thread has ended. */
bool snd_task_cpu_ns(struct snd_task *task, uint64_t *ns);

/* How long it has been ready to run and did not, in ns; false when the thread has ended, or the kernel does not say. */
bool snd_task_delay_ns(struct snd_task *task, uint64_t *ns);

/*
 * Is it running or runnable? If not, *futex is the address of the futex that it waits on; 0 if it
 * waits for something else, or the kernel does not show it.
 */
bool snd_task_is_running(struct snd_task *task, uint64_t *futex);

/* Is it stopped, by a signal or a debugger? */
bool snd_task_is_stopped(const struct snd_task *task);

/* Does it block the signal `number`, 1 to 31? False if the kernel does not show it. */
bool snd_task_blocks(struct snd_task *task, int number);

/* The kernel's name of the thread, at most 16 bytes; "" if it has ended. */
void snd_task_name(const struct snd_task *task, char name[17]);

/*
 * The thread id in our PID namespace of the thread whose own id is `tid`; they differ if the
 * process is in a PID namespace of its own, as in a container. 0: no such thread.
 */
uint32_t snd_task_number(pid_t pid, uint32_t tid);

/*
 * The same for a thread known by its pthread_t `ident`, for Python versions that do not store the
 * id. *offset caches where glibc's thread record has the id; 0 at first. Returns 0 if unknown.
 */
uint32_t snd_task_tid(pid_t pid, uint64_t ident, uint32_t *offset);

#endif
