/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/proc_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * As much of it as there is room for, with a zero after it; returns how much. The kernel gives all
 * that there is in one call.
 */
static size_t read_file(const char *path, char *text, size_t size)
{
    int     fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

size_t snd_proc_read(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return read_file(path, text, size);
}

void snd_proc_line(const char *path, char *text, size_t size)
{
    read_file(path, text, size);
    text[strcspn(text, "\n")] = '\0';
}

/* Its first thread's: for the file of the process the kernel adds up the times of all threads. */
static char read_stat(pid_t pid, int *parent)
{
    char name[32], text[512], state = 'X';

    *parent = 0;
    snprintf(name, sizeof name, "task/%d/stat", (int)pid);
    snd_proc_read(pid, name, text, sizeof text);
    const char *end = strrchr(text, ')'); /* the name before it may contain anything */
    if (!end || sscanf(end + 1, " %c %d", &state, parent) != 2)
        return 'X';
    return state;
}

char snd_proc_state(pid_t pid)
{
    int parent;

    return read_stat(pid, &parent);
}

pid_t snd_proc_parent(pid_t pid)
{
    int  parent;
    char state = read_stat(pid, &parent);

    return state == 'Z' || state == 'X' ? 0 : parent;
}

/* A thread that has ended meanwhile has no name, and does not count. */
static bool is_thread_besides(const char *number, const char *prefix)
{
    char path[64], name[32];

    snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", number);
    return read_file(path, name, sizeof name) > 0 && strncmp(name, prefix, strlen(prefix)) != 0;
}

size_t snd_proc_threads_besides(const char *prefix)
{
    DIR   *tasks = opendir("/proc/self/task");
    size_t count = 0;

    for (struct dirent *entry; tasks && (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.' && is_thread_besides(entry->d_name, prefix);
    if (tasks)
        closedir(tasks);
    return count;
}
