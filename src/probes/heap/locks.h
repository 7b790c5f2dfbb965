/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/locks.h - a lock that needs nothing of the C library, and survives a fork without handlers.
 *
 * It holds the process's id and is free in any other process: a child that was made by clone or
 * _Fork() while another thread held the lock would wait for ever.
 */
#ifndef SND_PROBES_HEAP_LOCKS_H
#define SND_PROBES_HEAP_LOCKS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

struct snd_heap_lock {
    uint32_t held; /* 0, or the process's id */
};

extern uint32_t snd_heap_pid; /* as it was when the process was first seen: see stack_tallies.c */

#define SND_HEAP_SPINS 100u

static inline bool snd_heap_try(struct snd_heap_lock *lock)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(&lock->held, &free, snd_heap_pid ? snd_heap_pid : 1, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void snd_heap_wait(struct snd_heap_lock *lock)
{
    for (uint32_t turn = 1; !snd_heap_try(lock); turn++) {
        if (turn % SND_HEAP_SPINS != 0)
            continue;
        uint32_t now = (uint32_t)getpid(), held = __atomic_load_n(&lock->held, __ATOMIC_RELAXED);
        if (held > 1 && held != now) /* of a thread that this process does not have */
            __atomic_compare_exchange_n(&lock->held, &held, 0, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        else
            sched_yield();
    }
}

static inline void snd_heap_lock(struct snd_heap_lock *lock)
{
    if (__builtin_expect(!snd_heap_try(lock), 0))
        snd_heap_wait(lock);
}

static inline void snd_heap_unlock(struct snd_heap_lock *lock)
{
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

/* Held around each change of a counter, and of where the counters are. */
extern struct snd_heap_lock snd_heap_counting;

#endif
