/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/energy.h - the energy that a GPU has used, by its own counter (NVML, which comes with
 * the driver).
 *
 * Layer:   probes.
 * Threads: any.
 */
#ifndef SND_PROBES_CUDA_ENERGY_H
#define SND_PROBES_CUDA_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Of the GPU with this UUID ("GPU-..."): NVML may number GPUs in another order than CUDA, or show
 * more of them. False: there is no NVML, it does not know the GPU, or the GPU has no counter.
 */
bool snd_gpu_energy(const char *uuid, uint64_t *microjoules);

#endif
