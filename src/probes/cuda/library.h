/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/library.h - CUPTI and the driver's library, found and opened at run time.
 *
 * Layer:   probes.
 * Threads: one at a time (cuda_session.c's lock); what is open stays so.
 */
#ifndef SND_PROBES_CUDA_LIBRARY_H
#define SND_PROBES_CUDA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "probes/cuda/cupti.h"

/* Functions of libcuda.so.1 by which we ask of devices and wait for them. CUresult 0 is success. */
#define CUDA_FUNCTIONS(CUDA_CALL)                                 \
    CUDA_CALL(cuDriverGetVersion, int *)                          \
    CUDA_CALL(cuDeviceGetCount, int *)                            \
    CUDA_CALL(cuDeviceGet, int *, int)                            \
    CUDA_CALL(cuDeviceGetName, char *, int, int)                  \
    CUDA_CALL(cuDeviceTotalMem_v2, size_t *, int)                 \
    CUDA_CALL(cuDeviceGetAttribute, int *, int, int)              \
    CUDA_CALL(cuDevicePrimaryCtxGetState, int, unsigned *, int *) \
    CUDA_CALL(cuDevicePrimaryCtxRetain, void **, int)             \
    CUDA_CALL(cuDevicePrimaryCtxRelease_v2, int)                  \
    CUDA_CALL(cuCtxGetCurrent, void **)                           \
    CUDA_CALL(cuCtxPushCurrent_v2, void *)                        \
    CUDA_CALL(cuCtxPopCurrent_v2, void **)                        \
    CUDA_CALL(cuCtxSynchronize, void)
struct cuda_driver {
#define CUDA_MEMBER(name, ...) int (*name)(__VA_ARGS__);
    CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* The open libraries: valid once snd_cupti_open() has returned true. */
extern struct cupti       snd_cupti;
extern struct cuda_driver snd_driver; /* members are NULL where there is no driver's library */

/*
 * Opens SONDE_CUPTI if that is set; else the libcupti that the process has; else `path`, if any;
 * else the one beside the CUDA runtime that the process has; else the toolkit's.
 * False: `why` has the reason, in one line.
 */
bool snd_cupti_open(const char *path, char *why, size_t size);

/*
 * Whether the open library can serve this process, whose CUDA runtime has this version (13000; 0: not known).
 * One that is two generations older does not know the runtime's calls, and crashes.
 */
bool snd_cupti_suits(int runtime, char *why, size_t size);

/* Of the open library. */
uint32_t    snd_cupti_version(void);
const char *snd_cupti_path(void);

/* "CUPTI_ERROR_..: what that means and what to do", for messages. */
void snd_cupti_explain(uint32_t result, char *text, size_t size);

#endif
