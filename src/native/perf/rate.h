/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/perf/rate.h - how often threads are sampled: more often while threads that live for a few periods have much of
 * the time.
 *
 * A thread has its first sample after a whole period, so that what is shorter has none; the kernel cannot draw the first
 * one at random. So a program that is seen to spend much of its time in such threads has those that begin from then on
 * sampled SND_RATE_FINER times as often. A young thread keeps all of these samples, each with the time that it stands
 * for; of one that has grown older, one for each period that was asked for is kept. A program without short-lived threads
 * is never sampled more often than that, nor is one whose samples come faster than they are taken out of the rings.
 *
 * Layer: native. Threads: one.
 */
#ifndef SND_NATIVE_PERF_RATE_H
#define SND_NATIVE_PERF_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define SND_RATE_FINER 8u
#define SND_RATE_YOUNG 32u /* periods: for so long a thread keeps all of its samples */

struct snd_rate {
    uint64_t whole_ns; /* the period that was asked for; 0: the clock does not sample */
    uint64_t fine_ns;  /* of threads that begin while it is fine */
    bool     is_fine;
    uint32_t turn;    /* how often it became so */
    uint32_t windows; /* of used time, for which it may not become so */
    /* Since it was last judged: used in all; by threads that are young, and more than is in whole periods. */
    uint64_t used_ns, short_ns;
};

/* What is known of one thread. */
struct snd_rate_thread {
    uint64_t sampled_ns; /* in samples that were kept */
    uint64_t held_ns;    /* in those since the last one that was kept */
    uint32_t turn;       /* in which it had fine samples; 0: none */
};

struct snd_rate snd_rate_begin(uint64_t period_ns);

/*
 * A sample of a thread, that stands for `period_ns`; how much of its time it is to be kept for. 0: it is not.
 * `is_fine`: by the events for threads that begin while it is so; then it needs none of the others.
 */
uint64_t snd_rate_sample(struct snd_rate *rate, struct snd_rate_thread *thread, uint64_t period_ns,
                         bool is_fine);

/* A thread has ended with that much of its time in no sample. */
void snd_rate_rest(struct snd_rate *rate, uint64_t ns);

/* Looks at what was used since the last time; true: is_fine has changed. `is_late`: the rings were nearly full. */
bool snd_rate_judge(struct snd_rate *rate, bool is_late);

#endif
