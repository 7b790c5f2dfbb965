/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/counts/heap_samples.h - one allocation in many, so that the sums stay right.
 *
 * The bytes that a thread allocates form a line, with random points on it, `period` bytes apart on
 * average (a Poisson process). An allocation of s bytes takes l = s + 1 of the line, and is sampled
 * if a point lies in it: with the probability p = 1 - exp(-l / period). It then stands for 1 / p
 * allocations and s / p bytes, which makes every sum unbiased; the variance of its bytes is
 * s * s * (1 - p) / p / p.
 */
#ifndef SND_PROBES_HEAP_COUNTS_HEAP_SAMPLES_H
#define SND_PROBES_HEAP_COUNTS_HEAP_SAMPLES_H

#include "probes/heap/counts/account.h"

void snd_heap_samples_init(uint64_t period);

/*
 * An allocation did not pass: there is a point in it. Places the next, after it. False: this is the
 * thread's first call, and the first point lies behind it.
 */
bool                   snd_heap_sample_begin(size_t size);
struct snd_heap_weight snd_heap_sample_weight(size_t size);

/* The live samples, by address. */
bool     snd_heap_sample_put(const void *block, uint32_t stack, struct snd_heap_weight weight);
uint32_t snd_heap_sample_take(const void *block, struct snd_heap_weight *weight); /* 0: none */

/* Held around a fork. */
void snd_heap_samples_lock(void);
void snd_heap_samples_unlock(void);

#endif
