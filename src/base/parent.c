/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parent.h"

#include <stdio.h>
#include <string.h>

pid_t snd_parent_of(pid_t pid)
{
    char path[64], text[512], state = 'Z';
    int  parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* the name before it may hold anything */
    if (!end || sscanf(end + 1, " %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X')
        return 0;
    return parent;
}
