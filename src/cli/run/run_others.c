/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_others.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/fd_io.h"

#define ENDING ".sonde"
#define NUMBERS_MOST 1000
#define SHARED "/tmp"
#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* May every user enter all parent folders of this one? */
static bool is_reachable(const char *full)
{
    char        path[PATH_MAX];
    struct stat at;

    for (const char *end = full; (end = strchr(end, '/')) != NULL && end[1] != '\0'; end++) {
        int length = snprintf(path, sizeof path, "%.*s/", (int)(end - full), full);
        if (length < 0 || (size_t)length >= sizeof path || stat(path, &at) != 0 ||
            !(at.st_mode & S_IXOTH))
            return false;
    }
    return true;
}

/* A folder in which no other user can rename or remove our files; -1: there is none. */
static int open_shared(void)
{
    int         fd = open(SHARED, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat at;

    if (fd >= 0 && (fstat(fd, &at) != 0 || at.st_uid != 0 || !(at.st_mode & S_ISVTX) ||
                    !(at.st_mode & S_IXOTH))) {
        close(fd);
        return -1;
    }
    return fd;
}

void snd_run_others_make(struct snd_run_folder *f)
{
    uint64_t random[2];
    bool     inside = is_reachable(f->full.bytes);

    if (geteuid() != 0 || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return;
    f->others_parent = inside ? f->fd : open_shared();
    if (f->others_parent < 0)
        return;
    snprintf(f->others_name, sizeof f->others_name, ".others-%016" PRIx64 "%016" PRIx64, random[0],
             random[1]);
    snd_buf_format(&f->others, "%s%s/", inside ? f->full.bytes : SHARED "/", f->others_name);
    f->others_fd = mkdirat(f->others_parent, f->others_name, 0700) == 0
                       ? openat(f->others_parent, f->others_name, OPEN_FOLDER)
                       : -1;
    /* To be entered by name, listed by nobody; in the inner one each removes what is his alone. */
    if (f->others_fd < 0 || f->others.failed || fchmod(f->others_fd, 01733) != 0 ||
        (inside && fchmod(f->fd, 0711) != 0))
        snd_run_others_collect(f);
}

static bool is_trace(int dir, const char *name)
{
    size_t      length = strlen(name), tail = sizeof ENDING - 1;
    struct stat at;

    return length > tail && name[0] != '.' && strcmp(name + length - tail, ENDING) == 0 &&
           fstatat(dir, name, &at, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(at.st_mode) &&
           at.st_nlink == 1;
}

/* To a folder of another file system. */
static void copy(int dir, const char *name, int folder, const char *to)
{
    static char buffer[1 << 18];
    int         from = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int         out = openat(folder, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t     got = 0;

    while (from >= 0 && out >= 0 && (got = read(from, buffer, sizeof buffer)) > 0)
        if (!snd_write_all(out, buffer, (size_t)got))
            break;
    if (from >= 0)
        close(from);
    if (out >= 0)
        close(out);
}

/* The process may have a file there already, of the program that it was before. */
static void move_up(int dir, int folder, const char *name)
{
    char to[NAME_MAX + 16];
    int  base = (int)(strlen(name) - (sizeof ENDING - 1));

    snprintf(to, sizeof to, "%s", name);
    for (int number = 2; number < NUMBERS_MOST; number++) {
        if (faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
            if (renameat(dir, name, folder, to) != 0 && errno == EXDEV)
                copy(dir, name, folder, to);
            return;
        }
        snprintf(to, sizeof to, "%.*s-%d" ENDING, base, name, number);
    }
}

void snd_run_others_collect(struct snd_run_folder *f)
{
    if (f->others_name[0] == '\0')
        return;
    int  fd = f->others_fd;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir) {
        fchmod(fd, 0700);
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            if (is_trace(fd, entry->d_name))
                move_up(fd, f->fd, entry->d_name);
            unlinkat(fd, entry->d_name, 0); /* not a trace; . and .. are refused */
        }
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
    unlinkat(f->others_parent, f->others_name, AT_REMOVEDIR);
    if (f->others_parent != f->fd)
        close(f->others_parent);
    else
        fchmod(f->fd, 0700);
    f->others_name[0] = '\0';
}
