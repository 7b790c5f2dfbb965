/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc.h"

#include <stdio.h>
#include <string.h>

size_t snd_proc_read(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];

    text[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = '\0';
    return n;
}

void snd_proc_line(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");

    text[0] = '\0';
    if (!file)
        return;
    if (fgets(text, (int)size, file))
        text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

static char read_stat(pid_t pid, int *parent)
{
    char text[512], state = 'X';

    *parent = 0;
    snd_proc_read(pid, "stat", text, sizeof text);
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
