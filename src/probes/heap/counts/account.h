/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/counts/account.h - counts what is allocated and freed, by stack and in total, and the peak.
 *
 * What each stack holds at the peak is known without copying all counters at each new peak. Peaks
 * are numbered: a peak is over when the first byte is freed after it. Before a stack's bytes change
 * for the first time after peak n, they are kept as its share of peak n; a stack that has not
 * changed since holds its share still.
 */
#ifndef SND_PROBES_HEAP_COUNTS_ACCOUNT_H
#define SND_PROBES_HEAP_COUNTS_ACCOUNT_H

#include "probes/heap/counts/live_blocks.h"
#include "probes/heap/stacks/stack_tallies.h"

/* What one call counts for: itself or, when sampled, all calls that it represents. */
struct snd_heap_weight {
    uint64_t count, bytes;
    double   variance; /* sampled: of `bytes`, in KiB squared */
};

/* An allocation, a free (the other stack is 0), or both at the same moment: a realloc. */
struct snd_heap_change {
    uint32_t               taken, freed; /* stacks */
    struct snd_heap_weight taken_weight, freed_weight;
    bool                   is_temporary; /* what is freed */
};

void snd_heap_count(const struct snd_heap_change *change);
/* A block was freed whose allocation is not known. */
void snd_heap_count_unknown(enum snd_heap_kind kind);
/* An allocation was passed on without being counted: it interrupted this code. */
void snd_heap_count_unseen(enum snd_heap_kind kind);

#endif
