/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/divided.c - a walk by thread, by as many threads as there are processors (docs/decisions/0028).
 *
 * Each worker has an assembly of its own, with a part of every consumer, takes shares of the trace (read/walk/shares.h) until there are
 * none, and then parts are joined. Nothing is shared but the list of shares, and what of the trace does not change.
 */
#include <stdlib.h>

#include "base/system/crew.h"
#include "format/fields.h"
#include "model/ranges/open_ranges.h"
#include "read/walk/kinds.h"
#include "read/walk/shares.h"

/* What parts may take together. */
#define PARTS_BYTES ((uint64_t)24 << 20)

struct worker {
    struct snd_assembly assembly;
    struct snd_shares  *shares;
    uint32_t            part_count; /* consumers of the assembly that are to be freed */
    enum sonde_status   status;
    struct sonde_error  why;
    bool                has_worked; /* there was a thread for it */
};

/* Such events tell of several threads, or are told by several. */
static bool has_threads_apart(struct sonde_trace *trace, const struct snd_kinds *kinds)
{
    static const uint8_t across[] = { SND_EV_ALLOC, SND_EV_FREE, SND_EV_LINK, SND_EV_END_KEY };

    for (size_t i = 0; i < sizeof across; i++)
        if (kinds->events[across[i]])
            return false;
    return !snd_trace_has_works(trace);
}

/* How many workers there is memory for. */
static uint32_t find_room(const struct snd_assembly *a)
{
    const struct sonde_trace *trace = a->trace;
    uint64_t                  bytes = trace->thread_count * (uint64_t)sizeof *a->lanes +
                     trace->names.count * (uint64_t)sizeof *a->name_flags;

    for (uint32_t i = 0; i < trace->process_count; i++)
        bytes += 2 * ((uint64_t)trace->processes[i].tables.call_count + 1) *
                 sizeof(struct snd_known_leaf);
    SND_EACH_CONSUMER(a, c)
    bytes += c->division->part_bytes(c->user);
    uint64_t room = PARTS_BYTES / (bytes + 1);
    return room < SND_CREW_MAX ? (uint32_t)room : SND_CREW_MAX;
}

/* ------------------------------------------------------------------- a worker */

static bool split_consumers(struct worker *w, const struct snd_assembly *whole)
{
    SND_EACH_CONSUMER(whole, c)
    {
        struct snd_consumer part = *c;
        part.end = NULL;
        if (!c->division->split(c->user, &part))
            return false;
        snd_assembly_add(&w->assembly, &part);
        w->part_count++;
    }
    return true;
}

static void *work(void *user)
{
    struct worker       *w = user;
    struct snd_assembly *a = &w->assembly;

    w->has_worked = true;
    w->status = snd_assembly_prepare(a, &w->why);
    if (w->status == SONDE_OK)
        SND_EACH_CONSUMER(a, c)
    if (c->begin)
        c->begin(c->user, a);
    if (w->status == SONDE_OK)
        w->status = snd_walk_shares(w->shares, &a->visitor, &a->stats.walk, &w->why);
    if (w->status == SONDE_OK && !a->visitor.stop)
        snd_assembly_close_all(a);
    if (w->status == SONDE_OK && a->out_of_memory)
        w->status = snd_fail(&w->why, SONDE_E_NOMEM, "out of memory for what the trace holds");
    if (w->status != SONDE_OK || a->visitor.stop)
        atomic_store(&w->shares->is_over, true);
    return NULL;
}

static void release_worker(struct worker *w)
{
    const struct snd_assembly *a = &w->assembly;

    for (uint32_t i = 0; i < w->part_count; i++)
        a->consumers[i].division->free_part(a->consumers[i].user);
    snd_assembly_release(&w->assembly);
}

/* -------------------------------------------------------------------- together */

/* Each thread was met by one worker. */
static void take_lanes(struct snd_assembly *a, const struct worker *w)
{
    for (uint32_t i = 0; i < a->trace->thread_count; i++) {
        const struct snd_lane *lane = &w->assembly.lanes[i];
        if (lane->events == 0 && lane->begins == 0)
            continue;
        a->lanes[i] = *lane;
        a->lanes[i].open = NULL; /* the worker's, as is what is known of leaves */
        a->lanes[i].leaves = NULL;
        a->lanes[i].room = 0;
    }
}

