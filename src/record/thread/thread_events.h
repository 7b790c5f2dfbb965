/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/thread_events.h - a thread's own events of perf_event_open(2): what getrusage(2) does not count.
 *
 * Each thread opens its own when it first reads them. One of the processor is read from its mapped page
 * (pmc_page.h) and needs no descriptor from then on; another keeps one, with a high number, which is asked
 * for its event's id before it is read, since the program may have closed it and opened a file in its place.
 *
 * Layer: record. Threads: each has its own.
 */
#ifndef SND_RECORD_THREAD_THREAD_EVENTS_H
#define SND_RECORD_THREAD_THREAD_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define SND_EVENTS_MOST 8u

/* What is to be counted, as format/run/named_counters.def has it. Set before the first thread reads. */
struct snd_event_asked {
    uint32_t type;
    uint64_t config;
    bool     user, kernel; /* neither: both, or user mode where no more is permitted */
};

/* The next one's number; UINT32_MAX: there are SND_EVENTS_MOST already. */
uint32_t snd_events_ask(const struct snd_event_asked *asked);
uint32_t snd_events_count(void);

/*
 * What the calling thread's events rose by since it opened them, by number, scaled where they took
 * turns. An event that could not be opened is 0, and counted as absent.
 */
void snd_events_read(uint64_t *values);

/* Closes what the calling thread has open. */
void snd_events_end(void);

/* Words of the tally COUNTERS_READ: events that were opened, absent, scaled. NULL: not counted. */
void snd_events_tell(uint64_t *words);

#endif
