/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/own_fd.h - a descriptor inside somebody else's program, which may close any number.
 *
 * Daemons close all that they did not open, and their next file has our number. So a descriptor
 * that is kept is asked whether it is still the same file before it is used or closed. It also
 * gets a high number, where few programs look, and the program's own files have the numbers that
 * they would have without us.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_FILES_OWN_FD_H
#define SND_BASE_FILES_OWN_FD_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#define SND_OWNFD_LEAST 600 /* most programs may have 1,024 */

struct snd_ownfd {
    int   fd; /* -1: none */
    dev_t device;
    ino_t inode;
};
#define SND_OWNFD_NONE \
    {                  \
        -1, 0, 0       \
    }

static inline bool snd_ownfd_is(const struct snd_ownfd *own, int fd)
{
    struct stat at;

    return fd >= 0 && fstat(fd, &at) == 0 && at.st_dev == own->device && at.st_ino == own->inode;
}

/* Takes over what open() returned; .fd is -1, errno set, if that was none. */
static inline struct snd_ownfd snd_ownfd_take(int fd)
{
    struct snd_ownfd own = SND_OWNFD_NONE;
    struct stat      at;

    if (fd < 0)
        return own;
    if (fstat(fd, &at) != 0) {
        close(fd);
        return own;
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SND_OWNFD_LEAST);
    if (high >= 0)
        close(fd);
    own = (struct snd_ownfd){ high >= 0 ? high : fd, at.st_dev, at.st_ino };
    return own;
}

static inline void snd_ownfd_close(struct snd_ownfd *own)
{
    if (snd_ownfd_is(own, own->fd))
        close(own->fd);
    own->fd = -1;
}

#endif
