/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/rank_memory.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "format/known.h"
#include "format/layout.h"

bool snd_rank_memory_init(struct snd_rank_memory *m, const struct sonde_trace *trace)
{
    *m = (struct snd_rank_memory){ .trace = trace };
    m->processes = calloc((size_t)trace->process_count + 1, sizeof *m->processes);
    return m->processes != NULL;
}

void snd_rank_memory_release(struct snd_rank_memory *m)
{
    snd_live_release(&m->live);
    snd_map_release(&m->index);
    free(m->gpus);
    free(m->processes);
}

static struct snd_rank_gpu_memory *find_gpu(struct snd_rank_memory *m, uint32_t process,
                                            uint32_t device)
{
    struct snd_key key = { process, device, 0 };
    uint32_t       at;

    if (snd_map_get(&m->index, key, &at))
        return &m->gpus[at];
    if (!snd_grow(&m->gpus, &m->gpu_room, m->gpu_count, sizeof *m->gpus) ||
        !snd_map_put(&m->index, key, m->gpu_count)) {
        m->failed = true;
        return NULL;
    }
    m->gpus[m->gpu_count] = (struct snd_rank_gpu_memory){ 0, false };
    return &m->gpus[m->gpu_count++];
}

static void add(int64_t *sum, int64_t bytes)
{
    *sum = snd_add(*sum, bytes);
}

static void change_held(struct snd_rank_memory *m, uint32_t process, const uint64_t *words)
{
    struct snd_rank_process_memory *p = &m->processes[process];
    struct snd_live_change          change = snd_live_event(&m->live, process, words);
    uint32_t                        device = SND_LOW(words[1]);

    m->failed |= m->live.failed;
    if (SND_DEVICE_TYPE(device) == 0) {
        p->has_cpu = true;
        add(&p->now[SND_HELD_CPU], change.held);
        return;
    }
    struct snd_rank_gpu_memory *gpu = find_gpu(m, process, device);
    bool    is_older = SND_EVENT_KIND(words[0]) != SND_EV_ALLOC && change.held == 0;
    int64_t bytes = is_older ? change.counted : change.held;
    p->has_gpu = true;
    add(&p->now[SND_HELD_GPU], change.held);
    add(&p->now[SND_HELD_GPU_WHOLE], bytes);
    if (gpu)
        add(&gpu->whole, bytes);
}

/* The allocator's own sum, after the latest event: what of it the trace does not have is older. */
static void note_allocated(struct snd_rank_memory *m, uint32_t process, const uint64_t *words)
{
    uint32_t    name = snd_name_of(&m->trace->processes[process], SND_LOW(words[1]));
    const char *known = snd_known_name(SND_KNOWN_DEVICE_ALLOCATED);
    size_t      length = strlen(known);
    double      value;

    if (name == UINT32_MAX || m->trace->names.items[name].length <= length ||
        memcmp(m->trace->names.items[name].bytes, known, length) != 0)
        return;
    uint32_t number = (uint32_t)strtoul(m->trace->names.items[name].bytes + length, NULL, 10);
    memcpy(&value, &words[2], sizeof value);
    if (number >= 0xffff || !(value >= 0 && value < 0x1p62))
        return;
    struct snd_rank_gpu_memory *gpu = find_gpu(m, process, SND_DEVICE(1, number));
    if (!gpu || gpu->has_before)
        return;
    gpu->has_before = true;
    m->processes[process].has_before = m->processes[process].has_gpu = true;
    add(&m->processes[process].before, snd_sub((int64_t)value, gpu->whole));
}

void snd_rank_memory_event(struct snd_rank_memory *m, uint32_t process, const uint64_t *words)
{
    if (SND_EVENT_KIND(words[0]) == SND_EV_COUNTER)
        note_allocated(m, process, words);
    else
        change_held(m, process, words);
}

void snd_rank_memory_raise(const struct snd_rank_memory *m, uint32_t process,
                           int64_t peaks[static SND_HELD_KINDS])
{
    for (enum snd_rank_held kind = 0; kind < SND_HELD_KINDS; kind++)
        if (m->processes[process].now[kind] > peaks[kind])
            peaks[kind] = m->processes[process].now[kind];
}

int64_t snd_rank_memory_peak(const struct snd_rank_memory *m, uint32_t process,
                             const int64_t peaks[static SND_HELD_KINDS])
{
    const struct snd_rank_process_memory *p = &m->processes[process];

    if (p->has_before)
        return snd_add(p->before, peaks[SND_HELD_GPU_WHOLE]);
    if (p->has_gpu)
        return peaks[SND_HELD_GPU];
    return p->has_cpu ? peaks[SND_HELD_CPU] : -1;
}
