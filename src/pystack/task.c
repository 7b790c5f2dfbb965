/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pystack/memory.h"

#define CONTROL_BLOCK 1536 /* bytes of a thread's record in the C library that are searched */

void snd_task_open(struct snd_task *task, pid_t pid, uint32_t tid)
{
    *task = (struct snd_task){ pid, tid, pid == getpid(), -1, -1, false };
}

void snd_task_close(struct snd_task *task)
{
    if (task->sched_fd >= 0)
        close(task->sched_fd);
    if (task->waiting_fd >= 0)
        close(task->waiting_fd);
    task->sched_fd = task->waiting_fd = -1;
}

static int open_entry(const struct snd_task *task, const char *entry)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/task/%u/%s", (int)task->pid, task->tid, entry);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The text of an open entry; false when the thread has ended. */
static bool read_entry(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* The kernel's clock of one thread: CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED. */
static clockid_t clock_of(uint32_t tid)
{
    return (clockid_t)(~tid << 3 | 6u);
}

bool snd_task_cpu_ns(struct snd_task *task, uint64_t *ns)
{
    struct timespec at;
    char            text[64];

    if (task->own) {
        if (clock_gettime(clock_of(task->tid), &at) != 0)
            return false;
        *ns = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
        return true;
    }
    if (task->sched_fd < 0)
        task->sched_fd = open_entry(task, "schedstat");
    if (task->sched_fd < 0 || !read_entry(task->sched_fd, text, sizeof text))
        return false;
    *ns = strtoull(text, NULL, 10);
    return true;
}

/* "NUMBER ADDRESS ..": the system call that it waits in, or "running". */
static bool parse_waiting(const char *text, uint64_t *futex)
{
    char *end;

    if (strncmp(text, "running", 7) == 0)
        return true;
    long number = strtol(text, &end, 10);
    if (number == SYS_futex)
        *futex = strtoull(end, NULL, 16);
    return false;
}

/* The letter after the name in parentheses, which may hold anything itself. */
static bool is_running_by_stat(const struct snd_task *task)
{
    char text[512];
    int  fd = open_entry(task, "stat");

    if (fd < 0)
        return false;
    bool        read = read_entry(fd, text, sizeof text);
    const char *letter = read ? strrchr(text, ')') : NULL;
    close(fd);
    return letter && letter[1] == ' ' && letter[2] == 'R';
}

bool snd_task_is_running(struct snd_task *task, uint64_t *futex)
{
    char text[256];

    *futex = 0;
    if (task->waiting_fd < 0 && !task->unopenable) {
        task->waiting_fd = open_entry(task, "syscall");
        task->unopenable = task->waiting_fd < 0 && errno != EMFILE && errno != ENFILE;
    }
    if (task->waiting_fd >= 0 && read_entry(task->waiting_fd, text, sizeof text))
        return parse_waiting(text, futex);
    return is_running_by_stat(task);
}

void snd_task_name(const struct snd_task *task, char name[17])
{
    int fd = open_entry(task, "comm");

    name[0] = '\0';
    if (fd < 0)
        return;
    if (read_entry(fd, name, 17))
        name[strcspn(name, "\n")] = '\0';
    close(fd);
}

/* -------------------------------------------------------- before Python 3.11 */

static bool is_thread(pid_t pid, uint32_t tid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/task/%u", (int)pid, tid);
    return tid != 0 && tid < 1u << 22 && access(path, F_OK) == 0;
}

#if defined(__aarch64__)
#define TID_IN_GLIBC 208
#else
#define TID_IN_GLIBC 720
#endif

uint32_t snd_task_tid(pid_t pid, uint64_t ident, uint32_t *offset)
{
    char     block[CONTROL_BLOCK];
    uint32_t tid = 0;

    if (snd_memory_read(pid, ident + (*offset ? *offset : TID_IN_GLIBC), &tid, sizeof tid) &&
        is_thread(pid, tid)) {
        *offset = *offset ? *offset : TID_IN_GLIBC;
        return tid;
    }
    if (*offset != 0 || !snd_memory_read(pid, ident, block, sizeof block))
        return 0;
    /* Another C library. Small numbers are counts and flags, and no sign of a thread. */
    for (uint32_t at = 16; at + 4 <= sizeof block; at += 4) {
        tid = snd_u32(block + at);
        if (tid > 300 && is_thread(pid, tid)) {
            *offset = at;
            return tid;
        }
    }
    return 0;
}
