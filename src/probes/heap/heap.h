/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/heap.h - which code allocates memory: a library that is loaded before the program
 * (LD_PRELOAD).
 *
 * An allocation passes through these files, in this order: heap_calls.c and operators.c (the functions
 * that a program calls), heap_notes.c (what is recorded of a call, in full or by samples), heap_walk.c (the
 * call stack), stack_tallies.c (the stack's counters in the trace), account.c (counting: bytes, peak),
 * live_blocks.c (which stack a block is of, for its free). mappings.c counts mmap() apart.
 *
 * Nothing here calls malloc. Memory is mapped (heap_pages.h). The fast path has no system call; it takes
 * one lock, for some tens of nanoseconds, so that the peak is one moment of all threads.
 *
 * Layer:   probes. Threads: any, from the process's first allocation to its last, also in signal
 *          handlers: what interrupts this code itself is passed on without being counted.
 */
#ifndef SND_PROBES_HEAP_H
#define SND_PROBES_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hints.h"

enum snd_heap_mode {
    SND_HEAP_UNSET, /* SONDE_HEAP has not been read yet */
    SND_HEAP_OFF,   /* calls are passed on */
    SND_HEAP_FULL,
    SND_HEAP_SAMPLED,
};

/* Two heaps are counted apart: `other` of the tallies. */
enum snd_heap_kind { SND_HEAP_MALLOC, SND_HEAP_MAPPED, SND_HEAP_KINDS };

enum snd_heap_inside {
    SND_OUTSIDE,
    SND_COUNTING,  /* a call now comes from a signal handler: not counted */
    SND_PREPARING, /* a call now is our own, or the recorder's */
};

/* A thread's own. */
struct snd_heap_thread {
    enum snd_heap_inside   inside;
    const void            *newest; /* allocated last, nothing freed since: temporary if freed now */
    const void            *counted;   /* the last block that was counted: see operators.c */
    const void            *passing;   /* being freed by operator delete, and counted already */
    uint64_t               low, high; /* part of its stack that is known to be readable */
    uint64_t               left;      /* bytes that pass unnoted: heap_notes.h */
    uint64_t               random;    /* sampled: state of its generator; 0: not seeded */
    bool                   is_ending; /* its walk is another thread's now */
    struct snd_heap_walks *walks;     /* heap_walk.c's; NULL: none yet */
};
/* heap_state.c */
extern __thread struct snd_heap_thread snd_heap_self __attribute__((tls_model("initial-exec")));
extern uint64_t    snd_heap_own_low, snd_heap_own_high; /* the recorder's code */
static inline bool snd_heap_is_ours(uint64_t pc)
{
    return pc - snd_heap_own_low < snd_heap_own_high - snd_heap_own_low;
}

/* Where a call came from: the registers of the caller, after our function will have returned. */
struct snd_heap_caller {
    uint64_t pc, sp, fp;
};
/* Only valid in the function that the program calls. */
#define SND_HEAP_CALLER                                                          \
    ((struct snd_heap_caller){ (uint64_t)(uintptr_t)__builtin_return_address(0), \
                               (uint64_t)(uintptr_t)__builtin_dwarf_cfa(),       \
                               *(const uint64_t *)__builtin_frame_address(0) })

#define SND_NOINLINE __attribute__((noinline))
/* Functions that replace the program's; all others are hidden. */
#define SND_EXPORTED __attribute__((visibility("default")))

#endif