static void add_stats(struct snd_assembly_stats *sum, const struct snd_assembly_stats *one)
{
    snd_walk_stats_add(&sum->walk, &one->walk);
    sum->ranges += one->ranges;
    sum->unfinished += one->unfinished;
    sum->ends_without_begin += one->ends_without_begin;
    sum->too_deep += one->too_deep;
    sum->gaps += one->gaps;
    sum->missing_names += one->missing_names;
}

static enum sonde_status join(struct snd_assembly *a, struct worker *workers, uint32_t count,
                              struct sonde_error *err)
{
    bool good = true;

    a->lanes = calloc((size_t)a->trace->thread_count + 1, sizeof *a->lanes);
    if (a->lanes)
        snd_assembly_number_lanes(a);
    SND_EACH_CONSUMER(a, c)
    if (c->begin)
        c->begin(c->user, a);
    for (uint32_t i = 0; i < count && a->lanes && good; i++) {
        if (!workers[i].has_worked)
            continue;
        take_lanes(a, &workers[i]);
        add_stats(&a->stats, &workers[i].assembly.stats);
        a->begins += workers[i].assembly.begins;
        for (uint32_t k = 0; k < a->consumer_count && good; k++)
            good = a->consumers[k].division->join(a->consumers[k].user,
                                                  workers[i].assembly.consumers[k].user);
    }
    if (!a->lanes || !good)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for what the trace holds");
    snd_walk_shares_end(workers[0].shares, &a->stats.walk);
    return SONDE_OK;
}

/* How the workers' walks went; `in_vain`: another walk must be made. */
static enum sonde_status judge(const struct worker *workers, uint32_t count, bool *in_vain,
                               struct sonde_error *err)
{
    *in_vain = atomic_load(&workers[0].shares->is_in_vain);
    for (uint32_t i = 0; i < count; i++) {
        *in_vain |= workers[i].assembly.undivided;
        if (workers[i].status == SONDE_OK)
            continue;
        if (err)
            *err = workers[i].why;
        return workers[i].status;
    }
    return SONDE_OK;
}

static enum sonde_status walk(struct snd_assembly *a, struct snd_shares *shares, uint32_t count,
                              bool *done, struct sonde_error *err)
{
    struct worker    *workers = calloc(count, sizeof *workers);
    bool              good = workers != NULL, in_vain = false;
    enum sonde_status status;

    for (uint32_t i = 0; i < count && good; i++) {
        workers[i].shares = shares;
        workers[i].assembly = (struct snd_assembly){ .trace = a->trace,
                                                     .flops_mode = a->flops_mode };
        good = split_consumers(&workers[i], a);
    }
    if (good) {
        snd_crew_work(work, workers, sizeof *workers, count);
        status = judge(workers, count, &in_vain, err);
    } else {
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads that read the trace");
    }
    if (status == SONDE_OK && !in_vain) {
        status = join(a, workers, count, err);
        *done = status == SONDE_OK;
    }
    for (uint32_t i = 0; workers && i < count; i++)
        release_worker(&workers[i]);
    free(workers);
    return status;
}

enum sonde_status snd_assembly_divide(struct snd_assembly *a, bool *done, struct sonde_error *err)
{
    struct sonde_trace     *trace = a->trace;
    const struct snd_kinds *kinds;
    struct snd_shares       shares;
    uint32_t                count = 0;

    SND_EACH_CONSUMER(a, c)
    if (!c->division)
        return SONDE_OK;
    if (trace->thread_count < 2 || a->consumer_count == 0 ||
        snd_workers(trace, snd_lane_bytes(trace)) < 2)
        return SONDE_OK;
    enum sonde_status status = snd_trace_kinds(trace, &kinds, err);
    if (status != SONDE_OK || !has_threads_apart(trace, kinds))
        return status;
    status = snd_shares_make(&shares, trace, kinds, err);
    if (status == SONDE_OK && shares.count > 1) {
        uint32_t room = find_room(a);
        count = snd_workers(trace, shares.bytes - shares.items[0].bytes);
        count = count < shares.count ? count : shares.count;
        count = count < room ? count : room;
    }
    if (status == SONDE_OK && count > 1)
        status = walk(a, &shares, count, done, err);
    snd_shares_release(&shares);
    return status;
}
