/* SPDX-License-Identifier: Apache-2.0 */
#include "record/own_pages.h"

#include <sys/mman.h>

void *snd_ownpages_new(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

void *snd_ownpages_grow(void *pages, size_t old_size, size_t new_size)
{
    if (!pages)
        return snd_ownpages_new(new_size);
    void *moved = mremap(pages, old_size, new_size, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? NULL : moved;
}

void snd_ownpages_free(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}
