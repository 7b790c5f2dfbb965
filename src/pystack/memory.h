/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/memory.h - the memory of a process, its own or another, read without faulting.
 *
 * Layer:   pystack. Threads: any; nothing here is kept. Also from a signal handler.
 */
#ifndef SND_PYSTACK_MEMORY_H
#define SND_PYSTACK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* False, with errno set, unless all of it was read. EFAULT: not there; ESRCH: no such process. */
bool snd_memory_read(pid_t pid, uint64_t address, void *out, size_t size);

struct snd_piece {
    uint64_t address;
    void    *out;
    size_t   size;
};
#define SND_PIECES_MAX 256

/* Many pieces in one call, where pieces at the end may be missing; returns how many are whole. */
size_t snd_memory_read_many(pid_t pid, const struct snd_piece *pieces, size_t count);

/* A page of memory, kept while one stack is read: frames lie close together. */
struct snd_window {
    uint64_t from, to;
    char     bytes[4096];
};

/* `size` bytes at `address`, valid until the next call; NULL if they cannot be read. */
const char *snd_window_at(struct snd_window *window, pid_t pid, uint64_t address, size_t size);

#define SND_PAGE ((uint64_t)4096)
#define SND_PAGES_MAX 16
#define SND_JOINT_MAX 128

/*
 * Pages of memory, kept while one stack is read. Those that are expected may be read beforehand,
 * into bytes[0] and on, in one call with other pieces.
 */
struct snd_pages {
    uint64_t at[SND_PAGES_MAX]; /* where they begin */
    uint32_t count, next;       /* next: which is replaced, where there are too many */
    uint32_t used;              /* a bit for each that was looked into */
    bool     late;              /* some were not read beforehand */
    char     joint[SND_JOINT_MAX];
    char     bytes[SND_PAGES_MAX][4096];
};

/* `size` bytes at `address`, at most SND_JOINT_MAX; valid until the next call. NULL: unreadable. */
const char *snd_pages_at(struct snd_pages *pages, pid_t pid, uint64_t address, size_t size);

static inline uint64_t snd_u64(const char *bytes)
{
    uint64_t value;

    __builtin_memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint32_t snd_u32(const char *bytes)
{
    uint32_t value;

    __builtin_memcpy(&value, bytes, sizeof value);
    return value;
}

#endif
