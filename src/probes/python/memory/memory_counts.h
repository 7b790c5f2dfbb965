/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_counts.h - bytes allocated and freed, counted by thread as the allocators are
 * called.
 *
 * Python's allocators (raw, mem, obj) are hooked with PyMem_SetAllocator: there a block counts with
 * its requested size, as in tracemalloc. Whatever else calls malloc and related functions (a library's C and
 * C++ code, torch's tensors) is diverted through the libraries' tables of addresses: there a block
 * counts as what malloc gave. Where one calls the other, the outer counts. Memory that is mapped
 * directly is not seen.
 *
 * Layer:   probes.
 * Threads: counters are their thread's own; snd_memory_in_use() adds them all up. Start and stop
 *          are called with the interpreter lock held.
 */
#ifndef SND_PROBES_PYTHON_MEMORY_MEMORY_COUNTS_H
#define SND_PROBES_PYTHON_MEMORY_MEMORY_COUNTS_H

#include "probes/python/common.h"
#include "probes/python/memory/memory_blocks.h"

struct snd_memory_thread {
    uint64_t allocated_bytes, freed_bytes;
    int64_t  net_bytes, peak_bytes;
    uint64_t own_bytes;    /* of the number that an event brought, until it is freed */
    size_t   passed_bytes; /* of the block that Python's own allocator handed on to free() */
    uint32_t inside;       /* an allocator runs that counts for itself */
};
extern __thread struct snd_memory_thread snd_memory_mine_
    __attribute__((tls_model("initial-exec")));
extern uint32_t snd_memory_on; /* sessions that count */

/* One session more. */
void snd_memory_start(void);
void snd_memory_stop(void);

/* Libraries that were loaded since are counted too. */
void snd_memory_look_again(void);

/* Of the process: what was resident at the start, plus all that was allocated and not freed since. */
uint64_t snd_memory_in_use(void);

/* Leaves out the memory of reporting an event: `number` was made for it, and is freed after it. */
void snd_memory_leave_out(PyObject *number);

/* memory_threads.c: adds to the calling thread's counters; what all threads have allocated and not freed. */
void    snd_memory_count(int64_t allocated, int64_t freed);
int64_t snd_memory_net(void);
/* Whether what the calling thread allocates and frees now counts. */
static inline bool snd_memory_counts(void)
{
    return !snd_memory_mine_.inside && __atomic_load_n(&snd_memory_on, __ATOMIC_RELAXED);
}

/* memory_sizes.c: of a block that was there before; of malloc, of debug hooks, of Python's own. */
size_t snd_size_by_malloc(const void *block);
size_t snd_size_by_header(const void *block);
size_t snd_size_by_pool(const void *block);
/* Whether CPython's debug hooks put a header before a block of `asked` bytes. */
bool snd_size_has_header(const void *block, size_t asked, char letter);

/* memory_divert.c */
int snd_divert_malloc(void); /* slots diverted */
int snd_divert_undo(void);

/* memory_reuse.c */
void snd_reuse_start(void);
void snd_reuse_stop(void);

/* memory_rss.c: the resident size every 100 ms, as the counter process.rss. */
uint64_t snd_rss_bytes(void);
void     snd_rss_start(void);
void     snd_rss_stop(void);
void     snd_rss_forget(void); /* in a forked child */

#endif
