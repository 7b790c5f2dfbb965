/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/samples.h - sampled stacks, as trees and as functions. model.h includes it.
 *
 * Owns: what sonde_X_new() makes, the caller frees with sonde_X_free(), before it closes the trace.
 * Threads: as a trace: one at a time.
 */
#ifndef SONDE_SAMPLES_H
#define SONDE_SAMPLES_H

#include "sonde/trace.h"

SONDE_C_BEGIN_

/*
 * Sampled stacks, as a tree for each thread, for each process or for all:
 * equal paths merged, a function being its file, its name and the line where it begins. The root
 * stands for the threads that the tree is of.
 */
enum sonde_samples_by { SONDE_SAMPLES_BY_THREAD, SONDE_SAMPLES_BY_PROCESS, SONDE_SAMPLES_MERGED };
struct sonde_samples_options {
    size_t struct_size; /* sizeof(struct sonde_samples_options), as in the INIT macro */
    enum sonde_samples_by by;
    bool                  hide_imports; /* the import system's functions count for their callers */
    bool fold_recursion; /* a function that calls itself is one node, with the number of levels */
    bool skip_idle;      /* nodes leave out the time in which a thread waited, also for the GIL */
};
#define SONDE_SAMPLES_OPTIONS_INIT                                                         \
    {                                                                                      \
        sizeof(struct sonde_samples_options), SONDE_SAMPLES_BY_THREAD, false, false, false \
    }
struct sonde_sample_node {
    struct sonde_text function, file; /* empty: the root */
    uint32_t          line;           /* where the function begins; 0 unknown */
    bool              is_native;
    uint32_t          parent, first_child, next_sibling; /* 0: none; children longest first */
    uint32_t          depth;                             /* root 0 */
    uint32_t          levels;                            /* of recursion that it stands for */
    uint64_t          samples;                           /* of it and all below */
    int64_t           time_ns, self_ns;                  /* wall time; self: it was innermost */
    int64_t           cpu_ns, gil_ns;                    /* of time_ns: on the CPU, with the lock */
    bool              is_range; /* no function: a range or an operator that was open */
};
struct sonde_sample_thread {
    uint32_t thread;  /* index of the trace; of several: the first seen */
    uint32_t threads; /* number of threads in the tree */
    uint32_t root;    /* node */
    uint64_t samples;
    int64_t  time_ns, cpu_ns, gil_ns, gil_wait_ns, idle_ns;
    int64_t  first_ns, last_ns; /* from the begin of the first sample to the end of the last */
};
struct sonde_samples; /* opaque */
/* Owns: the caller, until sonde_samples_free(). `options` may be NULL: nothing hidden, by thread. */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_samples_new(struct sonde_trace *trace, const struct sonde_samples_options *options,
                  struct sonde_samples **out, struct sonde_error *err);
/*
 * The same samples in trees of another shape, without walking the trace again. `samples` is one that
 * sonde_samples_new() made, and may be freed first. Owns: as above.
 */
SONDE_API SONDE_CHECKED enum sonde_status
               sonde_samples_merge(const struct sonde_samples         *samples,
                                   const struct sonde_samples_options *options, struct sonde_samples **out,
                                   struct sonde_error *err);
SONDE_API void sonde_samples_free(struct sonde_samples *samples);
/* The trees. Threads with samples: a process's main thread before its others. NULL past the last. */
SONDE_API size_t sonde_samples_thread_count(const struct sonde_samples *samples);
SONDE_API const struct sonde_sample_thread *
sonde_samples_thread(const struct sonde_samples *samples, size_t index);
SONDE_API const struct sonde_sample_node *sonde_samples_node(const struct sonde_samples *samples,
                                                             size_t                      index);
/* The node after `at` in the tree under `root`, each before its children; 0 after the last. */
SONDE_API uint32_t sonde_samples_next(const struct sonde_samples *samples, uint32_t at,
                                      uint32_t root);
/* The requested sampling rate in Hz; 0: unknown. */
SONDE_API double sonde_samples_rate(const struct sonde_samples *samples);

/*
 * The functions of all those trees, each once: self time is that in which it was innermost, total
 * time that in which it was running, however often in one stack. Longest self time first.
 */
struct sonde_sample_function {
    struct sonde_text function, file;
    uint32_t          line;
    bool              is_native;
    uint64_t          samples; /* in which it was running */
    int64_t           self_ns, total_ns;
    int64_t           off_cpu_ns; /* of total_ns: not on the CPU */
};
struct sonde_sample_functions {
    size_t                        count;
    struct sonde_sample_function *rows;
    int64_t                       whole_ns; /* of all trees: what percentages refer to */
};
/* Owns: the caller, until sonde_sample_functions_free(). Text is the trace's. */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_sample_functions_new(const struct sonde_samples *samples, struct sonde_sample_functions **out,
                           struct sonde_error *err);
SONDE_API void sonde_sample_functions_free(struct sonde_sample_functions *functions);

SONDE_C_END_
#endif
