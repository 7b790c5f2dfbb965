/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/perf/perf_events.h - samples of other processes by perf_event_open(2), in rings of the kernel's.
 *
 * One ring per processor. An event counts the processor time of a process (or thread) and of all that
 * it starts; each period it writes a sample: where the thread is, its registers, the top of its stack.
 * Records of all rings come out in the order of their times. Likewise with other counters, which then
 * take a sample each time they rose by as much as gives SND_PERF_COUNTER_HZ a second.
 *
 * Layer: native. Threads: one.
 */
#ifndef SND_NATIVE_PERF_PERF_EVENTS_H
#define SND_NATIVE_PERF_PERF_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/data/map.h"
#include "native/counters/program_counters.h"
#include "native/perf/rate.h"

#define SND_PERF_COUNTER_HZ 4000u  /* as perf's */
#define SND_PERF_STACK_BYTES 8192u /* of the stack that a sample has at most, as perf's */

struct snd_perf_ring {
    int            fd; /* the first event of this processor; owned */
    int            cpu;
    uint8_t       *map;  /* owned: the control page, then the ring */
    const uint8_t *data; /* the ring, in the map */
    uint64_t       head, tail;
    uint64_t       next_ns; /* time of the record at tail */
    const uint8_t *next;    /* it, NULL: none up to head */
    uint8_t       *joined;  /* owned: a record that goes over the end of the ring */
};

struct snd_perf {
    struct snd_perf_ring *rings; /* owned */
    uint32_t              ring_count;
    int                  *events; /* owned: further events, whose records go to the rings */
    uint32_t              event_count, event_capacity;
    size_t                ring_bytes;
    bool                  is_late; /* when it was last emptied, a ring was more than half full */
    struct snd_rate       rate;    /* of the clock */
    struct snd_map fine; /* the ids of its events for threads that begin while that is fine */
    int           *fine_events; /* owned: those that are open */
    uint32_t       fine_count, fine_capacity;
    bool           on_exec;             /* begin when the process runs another program */
    bool           has_kernel;          /* time in the kernel is sampled, too, with its frames */
    bool           counts_lost;         /* snd_perf_lost() knows */
    bool           has_switches;        /* threads that leave their processor are sampled, too */
    struct snd_map switches;            /* the ids of those events */
    struct snd_counter_list counters;   /* that take samples, too */
    struct snd_map          counted;    /* the ids of their events, to their numbers in the list */
    bool                    has_counts; /* their samples have what was counted in the thread */
};

/* What is to be sampled. */
struct snd_perf_wanted {
    uint64_t period_ns; /* 0: by counters alone */
    bool     on_exec;
    bool     off_cpu; /* samples of threads that leave their processor, and when they come back */
    const struct snd_counter_list *counters; /* that take samples; NULL: none */
};

/*
 * Opens rings for the process or thread `pid`.
 * Errors: SONDE_E_UNSUPPORTED with the kernel's reason; SONDE_E_STATE: it has ended; SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_perf_open(struct snd_perf *perf, pid_t pid,
                                            const struct snd_perf_wanted *wanted,
                                            struct sonde_error           *err);
/* Is it the event of a thread that leaves its processor, not that of the clock? */
bool snd_perf_is_switch(const struct snd_perf *perf, uint64_t event);
/* Is it the event of a counter? Its number in the list. */
bool snd_perf_is_counter(const struct snd_perf *perf, uint64_t event, uint32_t *number);
/* How many words of counts follow the period in a sample of that event; the first is its count. */
size_t snd_perf_count_words(const struct snd_perf *perf, uint64_t event);
/* What each counter of the list has counted up to now, in all threads. */
void snd_perf_counted(const struct snd_perf *perf, uint64_t counted[SND_COUNTERS_MOST]);
/* Adds another thread to them. False: it has ended, or there are no more descriptors. */
bool snd_perf_add(struct snd_perf *perf, pid_t tid);
/*
 * Samples the thread, and threads that it starts, as often as the fine rate has it, too. False: it has ended, or there are
 * no more descriptors.
 */
bool snd_perf_add_fine(struct snd_perf *perf, pid_t tid);
/* Ends that, for all. */
void snd_perf_end_fine(struct snd_perf *perf);
/* Is it such an event? */
bool snd_perf_is_fine(const struct snd_perf *perf, uint64_t event);
/* Attached events begin to count. */
void snd_perf_enable(struct snd_perf *perf);
void snd_perf_disable(struct snd_perf *perf);
/* Records that found no room in a ring, up to now, of those events and all they were inherited to. The
 * kernel's LOST records tell the same, as soon as there is room again. 0 where it does not know. */
uint64_t snd_perf_lost(const struct snd_perf *perf);
void     snd_perf_close(struct snd_perf *perf);

/* Waits until a ring is partly full, `other` can be read, or the time is over. True: `other` can. */
bool snd_perf_wait(const struct snd_perf *perf, int other, int timeout_ms);

/*
 * Calls `take` with every record up to `until_ns` (CLOCK_MONOTONIC), in order. The record is valid
 * for the call.
 */
typedef void snd_perf_take(void *user, const struct perf_event_header *record, uint64_t ns);
void snd_perf_drain(struct snd_perf *perf, uint64_t until_ns, snd_perf_take *take, void *user);

/* Which registers a sample has, and the size of what follows the fixed part. */
#if defined(__aarch64__)
#define SND_PERF_REGISTERS (((uint64_t)1 << 33) - 1)
#else
#define SND_PERF_REGISTERS ((uint64_t)0xff01ff)
#endif

#endif
