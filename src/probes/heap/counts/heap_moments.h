/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/counts/heap_moments.h - the heap over time: what each stack held at moments of the run, as
 * tallies HEAP_MOMENT and HEAP_HELD.
 *
 * A moment is the state before a change, once the latest moment is some 10 ms ago. Stacks that have changed since
 * that one are in a list: a moment writes those alone. The time between moments doubles with each 128 of them and
 * with each 16,384 stacks written, so that an hour takes some thousand moments and 12 MB at most.
 */
#ifndef SND_PROBES_HEAP_COUNTS_HEAP_MOMENTS_H
#define SND_PROBES_HEAP_COUNTS_HEAP_MOMENTS_H

#include "probes/heap/stacks/stack_tallies.h"

/* Stacks as they were at a moment, copied, and not written yet. */
struct snd_heap_moment {
    struct snd_heap_share *shares; /* NULL: there is no moment */
    uint32_t               count, room, number;
    uint64_t               at, since; /* raw clock; nothing was seen to change in between */
    struct {
        bool     is_there;
        uint64_t bytes, highest, variance;
    } of[SND_HEAP_KINDS];
};

/* All but the last: under snd_heap_counting. */
void            snd_heap_moment_list(struct snd_heap_counts *counts, uint32_t stack);
extern uint64_t snd_heap_highest[SND_HEAP_KINDS]; /* since the latest moment */

/* A stack changes. */
static inline void snd_heap_moment_changes(struct snd_heap_counts *counts, uint32_t stack)
{
    if (counts->next_changed == 0)
        snd_heap_moment_list(counts, stack);
}

/* All stacks of a kind hold so much now. */
static inline void snd_heap_moment_holds(enum snd_heap_kind kind, uint64_t live)
{
    if (live > snd_heap_highest[kind])
        snd_heap_highest[kind] = live;
}

/* It is `at`, and somebody looks: copies the state if a moment is due. */
void snd_heap_moment_look(struct snd_heap_moment *moment, uint64_t at);
/* Writes it into the trace, and lets go of the copy. Without the lock. */
void snd_heap_moment_write(struct snd_heap_moment *moment);

#endif
