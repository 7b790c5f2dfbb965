/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/counters/run_counters.h - counters of a program over its runs: means, spread, and what follows from them.
 *
 * They are facts COUNTER of format/facts.def. The arithmetic is that of `perf stat`: values are scaled
 * by the time in which they were counted, and the spread of a mean is its standard error.
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_COUNTERS_RUN_COUNTERS_H
#define SND_MODEL_COUNTERS_RUN_COUNTERS_H

#include "base/error.h"
#include "format/run/named_counters.h"
#include "read/said/trace_facts.h"

/* A counter that has no value is a row too: `absent` is not empty, and all numbers are 0. */
struct snd_counter_row {
    struct sonde_text         name;  /* "cycles:u" */
    const struct snd_counter *known; /* NULL: raw */
    bool                      is_ns;
    uint32_t                  runs;        /* in which it has a value */
    double                    mean, error; /* scaled; standard error of the mean */
    double                    least, most;
    double                    counted;          /* mean, not scaled */
    double                    enabled, running; /* ns over all runs; 0: not known */
    struct sonde_text         absent, note;
    double                    line_bytes;
    double                    squares; /* while it is made */

    /* What follows; a number that does not apply is NAN. */
    double      metric; /* the one that perf shows; what it is in `metric_unit` */
    const char *metric_unit;
    double      per_second;   /* of time on a processor */
    double      per_thousand; /* instructions */
    double      bytes_per_second;
};

struct snd_counter_table {
    struct snd_counter_row *rows; /* owned; in the order in which they were asked for */
    uint32_t                count, capacity;
    uint32_t                runs;
    uint32_t                process; /* that has them: its metadata names the command */
    double                  elapsed_ns, elapsed_error_ns;
};

/* Errors: SONDE_E_NOMEM. The caller releases it in both cases. */
SND_CHECKED enum sonde_status snd_counter_table_make(const struct sonde_trace *trace,
                                                     struct snd_counter_table *table,
                                                     struct sonde_error       *err);
void                          snd_counter_table_release(struct snd_counter_table *table);

/* Does the trace have any? */
bool snd_counters_there(const struct sonde_trace *trace);

/* The row of a counter, of the same modes as `like` (its modifiers), if not NULL; or NULL. */
const struct snd_counter_row *snd_counter_row(const struct snd_counter_table *table,
                                              enum snd_counter_id             id,
                                              const struct snd_counter_row   *like);

/* Standard error as a share of the mean, in per cent, as perf prints it. */
double snd_counter_percent(double error, double mean);

#endif
