/* SPDX-License-Identifier: Apache-2.0 */
#include "base/data/large_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)1 << 21)

static size_t round_up(size_t size)
{
    return (size + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
}

void *snd_pages_take(size_t size)
{
    if (size < LARGE_PAGE)
        return calloc(1, size > 0 ? size : 1);
    if (size > SIZE_MAX / 2)
        return NULL;
    /*
     * Maps one large page more than needed, then unmaps what is before and after the aligned part.
     */
    size_t whole = round_up(size), mapped = whole + LARGE_PAGE;
    char  *at = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)at & (LARGE_PAGE - 1));
    if (before > 0)
        munmap(at, before);
    munmap(at + before + whole, LARGE_PAGE - before);
    int rc = madvise(at + before, whole, MADV_HUGEPAGE);
    (void)rc; /* then it takes the small ones */
    return at + before;
}

void snd_pages_free(void *memory, size_t size)
{
    if (!memory)
        return;
    if (size < LARGE_PAGE)
        free(memory);
    else
        munmap(memory, round_up(size));
}
