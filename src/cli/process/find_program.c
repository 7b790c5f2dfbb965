/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/find_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool put_path(char path[PATH_MAX], const char *folder, size_t length, const char *name)
{
    int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name);

    return n > 0 && n < PATH_MAX;
}

bool snd_find_on_path(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH");
    char        own[PATH_MAX];

    while (at && *at) {
        size_t length = strcspn(at, ":");
        bool   fits = length ? put_path(own, at, length, name) : put_path(own, ".", 1, name);
        if (fits && access(own, X_OK) == 0) {
            if (path)
                memcpy(path, own, strlen(own) + 1);
            return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

bool snd_find_program(const char *name, char path[PATH_MAX])
{
    if (!strchr(name, '/'))
        return snd_find_on_path(name, path);
    int n = snprintf(path, PATH_MAX, "%s", name);
    return n > 0 && n < PATH_MAX;
}

void snd_program_file(const char *name, char path[PATH_MAX])
{
    char found[PATH_MAX];

    if (!snd_find_program(name, found) || !realpath(found, path))
        path[0] = '\0';
}
