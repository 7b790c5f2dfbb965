/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/process_memory.h - the memory of a process, its own or another, read without faulting.
 *
 * Layer:   pystack. Threads: any; nothing here is kept but the process's own id. Also from a signal handler.
 */
#ifndef SND_PYSTACK_PROCESS_MEMORY_H
#define SND_PYSTACK_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Instead of a process's id: this process's memory, read in place. Only for what is known to be there, and
 * not to change meanwhile: a thread's own frames.
 */
#define SND_MEMORY_OWN ((pid_t)-1)

/* False, with errno set, unless all of it was read. EFAULT: not there; ESRCH: no such process. */
bool snd_memory_read(pid_t pid, uint64_t address, void *out, size_t size);

/* Likewise; not into this process. */
bool snd_memory_write(pid_t pid, uint64_t address, const void *bytes, size_t size);

static inline bool snd_memory_word(pid_t pid, uint64_t address, uint64_t *out)
{
    return snd_memory_read(pid, address, out, sizeof *out);
}

struct snd_piece {
    uint64_t address;
    void    *out;
    size_t   size;
};
#define SND_PIECES_MAX 256

/*
 * This process reads its own memory by its id from now on, which is cheaper if that is known. A forked child says so
 * again before it reads.
 */
void snd_memory_know_own(void);

/* Many pieces in one call, where pieces at the end may be missing; returns how many are whole. */
size_t snd_memory_read_many(pid_t pid, const struct snd_piece *pieces, size_t count);

/* A page of memory, kept while one stack is read: frames lie close together. */
struct snd_window {
    uint64_t from, to;
    char     bytes[4096];
};

#define SND_PAGE ((uint64_t)4096)
#define SND_PAGES_MAX 16
#define SND_JOINT_MAX 128

/* A part of a page: its bytes `from` up to `to`. */
struct snd_part {
    uint64_t page; /* where the page begins */
    uint32_t from, to;
};

/* Makes it the least part that has these bytes, too. */
static inline void snd_part_extend(struct snd_part *part, uint32_t from, uint32_t to)
{
    if (part->from == part->to)
        part->from = from;
    part->from = from < part->from ? from : part->from;
    part->to = to > part->to ? to : part->to;
}

/*
 * Parts of pages, kept while one stack is read. Those that are expected may be read beforehand,
 * each to its place in bytes[0] and on, in one call with other pieces: lines of the cache that
 * another processor writes to are slow to get, for both.
 */
struct snd_pages {
    struct snd_part read[SND_PAGES_MAX], used[SND_PAGES_MAX]; /* used: looked at */
    uint32_t        count, next; /* next: which is replaced, where there are too many */
    bool            late;        /* some were not read beforehand */
    char            joint[SND_JOINT_MAX];
    char            bytes[SND_PAGES_MAX][4096];
};

/* Empties them; what is to be read beforehand is added then. */
void snd_pages_clear(struct snd_pages *pages);
/* Room for a part that is read beforehand, at most SND_PAGES_MAX of them. */
struct snd_piece snd_pages_expect(struct snd_pages *pages, struct snd_part part);
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
