/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/python/timed_functions.c - functions from ranges, where each call left one.
 *
 * What a range is comes after its begin (the FRAME attribute), and before anything in it: so it is
 * looked at when the first range inside it opens, or when it closes. From then to its end it is on
 * the stack of calls of its thread; ranges that are no calls (operators, a person's own) are part
 * of the call that they lie in.
 */
#include <stdlib.h>
#include <string.h>

#include "model/ranges/assembly.h"
#include "model/python/counted_functions.h"
#include "read/walk/kinds.h"

#define RESUMED ((uint64_t)1 << 32)

/* What a range was found to be: its `node`. */
enum judgement { NOT_JUDGED, NO_CALL, A_CALL };

struct call {
    uint64_t serial; /* of its range */
    int64_t  inner_ns;
    uint32_t function, pair;
    bool     resumed;
    bool     is_outer, is_outer_pair; /* no other call of the function, of the pair, is open */
};

struct thread_calls {
    struct call *open;
    uint32_t     depth, room;
};

struct reading {
    struct sonde_functions *f;
    const bool             *counted;
    struct thread_calls    *threads;
    struct snd_map          running; /* (thread, function, 0) or (thread, pair, 1): how many */
    struct snd_assembly     assembly;
};

static struct snd_key running_key(uint32_t thread, uint32_t number, bool is_pair)
{
    return (struct snd_key){ thread, number, is_pair };
}

/* Counts one more; *first: there was none. False when memory is out. */
static bool enter(struct reading *r, struct snd_key key, bool *first)
{
    uint32_t count = 0;

    *first = !snd_map_get(&r->running, key, &count);
    return snd_map_put(&r->running, key, count + 1);
}

static void leave(struct reading *r, struct snd_key key)
{
    uint32_t count = 0;

    if (snd_map_get(&r->running, key, &count) && count > 1)
        (void)snd_map_put(&r->running, key, count - 1); /* it is there: this takes no memory */
    else
        snd_map_remove(&r->running, key);
}

static bool push(struct reading *r, const struct snd_lane *lane, const struct snd_range *range)
{
    struct thread_calls *t = &r->threads[lane->thread];
    struct call          call = { .serial = range->serial, .resumed = range->frame & RESUMED };

    call.function = snd_function_of(r->f, lane->process, (uint32_t)range->frame);
    if (call.function == UINT32_MAX)
        return false;
    call.pair = snd_call_of(r->f, t->depth ? t->open[t->depth - 1].function : SONDE_NONE,
                            call.function);
    if (call.pair == UINT32_MAX ||
        !enter(r, running_key(lane->thread, call.function, false), &call.is_outer) ||
        !enter(r, running_key(lane->thread, call.pair, true), &call.is_outer_pair) ||
        !snd_grow(&t->open, &t->room, t->depth, sizeof *t->open))
        return false;
    t->open[t->depth++] = call;
    return true;
}

static void judge(struct reading *r, const struct snd_lane *lane, struct snd_range *range)
{
    if (range->node != NOT_JUDGED)
        return;
    range->node = range->frame != 0 && !r->counted[lane->process] ? A_CALL : NO_CALL;
    if (range->node == A_CALL && !push(r, lane, range))
        snd_assembly_stop(&r->assembly);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    range->range.node = NOT_JUDGED;
    if (parent)
        judge(user, lane, &parent->range);
}

static void add_call(struct sonde_functions *f, const struct call *call, int64_t total_ns)
{
    struct sonde_function *row = &f->rows[call->function];
    struct sonde_call     *pair = &f->calls[call->pair];
    int64_t                self_ns = snd_sub(total_ns, call->inner_ns);

    row->self_ns = snd_add(row->self_ns, self_ns);
    pair->self_ns = snd_add(pair->self_ns, self_ns);
    if (call->is_outer)
        row->total_ns = snd_add(row->total_ns, total_ns);
    if (call->is_outer_pair)
        pair->total_ns = snd_add(pair->total_ns, total_ns);
    if (call->resumed) {
        row->resumptions++;
        return;
    }
    row->calls++;
    pair->calls++;
    row->primitive_calls += call->is_outer;
    pair->primitive_calls += call->is_outer_pair;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct reading      *r = user;
    struct thread_calls *t = &r->threads[lane->thread];

    (void)parent;
    judge(r, lane, &range->range);
    if (range->range.node != A_CALL)
        return;
    uint32_t place = t->depth;
    while (place > 0 && t->open[place - 1].serial != range->range.serial)
        place--; /* one that ends before what it called: rare */
    if (place == 0)
        return;
    struct call call = t->open[--place];
    memmove(&t->open[place], &t->open[place + 1], (t->depth - place - 1) * sizeof *t->open);
    t->depth--;
    leave(r, running_key(lane->thread, call.function, false));
    leave(r, running_key(lane->thread, call.pair, true));
    if (place > 0)
        t->open[place - 1].inner_ns = snd_add(t->open[place - 1].inner_ns, range->range.total_ns);
    add_call(r->f, &call, range->range.total_ns);
    struct sonde_function *row = &r->f->rows[call.function];
    row->awaiting_ns = snd_add(row->awaiting_ns,
                               snd_scale_ticks(&r->f->trace->processes[lane->process].scale,
                                               range->range.awaited));
}

static enum sonde_status read_ranges(struct reading *r, struct sonde_error *err)
{
    const struct snd_consumer consumer = {
        .user = r, .flops = SONDE_FLOPS_NONE, .any_flops = true, .open = on_open, .close = on_close
    };
    struct sonde_trace *trace = r->f->trace;

    r->threads = calloc((size_t)trace->thread_count + 1, sizeof *r->threads);
    if (!r->threads)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    /* Ends by key must be met in order: which threads have them is not known beforehand. */
    enum sonde_status st = snd_assemble(&r->assembly, trace, SONDE_BY_TIME, &consumer, 1, err);
    snd_assembly_release(&r->assembly);
    for (uint32_t i = 0; i < trace->thread_count; i++)
        free(r->threads[i].open);
    free(r->threads);
    snd_map_release(&r->running);
    return st;
}

/* Whether there is a process without tallies that has frames: those of samples and marks, too. */
static bool has_frames(const struct sonde_functions *f, const bool *counted)
{
    for (uint32_t p = 0; p < f->trace->process_count; p++)
        if (!counted[p] && f->trace->processes[p].tables.frame_count > 0)
            return true;
    return false;
}

enum sonde_status snd_functions_from_ranges(struct sonde_functions *f, const bool *counted,
                                            struct sonde_error *err)
{
    struct reading          r = { .f = f, .counted = counted };
    const struct snd_kinds *kinds;

    if (!has_frames(f, counted))
        return SONDE_OK;
    enum sonde_status st = snd_trace_kinds(f->trace, &kinds, err);
    return st == SONDE_OK && kinds->attrs[SND_ATTR_FRAME] ? read_ranges(&r, err) : st;
}
