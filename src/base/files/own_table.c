/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/own_table.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older headers lack them; the numbers are the same on every processor. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#define UNSHARE_FIRST 2u /* CLOSE_RANGE_UNSHARE */

/* Before Linux 5.9. The copies must go: the other end of a pipe waits until the last is closed. */
static bool enter_by_copy(void)
{
    if (unshare(CLONE_FILES) != 0)
        return false;
    DIR *numbers = opendir("/proc/thread-self/fd");
    for (struct dirent *entry; numbers && (entry = readdir(numbers)) != NULL;) {
        int fd = entry->d_name[0] == '.' ? -1 : atoi(entry->d_name);
        if (fd >= 0 && fd != dirfd(numbers))
            close(fd);
    }
    if (numbers)
        closedir(numbers);
    return true;
}

bool snd_owntable_enter(void)
{
    return syscall(SYS_close_range, 0u, ~0u, UNSHARE_FIRST) == 0 || enter_by_copy();
}

int snd_owntable_borrow(int fd)
{
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0u);

    if (process < 0)
        return -1;
    int copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0u);
    close(process);
    return copy;
}
