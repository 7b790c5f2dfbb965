/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/stacks/stack_tallies.h - the counters of each call stack, in the trace: HEAP of format/tallies.def.
 *
 * A stack is known here by a number, its place in a table; the numbers go on in a forked child and
 * in a further file, and those below its first are of blocks from before. What comes before the
 * recorder is loaded (constructors of libraries) is counted in memory of our own, and moved into
 * the trace.
 */
#ifndef SND_PROBES_HEAP_STACKS_STACK_TALLIES_H
#define SND_PROBES_HEAP_STACKS_STACK_TALLIES_H

#include "probes/heap/heap.h"
#include "probes/heap/stacks/heap_walk.h"

#define SND_HEAP_OWN 1u /* the stack of blocks that are not counted: the recorder's */

/* The counters of a stack, and of all stacks of its kind. */
struct snd_heap_counts {
    uint64_t          *words;   /* SND_HEAP_*; NULL: not of this recording */
    uint64_t          *sampled; /* SND_HEAP_SAMPLED_*; NULL unless sampled */
    enum snd_heap_kind kind;
    uint32_t           id;           /* of the stack in the trace */
    uint32_t           next_changed; /* heap_moments.c's list; 0: not in it */
};

void snd_heap_stacks_init(uint64_t period);

/*
 * The number of a stack, 0 when nothing records, SND_HEAP_OWN. Where the trace has no room for
 * it, that of the stack that is not known.
 */
uint32_t snd_heap_stack_of(enum snd_heap_kind kind, struct snd_heap_stack *stack);
/* The number of the unknown stack. */
uint32_t snd_heap_unknown(enum snd_heap_kind kind);

/* NULL: a block from before this recording, or not counted. Under snd_heap_counting. */
struct snd_heap_counts *snd_heap_counts_of(uint32_t stack);
struct snd_heap_counts *snd_heap_counts_at(uint32_t stack); /* of whatever recording */
/* The first stack of the recording, by which it is known; 0: none has a file now. */
uint32_t  snd_heap_first_stack(void);
uint64_t *snd_heap_process(enum snd_heap_kind kind);         /* SND_HEAP_PROCESS_* */
uint64_t *snd_heap_process_sampled(enum snd_heap_kind kind); /* or NULL */

/*
 * After a fork, in the child: its counts begin at 0, and are kept here until there are many of
 * them, or it ends: snd_heap_stacks_flush() has them written then, if there are some or
 * `even_empty`. A child that calls exec soon has no file. Counts from before the recording began are
 * written in the same way.
 */
void snd_heap_stacks_in_child(void);
void snd_heap_stacks_flush(bool even_empty);

/* A library was unloaded: its addresses may become another's. */
void snd_heap_stacks_forget(void);

/* Held around a fork. */
void snd_heap_stacks_lock(void);
void snd_heap_stacks_unlock(void);

#endif
