/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/perf/stack_events.h - the events of counters by call stack, so that they add up to what was counted.
 *
 * A sample stands for what its event counted since the sample before: the count that it carries (Linux 6.13
 * and later) tells. Its period does so by and large: of a software event it is the length of the interval that
 * begins with the sample, not of the one that ends there. It gives too much to threads that live for a few
 * samples while the kernel lengthens the intervals.
 *
 * What a thread did after its last sample is in no sample. All of that together is known at the end, when the
 * events are read. It is shared out by how far each thread may have come, the interval that it was in, and among
 * the stacks of a thread by their events.
 *
 * Layer: native. Threads: one.
 */
#ifndef SND_NATIVE_PERF_STACK_EVENTS_H
#define SND_NATIVE_PERF_STACK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/data/map.h"
#include "native/counters/program_counters.h"

#define SND_STACK_LEFT_OUT UINT32_MAX /* of a thread that is counted, but not recorded */

struct snd_event_sample {
    uint32_t tid, counter, stack;
    uint64_t event; /* one for each counter and processor */
    uint64_t period;
    uint64_t count;     /* that the event has counted in this thread */
    bool     has_count; /* else the period is taken */
};

/* Adds events to a stack; 0: it is not known. */
typedef void snd_stack_events_add(void *user, uint32_t stack, uint32_t counter, uint64_t samples,
                                  uint64_t events);

struct snd_thread_events; /* one thread that has been sampled */
struct snd_rest_share;    /* a stack's share of the events that were not sampled */

struct snd_stack_events {
    snd_stack_events_add     *add;
    void                     *user;
    struct snd_thread_events *threads; /* owned, as the next */
    struct snd_rest_share    *shares;
    uint32_t                  thread_count, thread_capacity, share_count, share_capacity;
    struct snd_map            by_tid, by_stack;           /* by counter and stack */
    uint64_t                  sampled[SND_COUNTERS_MOST]; /* events that samples stand for */
    uint64_t                  period[SND_COUNTERS_MOST];  /* of the latest sample of a counter */
    uint64_t                  samples[SND_COUNTERS_MOST];
};

void snd_stack_events_init(struct snd_stack_events *events, snd_stack_events_add *add, void *user);
/* Adds what it stands for. */
void snd_stack_events_sample(struct snd_stack_events       *events,
                             const struct snd_event_sample *sample);
/* It takes no more samples. */
void snd_stack_events_exit(struct snd_stack_events *events, uint32_t tid);
/* The end: `counted` has been counted of each counter, by all threads. Adds what was not sampled. */
void snd_stack_events_settle(struct snd_stack_events *events, const uint64_t *counted,
                             size_t counters);
void snd_stack_events_release(struct snd_stack_events *events);

#endif
