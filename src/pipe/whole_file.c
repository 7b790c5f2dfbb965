/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/aside_file.h"
#include "base/files/fd_io.h"

#define LINKS_MAX 40 /* one to another, as the kernel has it */

/* `old`: of the file that is replaced, or NULL. */
static enum sonde_status replace(const char *path, const char *target, const struct stat *old,
                                 const char *bytes, size_t length, struct sonde_error *err)
{
    char *aside;
    int   fd = snd_aside_open(target, 0666, &aside);

    if (fd < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot create a temporary file beside %s", path);
    bool good = snd_write_all(fd, bytes, length) && (!old || fchmod(fd, old->st_mode & 07777) == 0);
    good = snd_aside_end(fd, aside, target, good, true);
    free(aside);
    return good ? SONDE_OK
                : snd_fail_os(err, SONDE_E_IO, "cannot write %s%s", path,
                              old ? ", which is unchanged" : "");
}

static enum sonde_status write_through(const char *path, const char *bytes, size_t length,
                                       struct sonde_error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot open %s", path);
    bool good = snd_write_all(fd, bytes, length);
    int  why = errno;
    if (close(fd) != 0 && good) {
        good = false;
        why = errno;
    }
    errno = why;
    return good ? SONDE_OK : snd_fail_os(err, SONDE_E_IO, "cannot write %s", path);
}

/* The target of the link `path`, relative to the folder it is in. To be freed; NULL with errno. */
static char *read_link(const char *path)
{
    const char *slash = strrchr(path, '/');
    char        leads[PATH_MAX], *joined;
    ssize_t     length = readlink(path, leads, sizeof leads);

    if (length == (ssize_t)sizeof leads)
        errno = ENAMETOOLONG;
    if (length < 0 || length == (ssize_t)sizeof leads)
        return NULL;
    int folder = slash && leads[0] != '/' ? (int)(slash - path) + 1 : 0;
    if (asprintf(&joined, "%.*s%.*s", folder, path, (int)length, leads) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    return joined;
}

/* Where links lead that end at no file: the name that a new one gets. The caller's. */
static char *find_new(const char *path)
{
    char       *target = strdup(path);
    struct stat st;

    for (int links = 0; target && lstat(target, &st) == 0 && S_ISLNK(st.st_mode); links++) {
        char *next = links < LINKS_MAX ? read_link(target) : NULL;
        if (links == LINKS_MAX)
            errno = ELOOP;
        int why = errno;
        free(target);
        errno = why;
        target = next;
    }
    return target;
}

/* Where a link leads: the link itself stays. `old` is of the file there, if it has one. */
static enum sonde_status find_target(const char *path, struct stat *old, bool *exists,
                                     char **target, struct sonde_error *err)
{
    *exists = stat(path, old) == 0;
    *target = *exists && S_ISREG(old->st_mode) ? realpath(path, NULL)
              : *exists                        ? strdup(path)
                                               : find_new(path);
    return *target ? SONDE_OK
                   : snd_fail_os(err, SONDE_E_IO, "cannot resolve the symbolic link %s", path);
}

enum sonde_status snd_whole_file_write(const char *path, const char *bytes, size_t length,
                                       struct sonde_error *err)
{
    struct stat       old;
    bool              exists;
    char             *target;
    enum sonde_status status = find_target(path, &old, &exists, &target, err);

    if (status != SONDE_OK)
        return status;
    if (exists && !S_ISREG(old.st_mode))
        status = write_through(path, bytes, length, err);
    else
        status = replace(path, target, exists ? &old : NULL, bytes, length, err);
    free(target);
    return status;
}

enum sonde_status snd_whole_file_check(const char *path, struct sonde_error *err)
{
    struct stat       old;
    bool              exists;
    char             *target;
    enum sonde_status status = find_target(path, &old, &exists, &target, err);

    if (status != SONDE_OK)
        return status;
    if (exists && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        status = snd_fail_os(err, SONDE_E_IO, "cannot write %s", path);
    } else if (exists && !S_ISREG(old.st_mode)) {
        if (access(path, W_OK) != 0)
            status = snd_fail_os(err, SONDE_E_IO, "cannot write %s", path);
    } else {
        char *slash = strrchr(target, '/');
        if (slash)
            slash[1] = '\0';
        if (access(slash ? target : ".", W_OK | X_OK) != 0)
            status = snd_fail_os(err, SONDE_E_IO, "cannot create a temporary file beside %s", path);
    }
    free(target);
    return status;
}
