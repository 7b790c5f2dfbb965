/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_sizes.c - how large a block is that was taken before anything was counted.
 */
#include <malloc.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probes/python/memory/memory_counts.h"

/* Reads memory without a fault if the page is not mapped. */
static bool peek(uintptr_t address, void *into, size_t size)
{
    struct iovec here = { into, size };
    struct iovec there = { (void *)address, size };

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

size_t snd_size_by_malloc(const void *block)
{
    return malloc_usable_size((void *)(uintptr_t)block);
}

/*
 * What CPython's debug hooks (python -X dev, PYTHONMALLOC=debug) put before a block, in all
 * versions: the size asked for, big end first, the domain's letter, seven times 0xFD.
 */
#define HEADER_BYTES 16u

size_t snd_size_by_header(const void *block)
{
    const uint8_t *header = (const uint8_t *)block - HEADER_BYTES;
    size_t         size = 0;

    for (size_t i = 0; i < 8; i++)
        size = size << 8 | header[i];
    return size;
}

/*
 * Of a small block, by the head of the pool that it would lie in: 16 bytes a class. The caller
 * checks later whether it is a small block.
 */
size_t snd_size_by_pool(const void *block)
{
#ifdef SND_PYFRAMES_MISSING
    (void)block; /* where this version keeps it is not known either */
    return 0;
#else
    uintptr_t pool = (uintptr_t)block & ~(uintptr_t)(SND_PY_AT_pool_size - 1);
    uint32_t  index = 0;

    if (!peek(pool + SND_PY_AT_pool_class, &index, sizeof index) || index >= 32)
        return 0;
    return 16 * ((size_t)index + 1);
#endif
}

bool snd_size_has_header(const void *block, size_t asked, char letter)
{
    uint8_t header[HEADER_BYTES];

    return block && peek((uintptr_t)block - HEADER_BYTES, header, sizeof header) &&
           snd_size_by_header(header + HEADER_BYTES) == asked && header[8] == (uint8_t)letter &&
           memcmp(header + 9, "\xFD\xFD\xFD\xFD\xFD\xFD\xFD", 7) == 0;
}
