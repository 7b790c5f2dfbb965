/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/counters/range_counters.h - what counters of threads say of ranges, by name: `sonde run --per-range`.
 *
 * A range has what its thread's counters rose by while it was open; its own is that less what its
 * children have. A range that another thread ends has none.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_COUNTERS_RANGE_COUNTERS_H
#define SND_MODEL_COUNTERS_RANGE_COUNTERS_H

#include "base/error.h"
#include "model/counters/counter_names.h"
#include "sonde/trace.h"

struct snd_range_counts_row {
    struct sonde_text name;
    uint64_t          count;
    int64_t           total_ns, self_ns;
    uint64_t          total[SND_THREAD_COUNTERS_MOST], self[SND_THREAD_COUNTERS_MOST];
};

struct snd_range_counts {
    struct snd_counter_names     names; /* that the trace has */
    struct snd_range_counts_row *rows;  /* owned; the longest first */
    uint32_t                     count, room;
};

/* Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. The caller releases it in both cases. */
SND_CHECKED enum sonde_status snd_range_counts_make(struct sonde_trace      *trace,
                                                    struct snd_range_counts *out,
                                                    struct sonde_error      *err);
void                          snd_range_counts_release(struct snd_range_counts *counts);

/* Does the trace have any? */
bool snd_range_counts_there(const struct sonde_trace *trace);

#endif
