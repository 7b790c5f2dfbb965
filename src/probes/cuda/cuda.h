/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/cuda.h - what CUDA programs do, turned into marks of <sonde/record.h>.
 *
 * A library of its own (sonde/_native/probe_cuda.so), in C, without CUDA's headers: it opens the
 * libcupti that the program has. `sonde run --gpu` has CUDA load it (CUDA_INJECTION64_PATH), and
 * sonde.profile(activities=[.., CUDA]) opens it. docs/GPU.md says what is recorded.
 *
 *   kernels, copies, fills, CUPTI's overhead: events DEVICE, with what is constant as WORK and QUEUE
 *   calls of the runtime, launches of the driver: ranges with the attribute API; not with `light`
 *   the devices: facts; what was read, dropped and could not be placed: the tally GPU
 *   NVTX: ranges and marks, where NVTX_INJECTION64_PATH names this library
 *
 * Layer:   probes (sees <sonde/record.h>, format/).
 * Threads: any.
 */
#ifndef SND_PROBES_CUDA_CUDA_H
#define SND_PROBES_CUDA_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sonde/error.h"

struct sonde_cuda_options {
    size_t      struct_size; /* sizeof(struct sonde_cuda_options) */
    const char *cupti;       /* where a libcupti is, if the process has none loaded; or NULL */
    bool        share;       /* no other profiler records now: its callbacks may be in the way */
    bool        light;       /* works alone, without the calls that ask for them */
};

/*
 * 0; or -1 with one line in sonde_cuda_error(), which the trace says too. 1: works are recorded,
 * but not the calls that ask for them, since another profiler has CUPTI's callbacks; said there
 * too. Starts may be nested: the first decides whether calls are recorded, the last stop ends it.
 */
SONDE_API int sonde_cuda_start(const struct sonde_cuda_options *options);

/* Waits for the GPUs' work and records it, then restores CUPTI's settings. */
SONDE_API void sonde_cuda_stop(void);

/* Another profiler has used CUPTI meanwhile: registers our buffer callbacks again, if we are on. */
SONDE_API void sonde_cuda_again(void);

/* Why the latest start failed, or what is missing, or "". */
SONDE_API const char *sonde_cuda_error(void);

/* What is on, and how, as JSON. */
SONDE_API const char *sonde_cuda_describe(void);

/* For `sonde doctor`: 0 and what there is, or -1 and why nothing can be recorded. */
SONDE_API int sonde_cuda_check(char *text, size_t size);

/* Called by CUDA's driver (CUDA_INJECTION64_PATH). 1: success; the program goes on either way. */
SONDE_API int InitializeInjection(void);

/* Called by NVTX (NVTX_INJECTION64_PATH), in any program that uses it. 1: its ranges are recorded. */
SONDE_API int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));

#endif
