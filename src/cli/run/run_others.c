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

#define ENDING ".sonde"
#define NUMBERS_MOST 1000

void snd_run_others_make(struct snd_run_folder *f)
{
    uint64_t random[2];

    if (geteuid() != 0 || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return;
    snprintf(f->others_name, sizeof f->others_name, ".others-%016" PRIx64 "%016" PRIx64, random[0],
             random[1]);
    if (mkdirat(f->fd, f->others_name, 0700) != 0) {
        f->others_name[0] = '\0';
        return;
    }
    snd_buf_format(&f->others, "%s%s/", f->full.bytes, f->others_name);
    /* To be entered by name, listed by nobody; in the inner one each removes what is his alone. */
    if (f->others.failed || fchmodat(f->fd, f->others_name, 01733, 0) != 0 ||
        fchmod(f->fd, 0711) != 0)
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

/* The process may have a file there already, of the program that it was before. */
static void move_up(int dir, int folder, const char *name)
{
    char to[NAME_MAX + 16];
    int  base = (int)(strlen(name) - (sizeof ENDING - 1));

    snprintf(to, sizeof to, "%s", name);
    for (int number = 2; number < NUMBERS_MOST; number++) {
        if (faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
            renameat(dir, name, folder, to);
            return;
        }
        snprintf(to, sizeof to, "%.*s-%d" ENDING, base, name, number);
    }
}

void snd_run_others_collect(struct snd_run_folder *f)
{
    if (f->others_name[0] == '\0')
        return;
    int  fd = openat(f->fd, f->others_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir) {
        fchmod(fd, 0700);
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            if (is_trace(fd, entry->d_name))
                move_up(fd, f->fd, entry->d_name);
            unlinkat(fd, entry->d_name, 0); /* what is none; . and .. are refused */
        }
        closedir(dir);
    } else if (fd >= 0) {
        close(fd);
    }
    unlinkat(f->fd, f->others_name, AT_REMOVEDIR);
    fchmod(f->fd, 0700);
    f->others_name[0] = '\0';
}
