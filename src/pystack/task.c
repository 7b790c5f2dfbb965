/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pystack/process_memory.h"

/* Fields of "stat", counted as proc(5) does. */
#define STAT_STATE 3
#define STAT_BLOCKED 32

#define CONTROL_BLOCK 1536 /* bytes of a thread's record in the C library that are searched */

void snd_task_open(struct snd_task *task, pid_t pid, uint32_t tid)
{
    *task = (struct snd_task){ .pid = pid,
                               .tid = tid,
                               .own = pid == getpid(),
                               .own_table = pid != getpid(),
                               .sched_fd = -1,
                               .waiting = SND_OWNFD_NONE,
                               .stat = SND_OWNFD_NONE };
}

void snd_task_close(struct snd_task *task)
{
    if (task->sched_fd >= 0)
        close(task->sched_fd);
    task->sched_fd = -1;
    snd_ownfd_close(&task->waiting);
    snd_ownfd_close(&task->stat);
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

/* "RAN WAITED SLICES", in ns. */
static bool read_schedule(struct snd_task *task, uint64_t *ran, uint64_t *waited)
{
    char text[64], *end;

    if (task->sched_fd < 0)
        task->sched_fd = open_entry(task, "schedstat");
    if (task->sched_fd < 0 || !read_entry(task->sched_fd, text, sizeof text))
        return false;
    *ran = strtoull(text, &end, 10);
    *waited = strtoull(end, NULL, 10);
    return true;
}

bool snd_task_delay_ns(struct snd_task *task, uint64_t *ns)
{
    uint64_t ran;

    return read_schedule(task, &ran, ns);
}

bool snd_task_cpu_ns(struct snd_task *task, uint64_t *ns)
{
    struct timespec at;
    uint64_t        waited;

    if (task->own) {
        if (clock_gettime(clock_of(task->tid), &at) != 0)
            return false;
        *ns = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
        return true;
    }
    return read_schedule(task, ns, &waited);
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

/* What follows the name in parentheses, which may hold anything itself; NULL: it has ended. */
static const char *read_stat(const struct snd_task *task, char *text, size_t size)
{
    int fd = task->stat.fd >= 0 ? task->stat.fd : open_entry(task, "stat");

    if (fd < 0)
        return NULL;
    bool        read = read_entry(fd, text, size);
    const char *name_end = read ? strrchr(text, ')') : NULL;
    if (fd != task->stat.fd)
        close(fd);
    return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

static bool is_running_by_stat(const struct snd_task *task)
{
    char        text[512];
    const char *letter = read_stat(task, text, sizeof text);

    return letter && *letter == 'R';
}

bool snd_task_is_stopped(const struct snd_task *task)
{
    char        text[512];
    const char *letter = read_stat(task, text, sizeof text);

    return letter && (*letter == 'T' || *letter == 't');
}

/* Half the price of "status", which has more than the first 31 of them; to open it is more than half of the rest. */
bool snd_task_blocks(struct snd_task *task, int number)
{
    char text[1024];

    if (task->own_table && task->stat.fd < 0)
        task->stat = snd_ownfd_take(open_entry(task, "stat"));
    const char *field = read_stat(task, text, sizeof text);

    for (int i = STAT_STATE; field && i < STAT_BLOCKED; i++) {
        field = strchr(field, ' ');
        if (field)
            field++;
    }
    return field && (strtoul(field, NULL, 10) >> (number - 1) & 1u);
}

bool snd_task_is_running(struct snd_task *task, uint64_t *futex)
{
    char text[256];

    *futex = 0;
    bool is_open = task->own_table ? task->waiting.fd >= 0
                                   : snd_ownfd_is(&task->waiting, task->waiting.fd);
    if (!is_open && !task->unopenable) {
        task->waiting = snd_ownfd_take(open_entry(task, "syscall"));
        task->unopenable = task->waiting.fd < 0 && errno != EMFILE && errno != ENFILE;
    }
    if (task->waiting.fd >= 0 && read_entry(task->waiting.fd, text, sizeof text))
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

/* ------------------------------------------------------------------ numbers */

/*
 * "NSpid:\t4711\t12": the last number is the id in the thread's own namespace. 0: no such thread.
 */
static uint32_t find_inner(pid_t pid, uint32_t tid)
{
    const struct snd_task task = { .pid = pid, .tid = tid };
    char                  text[4096];
    int                   fd = open_entry(&task, "status");

    if (fd < 0)
        return 0;
    bool  read = read_entry(fd, text, sizeof text);
    char *line = read ? strstr(text, "\nNSpid:") : NULL;
    close(fd);
    if (!line)
        return read ? tid : 0; /* a kernel without namespaces */
    line[1 + strcspn(line + 1, "\n")] = '\0';
    const char *last = strrchr(line, '\t');
    return last ? (uint32_t)strtoul(last, NULL, 10) : tid;
}

static uint32_t search_inner(pid_t pid, uint32_t tid)
{
    char           path[32];
    uint32_t       found = 0;
    struct dirent *entry;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    while (tasks && found == 0 && (entry = readdir(tasks)) != NULL) {
        uint32_t number = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (number != 0 && find_inner(pid, number) == tid)
            found = number;
    }
    if (tasks)
        closedir(tasks);
    return found;
}

uint32_t snd_task_number(pid_t pid, uint32_t tid)
{
    if (tid == 0 || tid >= 1u << 22) /* more than the kernel gives */
        return 0;
    if (pid == getpid())
        return syscall(SYS_tgkill, pid, tid, 0) == 0 ? tid : 0;
    uint32_t leader = find_inner(pid, (uint32_t)pid);
    if (leader == (uint32_t)pid) /* it is in our PID namespace */
        return find_inner(pid, tid) == tid ? tid : 0;
    /*
     * The ids of threads that were created together differ by the same amount in both namespaces.
     */
    uint32_t guess = tid + ((uint32_t)pid - leader);
    return find_inner(pid, guess) == tid ? guess : search_inner(pid, tid);
}

/* -------------------------------------------------------- before Python 3.11 */

#if defined(__aarch64__)
#define TID_IN_GLIBC 208
#else
#define TID_IN_GLIBC 720
#endif

uint32_t snd_task_tid(pid_t pid, uint64_t ident, uint32_t *offset)
{
    char     block[CONTROL_BLOCK];
    uint32_t tid = 0, number;

    if (snd_memory_read(pid, ident + (*offset ? *offset : TID_IN_GLIBC), &tid, sizeof tid) &&
        (number = snd_task_number(pid, tid)) != 0) {
        *offset = *offset ? *offset : TID_IN_GLIBC;
        return number;
    }
    if (*offset != 0 || !snd_memory_read(pid, ident, block, sizeof block))
        return 0;
    /* Another C library. Small numbers are counts and flags, and no sign of a thread. */
    for (uint32_t at = 16; at + 4 <= sizeof block; at += 4) {
        tid = snd_u32(block + at);
        if (tid > 300 && (number = snd_task_number(pid, tid)) != 0) {
            *offset = at;
            return number;
        }
    }
    return 0;
}
