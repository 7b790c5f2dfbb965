/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/rank_memory.h - what each process holds at a moment of a walk by time: on the CPU, and on its GPUs.
 *
 * Of a GPU, what the allocator's own sums tell was in use before the recording belongs to it, as in the view memory.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_RANK_MEMORY_H
#define SND_MODEL_RANKS_RANK_MEMORY_H

#include "model/ranges/live_memory.h"
#include "read/reader.h"

/* Sums of a process. GPU_WHOLE: less what was freed of before the recording, so that, with that, it is all that is held. */
enum snd_rank_held { SND_HELD_CPU, SND_HELD_GPU, SND_HELD_GPU_WHOLE, SND_HELD_KINDS };

struct snd_rank_memory {
    const struct sonde_trace *trace;
    struct snd_live           live;
    struct snd_map            index; /* of gpus, by process and device */
    struct snd_rank_gpu_memory {
        int64_t whole;
        bool    has_before;
    } * gpus;
    uint32_t gpu_count, gpu_room;
    struct snd_rank_process_memory {
        int64_t now[SND_HELD_KINDS];
        int64_t before; /* the recording; on GPUs */
        bool    has_cpu, has_gpu, has_before;
    } * processes;
    bool failed; /* memory ran out */
};

/* False: no memory. Released by snd_rank_memory_release() in any case. */
bool snd_rank_memory_init(struct snd_rank_memory *memory, const struct sonde_trace *trace);
void snd_rank_memory_release(struct snd_rank_memory *memory);

/* An ALLOC, a FREE or a COUNTER of the process. */
void snd_rank_memory_event(struct snd_rank_memory *memory, uint32_t process, const uint64_t *words);

/* `peaks`, by kind, rise to what the process holds. */
void snd_rank_memory_raise(const struct snd_rank_memory *memory, uint32_t process,
                           int64_t peaks[static SND_HELD_KINDS]);
/* At the end of the walk: the one peak to show; -1: it held nothing that was recorded. */
int64_t snd_rank_memory_peak(const struct snd_rank_memory *memory, uint32_t process,
                             const int64_t peaks[static SND_HELD_KINDS]);

#endif
