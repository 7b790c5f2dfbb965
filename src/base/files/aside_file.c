/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/aside_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/fd_io.h"

int snd_aside_open(const char *target, mode_t mode, char **aside)
{
    const char *slash = strrchr(target, '/');
    int         folder = slash ? (int)(slash - target) + 1 : 0;
    int         fd = -1;

    for (unsigned try = 0; try < 1000; try++) {
        if (asprintf(aside, "%.*s.%s.%ld-%u", folder, target, target + folder, (long)getpid(),
                     try) < 0) {
            *aside = NULL;
            errno = ENOMEM;
            return -1;
        }
        fd = open(*aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
        if (fd >= 0)
            return fd;
        int why = errno;
        free(*aside);
        *aside = NULL;
        errno = why;
        if (why != EEXIST)
            break;
    }
    return -1;
}

bool snd_aside_end(int fd, const char *aside, const char *target, bool good, bool durable)
{
    int why = errno;

    if (good && durable && fsync(fd) != 0) {
        good = false;
        why = errno;
    }
    if (close(fd) != 0 && good) {
        good = false;
        why = errno;
    }
    if (good && rename(aside, target) == 0) {
        if (durable)
            snd_sync_folder(target);
        return true;
    }
    why = good ? errno : why;
    unlink(aside);
    errno = why;
    return false;
}
