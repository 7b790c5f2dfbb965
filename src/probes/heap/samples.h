/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/samples.h - one allocation in many, so that the sums stay right.
 *
 * The bytes that a thread takes are a line, on which points lie at random, `period` bytes apart in the
 * mean (a Poisson process). An allocation is sampled if a point lies in it: of size s, with the
 * probability p = 1 - exp(-s / period). It then stands for 1 / p allocations and s / p bytes, which
 * makes every sum unbiased; the variance of its bytes is s * s * (1 - p) / p / p.
 */
#ifndef SND_PROBES_HEAP_SAMPLES_H
#define SND_PROBES_HEAP_SAMPLES_H

#include "probes/heap/account.h"

void snd_heap_samples_init(uint64_t period);

/* The point was reached: places the next. False: there was none, this is the thread's first call. */
bool                   snd_heap_sample_begin(void);
struct snd_heap_weight snd_heap_sample_weight(size_t size);

/* The live samples, by address. */
bool     snd_heap_sample_put(const void *block, uint32_t stack, struct snd_heap_weight weight);
uint32_t snd_heap_sample_take(const void *block, struct snd_heap_weight *weight); /* 0: none */

/* Held around a fork. */
void snd_heap_samples_lock(void);
void snd_heap_samples_unlock(void);

#endif
