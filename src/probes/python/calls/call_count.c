/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/calls/call_inside.h"

struct snd_calls_state snd_calls;

/* --------------------------------------------------------------- another recording */

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
    if (snd_calls.mode == SND_CALLS_COUNTERS)
        snd_calls_counters_renew_(t);
}

bool snd_calls_unwind_(struct snd_calls_thread *t, const void *key)
{
    uint32_t at = t->depth;

    while (at > 0 && t->stack[at].key != key)
        at--;
    if (at == 0)
        return false;
    for (; t->depth > at; snd_calls.unbalanced++)
        snd_calls_leave(t);
    return true;
}

/* ------------------------------------------------------------ ranges, counters, events */

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
    if (SONDE_UNLIKELY_(f->epoch != epoch))
        f = snd_calls_interned_(entry->function, epoch);
    const struct sonde_function_call call = {
        .frame = f->frame,
        .thread = t == snd_calls_self_ ? 0 : sonde_thread_of(t->tid, NULL),
        .start = entry->start,
        .end = now,
        .id = entry->id,
        .parent = entry[-1].id,
        .resumed = !entry->calls,
    };
    if (SONDE_LIKELY_(sonde_lane_take_(&sonde_lane_, epoch, 4 | (f->frame & SONDE_LATE_ID_)))) {
        sonde_function_at_(&sonde_lane_, &call);
        sonde_lane_leave_(&sonde_lane_);
    } else {
        sonde_function_called(&call);
    }
}

bool snd_calls_enter_more_(struct snd_calls_thread *t, uint32_t function, const void *key,
                           bool resumed)
{
    if (!snd_calls_push_(t, function, key, resumed, true))
        return false;
    if (snd_calls.sessions_on)
        snd_calls_sessions_enter_(t, function, key, resumed);
    return true;
}

void snd_calls_leave_more_(struct snd_calls_thread *t)
{
    if (snd_calls.sessions_on)
        snd_calls_sessions_leave_(t);
    snd_calls_pop_(t, true);
}

/* -------------------------------------------------------------------- on and off */

void snd_calls_start(enum snd_calls_mode mode, bool whole)
{
    snd_calls.whole = whole;
    snd_calls.begun = false;
    snd_calls.session++;
    snd_calls.mode = mode;
    snd_calls_set_more_();
    snd_calls.ids = 0;
    snd_calls.unbalanced = 0;
    snd_calls.lost = 0;
    snd_calls.on = true;
}

void snd_calls_stop(void)
{
    while (snd_calls.sessions_on)
        snd_calls_session_stop(snd_calls.sessions_on->number);
    snd_calls.on = false;
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next) {
        if (t->session != snd_calls.session)
            continue;
        snd_calls_close_all_(t);
        snd_calls_reset_(t);
    }
    snd_calls_forget_suspended_();
}
