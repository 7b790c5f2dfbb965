/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/counters/counter_names.h - counters of threads, by the numbers that a process has given them.
 *
 * Layer: model. Threads: any.
 */
#ifndef SND_MODEL_COUNTERS_COUNTER_NAMES_H
#define SND_MODEL_COUNTERS_COUNTER_NAMES_H

#include "format/run/named_counters.h"
#include "sonde/trace.h"

#define SND_THREAD_COUNTERS_MOST 8u

/* Those of all processes of a trace. */
struct snd_counter_names {
    struct {
        const struct snd_counter *known;
        struct sonde_text         name; /* with its mode: "cycles:u"; of the trace */
    } items[SND_THREAD_COUNTERS_MOST];
    uint32_t count;
};

/*
 * Adds those that a process's metadata names, with commas; place[n] is the number here of the
 * process's counter n, plus one; 0: not known.
 */
void snd_counter_names_add(struct snd_counter_names *names, struct sonde_text list,
                           uint8_t place[SND_THREAD_COUNTERS_MOST]);

#endif
