/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/heap_history.h - a heap over time: its moments, and what each call stack held at them
 * (HEAP_MOMENT and HEAP_HELD of format/tallies.def).
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_MEMORY_HEAP_HISTORY_H
#define SND_MODEL_MEMORY_HEAP_HISTORY_H

#include "base/error.h"
#include "sonde/trace.h"

struct snd_heap_moment {
    uint32_t number;          /* as recorded; they ascend */
    uint32_t end;             /* shares up to here are known at it */
    int64_t  at_ns, since_ns; /* on the trace's axis; the state was seen from `since` on */
    uint64_t bytes;           /* held */
    uint64_t highest;         /* the most that was held since the moment before */
    double   error;           /* half of the 95 % interval of `bytes`; 0: exact */
};

/* What a stack holds from a moment on, until a later share of it. */
struct snd_heap_share {
    uint32_t number, stack; /* stack 0: not known */
    uint64_t blocks, bytes;
};

struct snd_heap_history {
    struct snd_heap_moment *moments;
    struct snd_heap_share  *shares; /* by number, then by stack */
    uint32_t                moment_count, moment_room, share_count, share_room;
};

/* Of one process; False: memory is out. Release it in any case. */
SND_CHECKED bool snd_heap_history_read(const struct sonde_trace *trace, uint32_t process,
                                       bool is_mapped, struct snd_heap_history *out);
void             snd_heap_history_release(struct snd_heap_history *history);
/* The moment whose state was there at a time: the first that is not before it. NULL: it is after all of them. */
const struct snd_heap_moment *snd_heap_history_at(const struct snd_heap_history *history,
                                                  int64_t                        at_ns);

/* Half of the 95 % interval around a sum whose variance is a word of a tally: a double, in KiB squared. */
double snd_heap_half_interval(uint64_t variance);

#endif
