/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

/*
 * An address of another process is only passed to the kernel, which checks it; never dereferenced.
 */
static struct iovec vector(uint64_t address, size_t size)
{
    return (struct iovec){ (void *)(uintptr_t)address, size };
}

bool snd_memory_read(pid_t pid, uint64_t address, void *out, size_t size)
{
    struct iovec local = { out, size }, remote = vector(address, size);
    ssize_t      n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

    if (n >= 0 && (size_t)n != size)
        errno = EFAULT;
    return n >= 0 && (size_t)n == size;
}

/* Is it where the other ends, in the same page? Then one of them is there if the other is. */
static bool follows(const struct snd_piece *a, const struct snd_piece *b)
{
    return b->size > 0 && a->address + a->size == b->address &&
           a->address / SND_PAGE == (b->address + b->size - 1) / SND_PAGE;
}

size_t snd_memory_read_many(pid_t pid, const struct snd_piece *pieces, size_t count)
{
    struct iovec local[SND_PIECES_MAX], remote[SND_PIECES_MAX];
    size_t       whole = 0, joined = 0;

    if (count == 0)
        return 0;
    if (count > SND_PIECES_MAX)
        count = SND_PIECES_MAX;
    for (size_t i = 0; i < count; i++) {
        local[i] = (struct iovec){ pieces[i].out, pieces[i].size };
        if (i > 0 && follows(&pieces[i - 1], &pieces[i])) /* the kernel looks for a page once */
            remote[joined - 1].iov_len += pieces[i].size;
        else
            remote[joined++] = vector(pieces[i].address, pieces[i].size);
    }
    ssize_t n = process_vm_readv(pid, local, count, remote, joined, 0);
    for (; whole < count && n >= (ssize_t)pieces[whole].size; whole++)
        n -= (ssize_t)pieces[whole].size;
    return whole;
}

/*
 * Python's frame stack grows upwards, so callers are at lower addresses: read from the start of the
 * page to the end of the requested range.
 */
const char *snd_window_at(struct snd_window *window, pid_t pid, uint64_t address, size_t size)
{
    if (address >= window->from && address + size <= window->to && address + size > address)
        return window->bytes + (address - window->from);
    uint64_t from = address & ~(SND_PAGE - 1), to = address + size;
    if (to - from > sizeof window->bytes)
        from = address;
    window->from = window->to = 0;
    if (size > sizeof window->bytes || to < address ||
        !snd_memory_read(pid, from, window->bytes, (size_t)(to - from)))
        return NULL;
    window->from = from;
    window->to = to;
    return window->bytes + (address - from);
}

/* The page, read now if it is not there; NULL if it cannot be. */
static const char *page_at(struct snd_pages *pages, pid_t pid, uint64_t at)
{
    uint32_t i = 0;

    while (i < pages->count && pages->at[i] != at)
        i++;
    if (i == pages->count) {
        i = pages->count < SND_PAGES_MAX ? pages->count : pages->next++ % SND_PAGES_MAX;
        pages->at[i] = UINT64_MAX;
        pages->late = true;
        if (!snd_memory_read(pid, at, pages->bytes[i], SND_PAGE))
            return NULL;
        pages->at[i] = at;
        pages->count += i == pages->count;
    }
    pages->used |= (uint32_t)1 << i;
    return pages->bytes[i];
}

const char *snd_pages_at(struct snd_pages *pages, pid_t pid, uint64_t address, size_t size)
{
    uint64_t    at = address & ~(SND_PAGE - 1), inside = address - at;
    const char *page = page_at(pages, pid, at);

    if (!page || size > SND_JOINT_MAX)
        return NULL;
    if (inside + size <= SND_PAGE)
        return page + inside;
    size_t first = (size_t)(SND_PAGE - inside);
    memcpy(pages->joint, page + inside, first);
    page = page_at(pages, pid, at + SND_PAGE);
    if (page)
        memcpy(pages->joint + first, page, size - first);
    return page ? pages->joint : NULL;
}
