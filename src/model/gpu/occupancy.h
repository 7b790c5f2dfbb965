/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpu/occupancy.h - how many warps of a kernel a multiprocessor can hold at once.
 *
 * The rules are those of NVIDIA's cuda_occupancy.h (docs/GPU.md has them): blocks at once are limited
 * by threads, registers, shared memory and the number of blocks; the least decides.
 *
 * Layer: model. Threads: any.
 */
#ifndef SND_MODEL_GPU_OCCUPANCY_H
#define SND_MODEL_GPU_OCCUPANCY_H

#include "format/layout.h"
#include "sonde/trace.h"

/* Resources of a GPU's multiprocessor: the fact DEVICE. Zero: not recorded. */
struct snd_gpu_limits {
    uint32_t          capability_major, capability_minor;
    uint32_t          sms, warp, threads_per_sm, registers_per_sm, registers_per_block;
    uint64_t          shared_per_sm, shared_reserved;
    uint32_t          blocks_per_sm;
    struct sonde_text name; /* empty: not told */
};

/* Of the GPU `device` (SND_DEVICE) of a process; false: the trace does not describe it. */
bool snd_gpu_limits(const struct sonde_trace *trace, uint32_t process, uint32_t device,
                    struct snd_gpu_limits *limits);

enum snd_occupancy_limit {
    SND_LIMIT_NONE,
    SND_LIMIT_THREADS,
    SND_LIMIT_REGISTERS,
    SND_LIMIT_SHARED,
    SND_LIMIT_BLOCKS,
    SND_LIMITS,
};
extern const char *const snd_limit_words[SND_LIMITS];

struct snd_occupancy {
    uint32_t                 blocks;  /* of a multiprocessor at once */
    double                   percent; /* its warps that they are */
    enum snd_occupancy_limit limit;
};

/* False: the limits are not known, or the work is no kernel. */
bool snd_occupancy(const struct snd_gpu_limits *limits, const struct snd_work_record *work,
                   struct snd_occupancy *out);

#endif
