/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/full_disk.h - a sink's function that takes so many bytes, then the disk is full. `user`: the room, a size_t. */
#ifndef SND_TESTS_FULL_DISK_H
#define SND_TESTS_FULL_DISK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static inline bool full_disk_write(void *user, const void *data, size_t length)
{
    size_t *room = user;

    (void)data;
    if (length > *room) {
        errno = ENOSPC;
        return false;
    }
    *room -= length;
    return true;
}

#endif
