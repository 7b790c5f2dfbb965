/* SPDX-License-Identifier: Apache-2.0 */
/* pipe/plan/plan_costs.c - what stages and transfers take, by PipeEdge's rules. */
#include <math.h>
#include <stdlib.h>

#include "pipe/plan/plan_search.h"

#define MB (1024.0 * 1024.0)

double snd_layer_bytes(const struct snd_pipeline *p, uint32_t layer)
{
    double values = layer == 0 ? p->parameters_in : p->parameters_out[layer - 1];

    return values * (double)p->value_bytes * (double)p->batch_size;
}

double snd_stage_memory_bytes(const struct snd_pipeline *p, double layers_mb, uint32_t first,
                              uint32_t last)
{
    double in = snd_layer_bytes(p, first - 1), out = snd_layer_bytes(p, last);
    double queues = out * (double)p->buffers_out + (first > 1 ? in * (double)p->buffers_in : 0);

    return layers_mb * MB + queues + in + out;
}

double snd_stage_memory_mb(const struct snd_pipeline *p, uint32_t first, uint32_t last)
{
    double sum = 0;

    for (uint32_t layer = first; layer <= last; layer++)
        sum += p->memory_mb[layer - 1];
    return snd_stage_memory_bytes(p, sum, first, last) / MB;
}

double snd_send_time(const struct snd_pipeline *p, uint32_t layer, double bandwidth_mbps)
{
    double bytes = snd_layer_bytes(p, layer);

    return bytes > 0 ? bytes / (bandwidth_mbps * MB / 8) : 0; /* by 0: never */
}

void snd_plan_fill_costs(const struct snd_pipeline *p, struct snd_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        struct snd_stage             *stage = &plan->stages[i];
        const struct snd_device_type *type = &p->types[stage->type];
        for (uint32_t layer = stage->first; layer <= stage->last; layer++)
            stage->compute_s += type->time_s[layer - 1];
        stage->memory_mb = snd_stage_memory_mb(p, stage->first, stage->last);
        if (i + 1 < plan->count) {
            const struct snd_device_type *next = &p->types[plan->stages[i + 1].type];
            stage->send_bytes = snd_layer_bytes(p, stage->last);
            stage->send_s = snd_send_time(p, stage->last,
                                          fmin(type->bandwidth_mbps, next->bandwidth_mbps));
        }
        if (i == 0 || stage->compute_s > plan->period_s) {
            plan->period_s = stage->compute_s;
            plan->slowest = i;
            plan->is_send = false;
        }
        if (stage->send_s > plan->period_s) {
            plan->period_s = stage->send_s;
            plan->slowest = i;
            plan->is_send = true;
        }
    }
}

enum sonde_status snd_plan_say_none(const struct snd_pipeline *p, struct sonde_error *err)
{
    double most = 0, hold = 0, need = 0;

    for (uint32_t t = 0; t < p->type_count; t++) {
        most = fmax(most, p->types[t].count > 0 ? p->types[t].memory_mb : 0);
        hold += p->types[t].memory_mb * p->types[t].count;
    }
    for (uint32_t i = 1; i <= p->layers; i++) {
        double alone = snd_stage_memory_mb(p, i, i);
        need += p->memory_mb[i - 1];
        if (alone >= most)
            return snd_fail(err, SONDE_E_STATE,
                            "no plan: layer %u alone needs %.6g MB with its buffers, and the "
                            "largest device has %.6g",
                            i, alone, most);
    }
    return snd_fail(err, SONDE_E_STATE,
                    "no plan: the layers need %.6g MB besides buffers, the devices have %.6g MB in "
                    "all, and no cut into stages fits them; add devices or take a smaller batch",
                    need, hold);
}

void snd_plan_release(struct snd_plan *plan)
{
    free(plan->stages);
    *plan = (struct snd_plan){ 0 };
}
