/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/run/named_counters.h - the counters that have a name, as a table: format/run/named_counters.def.
 *
 * Layer: format (no I/O, no state). Threads: any.
 */
#ifndef SND_FORMAT_RUN_NAMED_COUNTERS_H
#define SND_FORMAT_RUN_NAMED_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first numbers are those of perf_event_attr.type. */
enum snd_counter_type {
    SND_COUNTER_HARDWARE = 0,
    SND_COUNTER_SOFTWARE = 1,
    SND_COUNTER_CACHE = 3,
    SND_COUNTER_RAW = 4,
    SND_COUNTER_CLOCK = 100, /* sonde's own: time of the run */
};
enum snd_counter_unit { SND_COUNTER_COUNT, SND_COUNTER_NS };
/* How a thread reads its own. */
enum snd_counter_thread {
    SND_COUNTER_BY_EVENT,
    SND_COUNTER_BY_CLOCK,
    SND_COUNTER_BY_FAULTS,
    SND_COUNTER_BY_MINOR,
    SND_COUNTER_BY_MAJOR,
    SND_COUNTER_BY_SWITCHES,
};

struct snd_counter {
    const char             *name, *alias;
    enum snd_counter_type   type;
    uint64_t                config;
    enum snd_counter_unit   unit;
    enum snd_counter_thread thread;
    bool                    usual;
    const char             *of, *share; /* "": of none */
    bool                    is_lines;
};

enum snd_counter_id {
#define SND_COUNTER(NAME, ...) SND_COUNTER_OF_##NAME,
#include "format/run/named_counters.def"
#undef SND_COUNTER
    SND_COUNTERS
};

extern const struct snd_counter snd_counters[SND_COUNTERS];

/* The counter of a name or an alias, without modifiers; NULL: there is none. */
const struct snd_counter *snd_counter_find(const char *name, size_t length);

#endif
