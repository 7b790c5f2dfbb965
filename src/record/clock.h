/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/clock.h - the clock that stamps events.
 *
 * Layer: record. Threads: any, after snd_clock_init().
 */
#ifndef SND_RECORD_CLOCK_H
#define SND_RECORD_CLOCK_H

#include "format/layout.h"

/* Chooses the clock, once, and notes the early pair. Called when the library is loaded. */
void snd_clock_init(void);

enum snd_clock_kind   snd_clock_kind(void);
struct snd_clock_pair snd_clock_early(void);

/* Now, on all three clocks, read as close together as can be had. */
struct snd_clock_pair snd_clock_pair_now(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t snd_monotonic_ns(void);

/* What a begin and an end cost here, in 1/256 of a raw tick; about 20 microseconds of work. */
uint64_t snd_clock_range_cost(void);

#endif
