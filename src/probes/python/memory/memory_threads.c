/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/memory/memory_threads.c - counters of each thread, and their sum. */
#include "probes/python/memory/memory_counts.h"

__thread struct snd_memory_thread snd_memory_mine_ __attribute__((tls_model("initial-exec")));
uint32_t                          snd_memory_on;

static int64_t net_bytes; /* of all threads, since they were first counted */

/*
 * The sum of all threads is kept besides, rather than found in a list of threads: a thread that frees
 * memory as its very last deed could not be taken from such a list.
 */
void snd_memory_count(int64_t allocated, int64_t freed)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;

    mine->allocated_bytes += (uint64_t)allocated;
    mine->freed_bytes += (uint64_t)freed;
    mine->net_bytes += allocated - freed;
    if (mine->net_bytes > mine->peak_bytes)
        mine->peak_bytes = mine->net_bytes;
    __atomic_fetch_add(&net_bytes, allocated - freed, __ATOMIC_RELAXED);
}

int64_t snd_memory_net(void)
{
    return __atomic_load_n(&net_bytes, __ATOMIC_RELAXED);
}

/*
 * CPython allocates an int for each event and frees it afterwards: that of the last event is free by now.
 */
void snd_memory_leave_out(PyObject *number)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;
    size_t                    size = snd_blocks_size(number);

    if (size & SND_BLOCK_KEPT) /* it was not counted when it was made */
        size = 0;
    mine->allocated_bytes -= size;
    mine->freed_bytes -= mine->own_bytes;
    int64_t change = (int64_t)mine->own_bytes - (int64_t)size;
    mine->net_bytes += change;
    __atomic_fetch_add(&net_bytes, change, __ATOMIC_RELAXED);
    mine->own_bytes = size;
}
