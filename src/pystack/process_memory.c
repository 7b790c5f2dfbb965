/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/process_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define GAP_MOST 1024     /* bytes between two pieces that are read with them; less than a page */
#define GATHER_MOST 16384 /* bytes that are gathered at once: more pay for the other way */

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

    if (pid == SND_MEMORY_OWN) {
        memcpy(out, remote.iov_base, size);
        return true;
    }
    ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

    if (n >= 0 && (size_t)n != size)
        errno = EFAULT;
    return n >= 0 && (size_t)n == size;
}

bool snd_memory_write(pid_t pid, uint64_t address, const void *bytes, size_t size)
{
    struct iovec local = { (void *)(uintptr_t)bytes, size }, remote = vector(address, size);
    ssize_t      n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

    if (n >= 0 && (size_t)n != size)
        errno = EFAULT;
    return n >= 0 && (size_t)n == size;
}

/* Does it begin after the other, in its last page or the next? Then no page between them is missing. */
static bool follows(const struct snd_piece *a, const struct snd_piece *b)
{
    uint64_t end = a->address + a->size;

    return a->size > 0 && b->size > 0 && b->address >= end && b->address - end <= GAP_MOST;
}

static pid_t own; /* 0: not told */

void snd_memory_know_own(void)
{
    own = getpid();
}

/*
 * Pieces of this process's memory, by a call that writes another's: the kernel copies what is written as it does for
 * any call, and looks only for the pages of the place that it is written to, which is one. A fifth of the price, for a
 * stack and its code objects. Pieces are copied one after the other, but only x86 keeps the order of loads. False: not
 * here, not so many bytes, or refused.
 */
static bool gather(pid_t pid, const struct snd_piece *pieces, size_t count, size_t *whole)
{
#if defined(__x86_64__)
    struct iovec from[SND_PIECES_MAX];
    char         bytes[GATHER_MOST];
    size_t       all = 0, at = 0;

    for (size_t i = 0; i < count; i++) {
        from[i] = vector(pieces[i].address, pieces[i].size);
        if (pieces[i].size > sizeof bytes - all)
            return false;
        all += pieces[i].size;
    }
    memset(bytes, 0, all); /* for tools that do not know that the call fills it */
    struct iovec to = { bytes, all };
    ssize_t      n = process_vm_writev(pid, from, count, &to, 1, 0);
    if (n < 0 && errno != EFAULT)
        return false;
    for (*whole = 0; *whole < count && (ssize_t)(at + pieces[*whole].size) <= n; (*whole)++) {
        memcpy(pieces[*whole].out, bytes + at, pieces[*whole].size);
        at += pieces[*whole].size;
    }
    return true;
#else
    (void)pid, (void)pieces, (void)count, (void)whole;
    return false;
#endif
}

/* The kernel looks for the page of each piece anew: what lies between two that are near is read, too, and dropped. */
static size_t read_from(pid_t pid, const struct snd_piece *pieces, size_t count)
{
    struct iovec local[2 * SND_PIECES_MAX], remote[SND_PIECES_MAX];
    size_t       ends[SND_PIECES_MAX];
    size_t       ours = 0, theirs = 0, all = 0, whole = 0;
    char         gap[GAP_MOST];

    if (count == 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const struct snd_piece *piece = &pieces[i];
        if (i > 0 && follows(&pieces[i - 1], piece)) {
            size_t between = (size_t)(piece->address - pieces[i - 1].address) - pieces[i - 1].size;
            if (between > 0)
                local[ours++] = (struct iovec){ gap, between };
            remote[theirs - 1].iov_len += between + piece->size;
            all += between;
        } else {
            remote[theirs++] = vector(piece->address, piece->size);
        }
        local[ours++] = (struct iovec){ piece->out, piece->size };
        ends[i] = all += piece->size;
    }
    ssize_t n = process_vm_readv(pid, local, ours, remote, theirs, 0);
    while (whole < count && n >= (ssize_t)ends[whole])
        whole++;
    return whole;
}

size_t snd_memory_read_many(pid_t pid, const struct snd_piece *pieces, size_t count)
{
    size_t whole;

    if (count > SND_PIECES_MAX)
        count = SND_PIECES_MAX;
    return count > 0 && pid == own && gather(pid, pieces, count, &whole)
               ? whole
               : read_from(pid, pieces, count);
}

void snd_pages_clear(struct snd_pages *pages)
{
    pages->count = pages->next = 0;
    pages->late = false;
}

static void add_page(struct snd_pages *pages, uint32_t at, struct snd_part part)
{
    pages->read[at] = part;
    pages->used[at] = (struct snd_part){ part.page, 0, 0 };
    pages->count += at == pages->count;
}

struct snd_piece snd_pages_expect(struct snd_pages *pages, struct snd_part part)
{
    uint32_t at = pages->count;

    add_page(pages, at, part);
    return (struct snd_piece){ part.page + part.from, pages->bytes[at] + part.from,
                               part.to - part.from };
}

/* These bytes of a page; all of it is read now if they are not there. NULL if it cannot be. */
static const char *part_at(struct snd_pages *pages, pid_t pid, uint64_t page, uint32_t from,
                           uint32_t to)
{
    uint32_t i = 0;

    while (i < pages->count && pages->read[i].page != page)
        i++;
    if (i == pages->count || from < pages->read[i].from || to > pages->read[i].to) {
        struct snd_part used = { page, 0, 0 };
        if (i < pages->count)
            used = pages->used[i];
        else if (i == SND_PAGES_MAX)
            i = pages->next++ % SND_PAGES_MAX;
        pages->late = true;
        pages->read[i].page = UINT64_MAX;
        if (!snd_memory_read(pid, page, pages->bytes[i], SND_PAGE))
            return NULL;
        add_page(pages, i, (struct snd_part){ page, 0, SND_PAGE });
        pages->used[i] = used;
    }
    snd_part_extend(&pages->used[i], from, to);
    return pages->bytes[i] + from;
}

const char *snd_pages_at(struct snd_pages *pages, pid_t pid, uint64_t address, size_t size)
{
    uint64_t page = address & ~(SND_PAGE - 1), from = address - page, to = from + size;

    if (pid == SND_MEMORY_OWN)
        return (const char *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
    if (size > SND_JOINT_MAX)
        return NULL;
    if (to <= SND_PAGE)
        return part_at(pages, pid, page, (uint32_t)from, (uint32_t)to);
    const char *bytes = part_at(pages, pid, page, (uint32_t)from, SND_PAGE);
    if (!bytes)
        return NULL;
    size_t first = (size_t)(SND_PAGE - from);
    memcpy(pages->joint, bytes, first);
    bytes = part_at(pages, pid, page + SND_PAGE, 0, (uint32_t)(size - first));
    if (bytes)
        memcpy(pages->joint + first, bytes, size - first);
    return bytes ? pages->joint : NULL;
}
