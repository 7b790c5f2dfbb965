/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"

bool snd_folder_scratch(const char *stem, struct sonde_buffer *path)
{
    const char *const places[] = { getenv("TMPDIR"), "/tmp", "/var/tmp" };
    int               why = ENOENT;

    for (size_t i = 0; i < SND_COUNT_OF(places); i++) {
        if (!places[i] || places[i][0] != '/')
            continue;
        snd_buf_format(path, "%s/%s-XXXXXX", places[i], stem);
        if (!path->failed && mkdtemp(path->bytes))
            return true;
        why = path->failed ? ENOMEM : errno;
        sonde_buffer_release(path);
    }
    errno = why;
    return false;
}

static void remove_at(int parent, const char *name)
{
    int  fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) != 0)
            remove_at(fd, entry->d_name);
    }
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void snd_folder_remove(const char *path)
{
    remove_at(AT_FDCWD, path);
}

int snd_temporary_file(void)
{
    const char *folder = getenv("TMPDIR");
    char        path[PATH_MAX];

    if (!folder || !*folder)
        folder = P_tmpdir;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    if ((size_t)snprintf(path, sizeof path, "%s/sonde.XXXXXX", folder) >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}
