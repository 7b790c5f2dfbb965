/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gpu/occupancy.h"

#include "read/said/trace_facts.h"

const char *const snd_limit_words[SND_LIMITS] = {
    [SND_LIMIT_NONE] = "",
    [SND_LIMIT_THREADS] = "threads",
    [SND_LIMIT_REGISTERS] = "registers",
    [SND_LIMIT_SHARED] = "shared memory",
    [SND_LIMIT_BLOCKS] = "blocks",
};

bool snd_gpu_limits(const struct sonde_trace *trace, uint32_t process, uint32_t device,
                    struct snd_gpu_limits *l)
{
    const struct snd_fact *fact;
    uint32_t               at = 0;

    while ((fact = snd_fact_next(trace, process, SND_FACT_OF_DEVICE, &at)))
        if (fact->number == SND_DEVICE_INDEX(device) + 1)
            break;
    *l = (struct snd_gpu_limits){ .name = { "", 0 } };
    if (!fact)
        return false;
#define NUMBER(field) (uint32_t) snd_fact_number(fact, SND_FIELD_DEVICE_##field, 0)
    l->capability_major = NUMBER(CAPABILITY_MAJOR);
    l->capability_minor = NUMBER(CAPABILITY_MINOR);
    l->sms = NUMBER(SMS);
    l->warp = NUMBER(WARP);
    l->threads_per_sm = NUMBER(THREADS_PER_SM);
    l->registers_per_sm = NUMBER(REGISTERS_PER_SM);
    l->registers_per_block = NUMBER(REGISTERS_PER_BLOCK);
    l->shared_per_sm = NUMBER(SHARED_PER_SM);
    l->shared_reserved = NUMBER(SHARED_RESERVED);
    l->blocks_per_sm = NUMBER(BLOCKS_PER_SM);
#undef NUMBER
    l->name = snd_fact_text(fact, SND_FIELD_DEVICE_NAME);
    return true;
}

/* Registers are handed out to warps in such pieces, and lie in such parts of a multiprocessor. */
#define REGISTER_PIECE 256u
#define SHARED_PIECE_BEFORE_8 256u
#define SHARED_PIECE 128u

static uint64_t round_up(uint64_t value, uint64_t piece)
{
    return (value + piece - 1) / piece * piece;
}

static uint64_t blocks_by_registers(const struct snd_gpu_limits *l, uint64_t registers,
                                    uint64_t warps)
{
    uint64_t parts = l->capability_major == 6 && l->capability_minor == 0 ? 2 : 4;
    uint64_t of_warp = round_up(registers * l->warp, REGISTER_PIECE);

    if (registers == 0 || l->registers_per_sm == 0)
        return UINT32_MAX;
    if (l->registers_per_block && of_warp * round_up(warps, parts) > l->registers_per_block)
        return 0;
    return l->registers_per_sm / parts / of_warp * parts / warps;
}

static uint64_t blocks_by_shared(const struct snd_gpu_limits *l, uint64_t asked)
{
    uint64_t piece = l->capability_major < 8 ? SHARED_PIECE_BEFORE_8 : SHARED_PIECE;
    uint64_t taken = round_up(asked + l->shared_reserved, piece);

    return taken == 0 || l->shared_per_sm == 0 ? UINT32_MAX : l->shared_per_sm / taken;
}

bool snd_occupancy(const struct snd_gpu_limits *l, const struct snd_work_record *work,
                   struct snd_occupancy *out)
{
    uint64_t threads = (uint64_t)work->block[0] * work->block[1] * work->block[2];

    *out = (struct snd_occupancy){ 0 };
    if (work->kind != SND_WORK_KERNEL || threads == 0 || threads > UINT32_MAX || l->warp == 0 ||
        l->threads_per_sm < l->warp)
        return false;
    uint64_t warps = round_up(threads, l->warp) / l->warp;
    uint64_t by[SND_LIMITS] = {
        [SND_LIMIT_THREADS] = l->threads_per_sm / l->warp / warps,
        [SND_LIMIT_REGISTERS] = blocks_by_registers(l, work->registers, warps),
        [SND_LIMIT_SHARED] = blocks_by_shared(l,
                                              (uint64_t)work->shared_static + work->shared_dynamic),
        [SND_LIMIT_BLOCKS] = l->blocks_per_sm ? l->blocks_per_sm : UINT32_MAX,
    };
    enum snd_occupancy_limit least = SND_LIMIT_THREADS;
    for (int i = SND_LIMIT_REGISTERS; i < SND_LIMITS; i++)
        if (by[i] < by[least])
            least = (enum snd_occupancy_limit)i;
    out->blocks = (uint32_t)by[least];
    out->limit = least;
    uint64_t most_warps = l->threads_per_sm / l->warp;
    out->percent = 100.0 * (double)(by[least] * warps) / (double)most_warps;
    return true;
}
