/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/readable.h - leaves a test out where no process can be read, as under qemu-user, which
 * has no process_vm_readv.
 */
#ifndef SND_TESTS_READABLE_H
#define SND_TESTS_READABLE_H

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

static inline void skip_unless_readable(void)
{
    int          from = 1, to = 0;
    struct iovec local = { &to, sizeof to }, remote = { &from, sizeof from };

    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 && errno == ENOSYS)
        skip();
}

#endif
