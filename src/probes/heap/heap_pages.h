/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/heap_pages.h - memory of our own: mapped, zero, never malloc's. By the system call, since
 * the function mmap is one of those that are counted.
 *
 * Tables that are searched by a hash begin small and double: each page of one costs two faults, a
 * read that finds nothing and the first write, which a program of few samples pays for as well.
 */
#ifndef SND_PROBES_HEAP_HEAP_PAGES_H
#define SND_PROBES_HEAP_HEAP_PAGES_H

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NULL when there is none. Never freed, unless by snd_heap_pages_free(). */
static inline void *snd_heap_pages(size_t size)
{
    int  before = errno;
    long at = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

    errno = before;
    return at == -1 ? NULL : (void *)at; /* NOLINT(performance-no-int-to-ptr) */
}

static inline void snd_heap_pages_free(void *pages, size_t size)
{
    int before = errno;

    syscall(SYS_munmap, pages, size);
    errno = before;
}

#endif
