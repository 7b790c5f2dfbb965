/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/python/counted_functions.h - how the table of functions is filled: counted_functions.c and its parts.
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_PYTHON_COUNTED_FUNCTIONS_H
#define SND_MODEL_PYTHON_COUNTED_FUNCTIONS_H

#include "base/error.h"
#include "base/data/map.h"
#include "model/counters/counter_names.h"
#include "read/reader.h"
#include "sonde/model.h"

struct snd_function_counts {
    uint64_t total[SND_THREAD_COUNTERS_MOST], self[SND_THREAD_COUNTERS_MOST];
};

struct sonde_functions {
    struct sonde_trace         *trace;
    struct sonde_function      *rows;
    struct sonde_call          *calls;   /* by callee, once sorted; those from outside included */
    struct sonde_call          *callees; /* by caller */
    uint32_t                    count, room, call_count, call_room, callee_count;
    struct snd_counter_names    counters; /* of threads, that functions have */
    struct snd_function_counts *counts;   /* by function; NULL: none */
    uint32_t                    counts_room;
    struct snd_map              by_place; /* (file, line, name) to a row */
    struct snd_map              by_frame; /* (process, frame) to a row */
    struct snd_map              by_pair;  /* (caller + 1, callee) to a call */
};

/* The row of a frame; UINT32_MAX when memory is out. */
uint32_t snd_function_of(struct sonde_functions *f, uint32_t process, uint32_t frame);
/* The call of `callee` by `caller` (SONDE_NONE: from outside); UINT32_MAX when memory is out. */
uint32_t snd_call_of(struct sonde_functions *f, uint32_t caller, uint32_t callee);

/* Adds what the ranges of those processes say that have no tallies (`counted`: those that have). */
SND_CHECKED enum sonde_status
snd_functions_from_ranges(struct sonde_functions *f, const bool *counted, struct sonde_error *err);

#endif
