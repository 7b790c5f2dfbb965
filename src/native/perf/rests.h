/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/perf/rests.h - processor time that is in no sample.
 *
 * A thread is sampled each time that it has used another period: what it uses after the last time, and
 * all of a thread that ends before the first, is in no stack. The kernel tells how much each thread that
 * ends has used. What is left, unless it is little beside the rest, is written as a sample of that
 * duration whose one frame says what it is, so that times add up to those of the processes.
 *
 * Layer: native. Threads: one.
 */
#ifndef SND_NATIVE_PERF_RESTS_H
#define SND_NATIVE_PERF_RESTS_H

#include "native/drain.h"

/* A thread has ended; its total CPU time is recorded later. */
void snd_rests_exit(struct snd_drain *drain, struct snd_seen_thread *thread,
                    const struct snd_seen_process *process, bool samples_itself, uint64_t ns);

/* PERF_RECORD_READ: what one of its events has counted, one for each processor. */
void snd_rests_read(struct snd_drain *drain, const struct perf_event_header *record);

#endif
