/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/work_names.h - ids of kernels' names, of works and of streams, found again quickly.
 *
 * Names are those that torch.profiler shows: demangled by the C++ library of the process; of copies,
 * fills and overhead, made of CUPTI's kinds.
 *
 * Layer:   probes.
 * Threads: one at a time (works.c's lock).
 */
#ifndef SND_PROBES_CUDA_WORK_NAMES_H
#define SND_PROBES_CUDA_WORK_NAMES_H

#include <stdint.h>

#include "sonde/record.h"

/* Forgets all ids: those of another epoch mean nothing. */
void snd_worknames_renew(void);

uint32_t snd_kernel_name(const char *mangled);
uint32_t snd_copy_name(uint32_t copy, uint32_t source, uint32_t target);
uint32_t snd_fill_name(uint32_t memory);
uint32_t snd_overhead_name(uint32_t kind);

uint32_t snd_work_id(const struct sonde_work *work);
uint32_t snd_queue_id(uint32_t device, uint32_t context, uint32_t stream);

#endif
