/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/walk.h - the call stack of an allocation, by the tables for exceptions (.eh_frame).
 *
 * What the tables say of an address of code is kept in a few numbers (struct snd_heap_row), by
 * address, for all threads: a frame then costs a look into a hash table and two loads. Frames whose
 * rule does not fit (signal handlers, hand-written code) are walked the slow way, by
 * pystack/unwind.h.
 *
 * The stack is read in place. Each page of it is probed by a system call before it is first read,
 * so that a stack which does not match the tables ends the walk, not the program.
 */
#ifndef SND_PROBES_HEAP_WALK_H
#define SND_PROBES_HEAP_WALK_H

#include "probes/heap/heap.h"

#define SND_HEAP_FRAMES 128 /* of one stack, innermost first; what is further out is left out */

enum snd_heap_rule {
    SND_RULE_SP,    /* CFA = stack pointer + cfa */
    SND_RULE_FP,    /* CFA = frame pointer + cfa */
    SND_RULE_AT_FP, /* CFA is stored at frame pointer + cfa: a function that aligned its stack */
    SND_RULE_END,   /* there is no caller, or nothing is known of it */
    SND_RULE_ODD,   /* needs the full unwinder */
};

struct snd_heap_row {
    uint64_t pc;                    /* a return address; 0: the slot is free */
    int32_t  cfa, return_at, fp_at; /* the latter two from the CFA */
    uint8_t  rule;                  /* enum snd_heap_rule */
    bool     fp_saved;              /* else the frame pointer is still the caller's */
    bool     is_ours;               /* code of the recorder */
    bool     is_hidden;             /* code of this library: an operator new */
};

struct snd_heap_stack {
    uint64_t pcs[SND_HEAP_FRAMES];
    uint32_t count;
    bool     cut;
    bool     is_ours;   /* the recorder called */
    uint64_t low, high; /* 128 bits that stand for the stack */
};

/* Once, before the first walk. */
void snd_heap_walk_init(void);
/* A library was unloaded: its addresses may become another's. */
void snd_heap_walk_forget(void);
void snd_heap_walk(const struct snd_heap_caller *caller, struct snd_heap_stack *stack);
/* Held around a fork. */
void snd_heap_walk_lock(void);
void snd_heap_walk_unlock(void);

#endif
