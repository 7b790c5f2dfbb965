/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/gpu_clock.h - CUPTI's clock laid on the recorder's.
 *
 * CUPTI gives the times of all GPUs in nanoseconds of one clock of its own, which it disciplines
 * against the host's. Pairs (its clock, ours) are taken when the probe starts, whenever CUPTI hands
 * over a buffer and before the probe stops: each work lies between two of them, and is placed by
 * them.
 *
 * Layer:   probes.
 * Threads: snd_gpuclock_read() any; the others one at a time (works.c's lock).
 */
#ifndef SND_PROBES_CUDA_GPU_CLOCK_H
#define SND_PROBES_CUDA_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct snd_gpuclock_pair {
    uint64_t gpu_ns, ticks;
};

/* The tightest of several readings; false: CUPTI gave none. Waits for none of our locks. */
bool snd_gpuclock_read(struct snd_gpuclock_pair *pair);

void snd_gpuclock_reset(void);
void snd_gpuclock_add(const struct snd_gpuclock_pair *pair);

/* In ticks of sonde_clock(), interpolated between the pairs around it, or extrapolated. */
uint64_t snd_gpuclock_ticks(uint64_t gpu_ns);

/* A number of ticks in nanoseconds. */
uint64_t snd_gpuclock_ns(uint64_t ticks);

#endif
