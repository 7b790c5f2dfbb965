/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/stacks/heap_walk.h - the call stack of an allocation, by the tables for exceptions (.eh_frame).
 *
 * What the tables say of an address of code is kept (frame_rules.h): a frame then costs a look into
 * a hash table and two loads. Frames whose rule does not fit (signal handlers, hand-written code)
 * are walked the slow way, by pystack/unwind/unwind.h.
 *
 * Most allocations of a thread have most of their callers in common with the one before. Each
 * thread keeps its latest walks: a frame at the same place of the stack has the same callers, if
 * every word of the stack from which they were found has the same value. Comparing these words
 * takes a fraction of a walk, and a stack that was compared is hashed already.
 *
 * The stack is read in place. Each page of it is probed by a system call before it is first read,
 * so that a stack which does not match the tables ends the walk, not the program.
 */
#ifndef SND_PROBES_HEAP_STACKS_HEAP_WALK_H
#define SND_PROBES_HEAP_STACKS_HEAP_WALK_H

#include "probes/heap/heap.h"
#include "pystack/interpreter/frames.h"

#define SND_HEAP_FRAMES 128 /* of one stack, innermost first; what is further out is left out */

struct snd_heap_walked;

struct snd_heap_stack {
    /* These and `count`: only after snd_heap_stack_fill(). sps: where each frame begins. */
    uint64_t                      pcs[SND_HEAP_FRAMES], sps[SND_HEAP_FRAMES];
    uint32_t                      count;
    bool                          cut;
    bool                          is_ours;    /* the recorder called */
    bool                          has_python; /* the Python interpreter called, or is called */
    uint64_t                      low, high;  /* 128 bits that stand for the stack */
    const struct snd_heap_walked *walked;     /* the thread's, until its next walk; NULL: filled */
    struct snd_py_stack          *python;     /* likewise: its Python frames; NULL: none */
};

/* Makes 128 bits stand for one word more. */
static inline void snd_heap_hash(uint64_t word, uint64_t *low, uint64_t *high)
{
    *low = (*low ^ word) * 0xff51afd7ed558ccdu;
    *low ^= *low >> 32;
    *high = (*high + word) * 0xc4ceb9fe1a85ec53u;
    *high ^= *high >> 29;
}

/* Once, before the first walk. */
void snd_heap_walk_init(void);
/* When all libraries of the program are loaded: threads keep walks of their own from now on. */
void snd_heap_walk_threads(void);
/* A library was unloaded: its addresses may become another's. */
void snd_heap_walk_forget(void);
void snd_heap_walk(const struct snd_heap_caller *caller, struct snd_heap_stack *stack);
/* Before the thread's next walk. */
void snd_heap_stack_fill(struct snd_heap_stack *stack);
/* Held around a fork. */
void snd_heap_walk_lock(void);
void snd_heap_walk_unlock(void);

#endif
