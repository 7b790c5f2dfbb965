/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpu/torch_gpu.h - what torch's lists say of a GPU, for averages and events.
 *
 * torch gives a kernel, copy or fill to the innermost operator that was open when its API call was made:
 * not to the call, nor to a range that a person named. Such a range has an event of its own on
 * each stream instead, from the first to the last piece of work that was asked for while it was the
 * innermost one ("annotation"). What the profiling of the GPU itself took ("overhead") lies among the
 * ranges of the process's first thread, by time. Memory: snd_share_memory() of assembly.h.
 *
 * A consumer calls snd_torchgpu_call() for the attribute API and snd_torchgpu_close() for each range.
 *
 * Layer: model (sees base/, format/, read/). Threads: one at a time.
 */
#ifndef SND_MODEL_GPU_TORCH_GPU_H
#define SND_MODEL_GPU_TORCH_GPU_H

#include "base/data/map.h"
#include "model/ranges/assembly.h"

#define SND_NO_LAUNCH UINT32_MAX
#define SND_OF_DRIVER 0x8000u /* in the number of a function: not of the runtime */

/* The number by which events and exports know a function, from the attribute API. */
static inline uint32_t snd_api_function(uint64_t api)
{
    return SND_API_FUNCTION(api) | (SND_API_IS_DRIVER(api) ? SND_OF_DRIVER : 0);
}

/* Which call launched a piece of work. */
struct snd_torch_launch {
    uint32_t thread; /* of the call; SND_NO_LAUNCH: the call is not in the trace */
    uint32_t owner;  /* `node` of the operator; SND_NO_LAUNCH: none */
};

/* A person's range as a stream saw it. */
struct snd_annotation {
    int64_t  start_ns, end_ns;
    uint32_t process, thread, queue;
    uint32_t name, node; /* of the range: a number in trace->names; the consumer's */
};

/* Time of the host that went into the profiling of a GPU. */
struct snd_overhead {
    int64_t  start_ns, end_ns;
    int64_t  inside_ns; /* of ranges that lie in it */
    uint32_t process, thread;
    uint32_t name;  /* a number in trace->names */
    uint32_t owner; /* `node` of the range that contains it; SND_NO_LAUNCH: none */
    bool     claimed;
};

struct snd_torch_gpu {
    struct sonde_trace       *trace;
    const struct snd_devices *devices;  /* NULL: nothing of a GPU in the trace */
    struct snd_torch_launch  *launches; /* of each item of `devices` ... */
    struct snd_paged          pages;    /* ... and what they are in */
    struct snd_annotation    *annotations;
    struct snd_overhead      *overheads; /* by process and start */
    uint32_t                  annotation_count, annotation_room, overhead_count, overhead_room;
    struct snd_map            by_range; /* (thread, the range's serial, queue) to annotations */
    bool                      failed;   /* memory ran out */
};

/* Errors: SONDE_E_NOMEM, and those of snd_trace_devices(). */
SND_CHECKED enum sonde_status
snd_torchgpu_begin(struct snd_torch_gpu *gpu, struct sonde_trace *trace, struct sonde_error *err);
void snd_torchgpu_release(struct snd_torch_gpu *gpu);

/* The innermost open range of the lane is a call of a GPU's API. */
void snd_torchgpu_call(struct snd_torch_gpu *gpu, struct snd_lane *lane,
                       const struct snd_open_range *call);
/* The operator that torch gives what is launched now to; NULL: none. */
const struct snd_open_range *snd_torchgpu_owner(const struct snd_lane *lane);
/*
 * A range closes: what was launched in it is added to its parent; overhead in it becomes its child.
 * True: it has such children.
 */
bool snd_torchgpu_close(struct snd_torch_gpu *gpu, const struct snd_lane *lane,
                        struct snd_open_range *range, struct snd_open_range *parent);

#endif
