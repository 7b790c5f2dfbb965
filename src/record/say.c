/* SPDX-License-Identifier: Apache-2.0 */
#include "record/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct stat at_load; /* st_ino 0: there was none */

void snd_say_init(void)
{
    if (fstat(STDERR_FILENO, &at_load) != 0)
        at_load.st_ino = 0;
}

/*
 * A daemon closes standard error, and the next file that it opens gets that number. What is not the file of
 * before is written to if it is a terminal, a pipe or a log (O_APPEND).
 */
static bool is_ours_to_write(void)
{
    struct stat now;

    if (fstat(STDERR_FILENO, &now) != 0)
        return false;
    if (at_load.st_ino != 0 && now.st_dev == at_load.st_dev && now.st_ino == at_load.st_ino)
        return true;
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    return S_ISCHR(now.st_mode) || S_ISFIFO(now.st_mode) || (flags >= 0 && (flags & O_APPEND));
}

void snd_say(const char *format, ...)
{
    char    line[1024] = "sonde: ";
    size_t  used = 7;
    int     before = errno;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line + used, sizeof line - used - 1, format, args);
    va_end(args);
    if (n > 0) {
        used += (size_t)n < sizeof line - used - 1 ? (size_t)n : sizeof line - used - 2;
        line[used++] = '\n';
        if (is_ours_to_write()) {
            ssize_t wrote = write(STDERR_FILENO, line, used);
            (void)wrote; /* there is no one else to report it to */
        }
    }
    errno = before;
}
