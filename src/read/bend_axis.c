/* SPDX-License-Identifier: Apache-2.0 */
/* read/bend_axis.c - times of a process moved, when more is known of its host's clock than its file says. */
#include "read/reader.h"
#include "read/walk/device_work.h"

#define TURN_MAX \
    500 /* ns that pass for each that is added: times stay in order, and can be found again */

static int64_t limit_turn(int64_t passed_ns, int64_t added_ns)
{
    int64_t most = passed_ns / TURN_MAX;

    return added_ns > most ? most : added_ns < -most ? -most : added_ns;
}

static void move(int64_t *ns, int64_t by_ns)
{
    if (snd_time_is_sane(*ns)) /* a process without threads has no begin */
        *ns = snd_time_clamp(snd_add(*ns, by_ns));
}

static void bend(const struct snd_scale *scale, int64_t *ns)
{
    move(ns, snd_scale_added(scale, *ns));
}

bool snd_axis_bend(struct sonde_trace *trace, uint32_t process, const struct snd_scale_bend *bends,
                   uint32_t count)
{
    struct snd_process    *p = &trace->processes[process];
    struct snd_scale_bend *own = snd_arena_take(&trace->arena, (count + 1) * sizeof *own);
    uint32_t               kept = 0;

    if (!own)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (kept > 0 && bends[i].at_ns <= own[kept - 1].at_ns)
            continue;
        own[kept] = bends[i];
        if (kept > 0)
            own[kept].add_ns = snd_add(own[kept - 1].add_ns,
                                       limit_turn(snd_sub(own[kept].at_ns, own[kept - 1].at_ns),
                                                  snd_sub(own[kept].add_ns, own[kept - 1].add_ns)));
        kept++;
    }
    p->scale.bends = own;
    p->scale.bend_count = kept;
    if (kept == 0)
        return true;
    bend(&p->scale, &p->shown.start_ns);
    bend(&p->scale, &p->shown.stop_ns);
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        struct sonde_thread *thread = &trace->threads[i].shown;
        if (thread->process != process)
            continue;
        bend(&p->scale, &thread->start_ns);
        bend(&p->scale, &thread->stop_ns);
    }
    return true;
}

static void shift_bends(struct snd_scale *scale, int64_t by_ns)
{
    struct snd_scale_bend *bends = (struct snd_scale_bend *)scale->bends; /* made above */

    for (uint32_t i = 0; i < scale->bend_count; i++)
        bends[i].at_ns = snd_add(bends[i].at_ns, by_ns);
}

void snd_axis_begin_again(struct sonde_trace *trace)
{
    int64_t zero = INT64_MAX;

    for (uint32_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].shown.start_ns < zero)
            zero = trace->processes[i].shown.start_ns;
    int64_t by_ns = snd_sub(0, zero);
    for (uint32_t i = 0; i < trace->process_count; i++) {
        struct snd_process *p = &trace->processes[i];
        p->scale.ns0 = snd_add(p->scale.ns0, by_ns);
        shift_bends(&p->scale, by_ns);
        move(&p->shown.start_ns, by_ns);
        move(&p->shown.stop_ns, by_ns);
    }
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        move(&trace->threads[i].shown.start_ns, by_ns);
        move(&trace->threads[i].shown.stop_ns, by_ns);
    }
    snd_devices_free(trace->devices);
    trace->devices = NULL;
}
