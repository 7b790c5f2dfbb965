/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranges/assemble.c - a walk for consumers: who is on its list, in which order it goes, by one thread or several. */
#include "model/ranges/open_ranges.h"
#include "read/walk/kinds.h"

void snd_wait(struct sonde_trace *trace, struct snd_consumer *consumer)
{
    struct snd_consumer **last = &trace->waiting;

    while (*last)
        last = &(*last)->next;
    *last = consumer;
    consumer->next = NULL;
}

void snd_wait_end(struct sonde_trace *trace, const struct snd_consumer *consumer)
{
    struct snd_consumer **at = &trace->waiting;

    while (*at && *at != consumer)
        at = &(*at)->next;
    if (*at)
        *at = consumer->next;
}

enum sonde_status snd_wait_walk(struct sonde_trace *trace, bool done, struct sonde_error *err)
{
    struct snd_assembly assembly;

    if (done)
        return SONDE_OK;
    enum sonde_status status = snd_assemble(&assembly, trace, SONDE_BY_THREAD, NULL, 0, err);
    snd_assembly_release(&assembly);
    return status;
}

/* Those whose FLOPs this walk counts; the others wait for another. */
static void list_waiting(struct snd_assembly *a, bool any_flops)
{
    struct snd_consumer **at = &a->trace->waiting;

    while (*at) {
        struct snd_consumer *one = *at;
        if (!one->any_flops && !any_flops && one->flops != a->flops_mode) {
            at = &one->next;
            continue;
        }
        if (!one->any_flops) {
            a->flops_mode = one->flops;
            any_flops = false;
        }
        snd_assembly_add(a, one);
        *at = one->next;
    }
}

/* The list of the walk: who waits at the trace comes first, before others change a range. */
static void list_consumers(struct snd_assembly *a, const struct snd_consumer *consumers,
                           uint32_t count)
{
    bool any_flops = true;

    a->by_process = count > 0;
    for (uint32_t i = 0; i < count; i++) {
        any_flops &= consumers[i].any_flops;
        a->by_process &= consumers[i].by_process;
        a->as_recorded |= consumers[i].as_recorded;
        if (!consumers[i].any_flops)
            a->flops_mode = consumers[i].flops;
    }
    if (!a->as_recorded)
        list_waiting(a, any_flops);
    for (uint32_t i = 0; i < count; i++)
        snd_assembly_add(a, &consumers[i]);
}

static bool looks_at_memory(const struct snd_assembly *a)
{
    SND_EACH_CONSUMER(a, c)
    if (c->memory)
        return true;
    return false;
}

/* A range may be ended, and memory freed, by another thread than the one that began or took it. */
static enum sonde_status choose_order(struct snd_assembly *a, enum sonde_order *order,
                                      struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       status = SONDE_OK;

    SND_EACH_CONSUMER(a, c)
    if (c->by_time) {
        *order = SONDE_BY_TIME;
        a->by_process = false;
    }
    if (*order == SONDE_BY_THREAD && a->trace->thread_count > 1) {
        status = snd_trace_kinds(a->trace, &kinds, err);
        if (status == SONDE_OK &&
            (kinds->crossing_end || (looks_at_memory(a) && kinds->events[SND_EV_FREE])))
            *order = SONDE_BY_TIME;
    }
    return status;
}

/* Walks in this thread, from the first event to the last. */
static enum sonde_status walk_undivided(struct snd_assembly *a, enum sonde_order order,
                                        struct sonde_error *err)
{
    enum sonde_status status = snd_assembly_prepare(a, err);

    if (status == SONDE_OK)
        SND_EACH_CONSUMER(a, c)
    if (c->begin)
        c->begin(c->user, a);
    if (status == SONDE_OK)
        status = snd_walk(a->trace, order, &a->visitor, &a->stats.walk, err);
    if (status == SONDE_OK && !a->visitor.stop)
        snd_assembly_close_all(a);
    if (status == SONDE_OK && a->out_of_memory)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for what the trace holds");
    return status;
}

enum sonde_status snd_assemble(struct snd_assembly *a, struct sonde_trace *trace,
                               enum sonde_order order, const struct snd_consumer *consumers,
                               uint32_t count, struct sonde_error *err)
{
    bool done = false;

    *a = (struct snd_assembly){ .trace = trace };
    list_consumers(a, consumers, count);
    enum sonde_status status = choose_order(a, &order, err);
    if (status == SONDE_OK && order == SONDE_BY_THREAD)
        status = snd_assembly_divide(a, &done, err);
    if (status == SONDE_OK && !done)
        status = walk_undivided(a, order, err);
    if (status == SONDE_OK && !a->visitor.stop)
        SND_EACH_CONSUMER(a, c)
    if (c->end)
        c->end(c->user, a);
    return status;
}
