/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_stack.c - the stack of a thread, or of a session for it: calls pushed, popped, written. */
#include <stdlib.h>
#include <string.h>

#include "probes/python/calls/call_inside.h"
#include "base/hints.h"

#define STACK_FIRST 256u

/* After a pause the words have the call already; another recording's may have the same address. */
static bool is_counted(const struct snd_calls_entry *entry)
{
    const uint64_t *words = entry->edge->words;

    return words == snd_calls_unused_words_ ||
           (words == entry->counted && words[SND_CALLS_CALLS] + words[SND_CALLS_RESUMPTIONS] != 0);
}

/*
 * Another recording has begun, or none is on: open calls restart from now, and count as calls of
 * that recording too. Edges are looked up again at their next use.
 */
void snd_calls_renew_(struct snd_calls_thread *t)
{
    uint64_t now = sonde_clock();

    t->epoch = sonde_epoch();
    for (uint32_t i = 0; i < t->function_room; i++)
        t->functions[i].caller = 0;
    for (uint32_t i = 1; i <= t->depth; i++) {
        struct snd_calls_entry *entry = &t->stack[i];
        if (entry->edge && entry->edge->epoch != t->epoch)
            snd_calls_fetch_words_(t, entry->edge);
        if (entry->edge && !is_counted(entry))
            snd_calls_count_(entry);
        entry->start = now;
        entry->inner = 0;
    }
    if (snd_calls.mode == SND_CALLS_EVENTS)
        snd_calls_renew_c_(t);
    if (snd_calls.mode == SND_CALLS_COUNTERS)
        snd_calls_counters_renew_(t);
}

static void begin_range(uint32_t function, bool resumed)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return;
    const struct snd_calls_named *f = snd_calls_interned_(function, epoch);
    sonde_begin_id(f->name, 0);
    sonde_attr(SONDE_ATTR_FRAME, f->frame | (uint64_t)resumed << 32);
}

void snd_calls_begin_more_(struct snd_calls_thread *t, uint32_t function, bool resumed)
{
    if (snd_calls.mode == SND_CALLS_RANGES)
        begin_range(function, resumed);
    else
        snd_calls_counters_begin_(t);
}

/* The ranges of another thread cannot be ended from here: the reader ends them at the stop. */
void snd_calls_end_more_(struct snd_calls_thread *t, const struct snd_calls_entry *entry)
{
    if (snd_calls.mode == SND_CALLS_COUNTERS)
        snd_calls_counters_end_(t, entry);
    else if (t == snd_calls_self_)
        sonde_end();
}

bool snd_calls_push_event_(struct snd_calls_thread *t, uint32_t function, const void *key,
                           bool resumed)
{
    struct snd_calls_entry *entry = &t->stack[++t->depth];

    entry->edge = NULL;
    entry->key = key;
    entry->function = function;
    entry->calls = !resumed;
    entry->id = ++snd_calls.ids;
    entry->c.caller = NULL;
    entry->c_known = entry[-1].c_known;
    entry->start = sonde_clock();
    return true;
}

void snd_calls_write_event_(struct snd_calls_thread *t, const struct snd_calls_entry *entry,
                            uint64_t now)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return;
    const struct snd_calls_named *f = &snd_calls_functions_[entry->function - 1];
    if (SND_UNLIKELY(f->epoch != epoch))
        f = snd_calls_interned_(entry->function, epoch);
    const struct sonde_function_call call = {
        .struct_size = sizeof call,
        .frame = f->frame,
        .thread = t == snd_calls_self_ ? 0 : sonde_thread_of(t->tid, NULL),
        .start = entry->start,
        .end = now,
        .id = entry->id,
        .parent = entry[-1].id,
        .resumed = !entry->calls,
    };
    if (SND_LIKELY(sonde_lane_take(sonde_lane_own(), epoch, 4 | (f->frame & SONDE_LATE_ID)))) {
        sonde_lane_function(sonde_lane_own(), &call);
        sonde_lane_leave(sonde_lane_own());
    } else {
        sonde_function_call(&call);
    }
}

void snd_calls_reset_(struct snd_calls_thread *t)
{
    snd_calls_drop_edges_(t->edges);
    free(t->functions);
    t->functions = NULL;
    t->function_room = 0;
    t->depth = 0;
    t->epoch = sonde_epoch();
    t->session = t->owner ? t->owner->session : snd_calls.session;
}

struct snd_calls_thread *snd_calls_new_thread_(struct snd_calls_session *session)
{
    struct snd_calls_thread *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->edges = snd_calls_new_edges_();
    t->stack = calloc(STACK_FIRST, sizeof *t->stack);
    t->room = STACK_FIRST;
    t->owner = session;
    t->session = (session ? session->session : snd_calls.session) - 1;
    if (!t->edges || !t->stack) {
        snd_calls_free_thread_(t);
        return NULL;
    }
    return t;
}

void snd_calls_free_thread_(struct snd_calls_thread *t)
{
    if (t->edges)
        snd_calls_drop_edges_(t->edges);
    snd_calls_counters_free_(t);
    free(t->edges);
    free(t->functions);
    free(t->stack);
    free(t);
}

/* Open calls of a thread that ended must not pass to the thread that takes its context. */
void snd_calls_close_all_(struct snd_calls_thread *t)
{
    while (t->depth > 0)
        snd_calls_pop_(t, true);
}

bool snd_calls_room_(struct snd_calls_thread *t, uint32_t function)
{
    if (t->depth + 1 >= t->room) {
        size_t                  room = (size_t)t->room * 2;
        struct snd_calls_entry *stack = realloc(t->stack, room * sizeof *stack);
        if (!stack)
            goto fail;
        t->stack = stack;
        t->room = (uint32_t)room;
    }
    if (function >= t->function_room) {
        size_t room = snd_calls_function_room_ > function ? snd_calls_function_room_
                                                          : (size_t)function + 1;
        struct snd_calls_function *list = realloc(t->functions, room * sizeof *list);
        if (!list)
            goto fail;
        memset(list + t->function_room, 0, (room - t->function_room) * sizeof *list);
        t->functions = list;
        t->function_room = (uint32_t)room;
    }
    return true;

fail:
    snd_calls.lost++;
    return false;
}
