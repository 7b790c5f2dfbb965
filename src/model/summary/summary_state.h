/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/summary/summary_state.h - what the files of the summary share.
 *
 *     summary.c        what a walk adds to it, and the whole
 *     summary_parts.c  room for that; those of some threads, made by one of several workers, and added up
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_SUMMARY_SUMMARY_STATE_H
#define SND_MODEL_SUMMARY_SUMMARY_STATE_H

#include "base/data/map.h"
#include "model/ranges/assembly.h"
#include "model/summary/ledger.h"
#include "model/summary/steps.h"

/* What is known of a thread by samples, which another thread takes: from when until when. */
struct sampled {
    int64_t first_ns, last_ns;
};

/* An end of an arrow that may cross processes. */
struct flow {
    int64_t        ns;
    uint32_t       order;
    struct snd_key key;
};

struct sonde_summary {
    struct sonde_trace         *trace;
    struct sonde_summary_totals totals;
    struct sonde_thread_row    *threads;
    struct snd_steps            steps;
    struct snd_map              links; /* arrows with one end so far: which */
    struct flow                *flows; /* arrows between processes, not yet in order */
    uint32_t                    flow_count, flow_room;
    struct snd_assembly        *assembly;
    struct snd_map              held;      /* (device, process, address) of what is allocated */
    uint64_t                    unmatched; /* frees of what was not */
    uint64_t                    compiled;  /* runs of inductor's code in a module, undivided */
    uint64_t       *divided;    /* of each thread: ranges of the present run that have a module */
    int64_t        *uncounted;  /* self time of each name's ranges without FLOPs */
    uint8_t        *meanings;   /* enum meaning of each name, once one was met */
    int64_t         self_ns;    /* of all */
    int64_t        *covered_ns; /* of each thread: until when it is counted as busy */
    struct sampled *sampled;    /* of each thread that has samples */
    bool            has_shapes;
    struct sonde_ledger_item  ledger[SND_LEDGER_COUNT];
    size_t                    ledger_count;
    struct snd_consumer       consumer;
    struct snd_assembly_stats stats;                  /* of the walk */
    uint32_t                  loans;                  /* of a shared one, not given back */
    bool                      is_done, out_of_memory; /* done: the walk went to its end */
    bool                      has_counted;            /* ranges of steps */
    bool                      is_part;                /* of others (summary_parts.c) */
};

/* What the walk fills, of which there may be some afterwards whatever this returns. False: out of memory. */
bool snd_summary_begin_walk(struct sonde_summary *s);
void snd_summary_end_walk(struct sonde_summary *s);

extern const struct snd_division snd_summary_division;

#endif
