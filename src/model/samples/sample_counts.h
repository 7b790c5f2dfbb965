/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/samples/sample_counts.h - the samples of a trace, added up by thread, stack, open ranges and whether
 * the thread waited: what trees of any shape are made of, without walking the trace again.
 *
 * Layer: model (sees base/, format/, read/). Threads: one at a time.
 */
#ifndef SND_MODEL_SAMPLES_SAMPLE_COUNTS_H
#define SND_MODEL_SAMPLES_SAMPLE_COUNTS_H

#include "base/error.h"
#include "base/data/map.h"
#include "model/samples/mixed_stacks.h"
#include "sonde/model.h"

struct snd_sample_count {
    uint32_t thread, stack; /* index; id of the thread's process, 0: none */
    uint32_t chain;         /* open ranges: mixed_stacks.h */
    bool     waits;         /* for the interpreter's lock, or for anything else */
    uint64_t samples;
    int64_t  time_ns, cpu_ns, gil_ns;
    int64_t  gil_wait_ns; /* of time_ns: for the interpreter's lock */
};

struct snd_sample_counts {
    struct sonde_trace         *trace;
    struct snd_sample_count    *rows; /* in the order in which they were first seen */
    uint32_t                    count, room;
    struct sonde_sample_thread *threads; /* of each thread of the trace; `root` is not used */
    uint32_t                   *seen;    /* those with samples, in the order in which they came */
    uint32_t                    seen_count;
    struct snd_map              index; /* (thread, stack, chain and waits) to a row */
    struct snd_mixed            mixed;
    bool                        failed;
};

/*
 * Walks the trace, once. Owns: the caller frees *out with snd_sample_counts_free(); a page of many views has them
 * lent (model/kept.h). Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED; *out is NULL then.
 */
SND_CHECKED enum sonde_status snd_sample_counts_new(struct sonde_trace        *trace,
                                                    struct snd_sample_counts **out,
                                                    struct sonde_error        *err);
/* The same in two parts: they wait at the trace for the next walk (snd_wait()), ... */
SND_CHECKED enum sonde_status snd_sample_counts_wait(struct sonde_trace        *trace,
                                                     struct snd_sample_counts **out,
                                                     struct sonde_error        *err);
/* ... and are there, which takes a walk if nobody has made one. An error frees them. */
SND_CHECKED enum sonde_status snd_sample_counts_finish(struct snd_sample_counts **counts,
                                                       struct sonde_error        *err);
void snd_sample_counts_free(struct snd_sample_counts *counts); /* or NULL */

#endif
