/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/kinds.h - which kinds of events a trace has, so that a walk that looks for others is spared.
 *
 * Found by going through the events without their times and threads, which costs less than a walk,
 * and once for a trace; by all processors, chunk by chunk, if it is large. What a walk leaves out (warm-up, what follows
 * damage) may be among them: a kind that is not there is certain, one that is there may not be met.
 *
 * Layer: read. Threads: as a trace.
 */
#ifndef SND_READ_WALK_KINDS_H
#define SND_READ_WALK_KINDS_H

#include "base/error.h"
#include "read/reader.h"
#include "read/walk/trace_walk.h"

struct snd_kinds {
    bool events[256];  /* by kind: SND_EV_ */
    bool attrs[256];   /* by key, of ATTR and ATTR64; those of call records are in the tables */
    bool unsized_free; /* there is a FREE of an address that does not have its size */
    bool crossing_end; /* an END_KEY may end a range of another thread */
    /*
     * Of each thread of the trace, and then of what each process's chunks have for no thread: the least of all that share
     * chunks with it, directly or not (THREAD in the middle of one). Others have not a chunk in common with it.
     */
    uint32_t *beside;
};

/* `out` is the trace's. Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. */
SND_CHECKED enum sonde_status
snd_trace_kinds(struct sonde_trace *trace, const struct snd_kinds **out, struct sonde_error *err);
void snd_kinds_free(struct snd_kinds *kinds);

/* Where in kinds->beside the thread with an id of a process is. */
static inline uint32_t snd_kinds_place(const struct sonde_trace *trace, uint32_t process,
                                       uint32_t thread_id)
{
    uint32_t thread = snd_thread_of(&trace->processes[process], thread_id);

    return thread != SONDE_NONE ? thread : trace->thread_count + process;
}

#endif
