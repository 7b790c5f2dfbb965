/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/heap_stacks.h - who allocates what: the heaps of processes, by call stack and as call trees.
 *
 * A heap is what malloc and related functions gave to one process, or what it mapped itself. Its numbers are
 * tallies (HEAP and HEAP_PROCESS of format/tallies.def); sampled ones are estimates.
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_MEMORY_HEAP_STACKS_H
#define SND_MODEL_MEMORY_HEAP_STACKS_H

#include "base/error.h"
#include "model/memory/heap_history.h"
#include "sonde/trace.h"

/* What is counted of a stack, of a node of the tree, or of the whole heap. */
struct snd_heap_sums {
    uint64_t allocations, bytes;
    uint64_t live_blocks, live_bytes; /* not freed: at the end, leaks */
    uint64_t peak_blocks, peak_bytes; /* held at the heap's peak */
    uint64_t temporary;
    uint64_t at_blocks, at_bytes; /* held at the moment that was asked for */
};

/* Half of the 95 % interval around estimates; 0: exact. */
struct snd_heap_errors {
    double bytes, live_bytes, peak_bytes;
};

struct snd_heap_row {
    uint32_t               heap, stack; /* stack 0: not known */
    struct snd_heap_sums   sums;
    struct snd_heap_errors errors;
    uint64_t               samples; /* 0: all were counted */
    uint32_t               node;    /* its innermost function, of trees */
};

/* A function by its callers; a child comes after its parent. */
struct snd_heap_node {
    uint32_t             parent, first_child, next_sibling; /* 0: none */
    struct sonde_frame   frame;
    struct snd_heap_sums sums; /* with all below it */
};

struct snd_heap {
    uint32_t                      process; /* of the trace */
    bool                          is_mapped;
    struct snd_heap_sums          sums;
    struct snd_heap_errors        errors;
    uint64_t                      samples, period; /* 0: all were counted */
    uint64_t                      unknown_frees;
    uint32_t                      root;         /* node */
    uint32_t                      first, count; /* rows */
    struct snd_heap_history       history;
    const struct snd_heap_moment *at; /* that was asked for; NULL: none, or the end */
};

void snd_heap_sums_add(struct snd_heap_sums *to, const struct snd_heap_sums *from);

struct snd_heaps; /* opaque */

/*
 * Owns: the caller frees *out with snd_heaps_free(). `trees`: with nodes.
 * Errors: SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_heaps_new(struct sonde_trace *trace, bool trees,
                                            struct snd_heaps **out, struct sonde_error *err);
/* The same with what was held `at_ns` on the trace's axis; 0: at no moment. */
SND_CHECKED enum sonde_status snd_heaps_new_at(struct sonde_trace *trace, bool trees, int64_t at_ns,
                                               struct snd_heaps **out, struct sonde_error *err);
void                          snd_heaps_free(struct snd_heaps *heaps); /* may be NULL */
/* Heaps by process, mapped ones after malloc's; NULL past the last. */
const struct snd_heap *snd_heaps_heap(const struct snd_heaps *heaps, uint32_t index);
/* Rows of one heap follow each other, greatest peak first. */
const struct snd_heap_row  *snd_heaps_row(const struct snd_heaps *heaps, uint32_t index);
uint32_t                    snd_heaps_node_count(const struct snd_heaps *heaps);
const struct snd_heap_node *snd_heaps_node(const struct snd_heaps *heaps, uint32_t index);

#endif
