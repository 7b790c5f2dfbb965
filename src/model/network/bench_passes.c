/* SPDX-License-Identifier: Apache-2.0 */
#include "model/network/bench_passes.h"

#include <string.h>

#include "base/count_of.h"
#include "format/known.h"
#include "sonde/model.h"

bool snd_is_pass(const char *name)
{
    static const enum snd_known passes[] = { SND_KNOWN_MODEL_PASS, SND_KNOWN_MODEL_TRAIN };

    for (size_t i = 0; i < SND_COUNT_OF(passes); i++)
        if (strncmp(name, snd_known_name(passes[i]), strlen(snd_known_name(passes[i]))) == 0)
            return true;
    return false;
}

uint64_t sonde_averages_passes(const struct sonde_averages *averages)
{
    uint64_t passes = 0;

    for (size_t i = 0; i < sonde_averages_count(averages); i++) {
        struct sonde_average row = sonde_averages_get(averages, i);
        if (snd_is_pass(row.name.bytes))
            passes += row.count;
    }
    return passes < INT32_MAX ? passes : 0;
}

struct sonde_average sonde_average_of_pass(const struct sonde_average *row, uint64_t passes)
{
    struct sonde_average mean = *row;

    if (passes < 2)
        return mean;
    int64_t *const numbers[] = { &mean.total_ns,       &mean.self_ns,       &mean.cpu_bytes,
                                 &mean.self_cpu_bytes, &mean.device_bytes,  &mean.self_device_bytes,
                                 &mean.device_ns,      &mean.self_device_ns };
    for (size_t i = 0; i < SND_COUNT_OF(numbers); i++)
        *numbers[i] /= (int64_t)passes;
    mean.count = (row->count + passes / 2) / passes;
    mean.flops /= (double)passes;
    mean.macs /= (double)passes;
    mean.moved_bytes /= (double)passes;
    return mean;
}
