/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/calls/call_counters.c - counters of the thread for each function: `sonde run --per-function`.
 *
 * Read at a call's begin before its start time, and at its end after its end time: the cost of
 * reading is charged to the caller; making room for it, which touches pages, to nobody. A call that is still open at
 * the stop and belongs to another thread gets none. Only the process has counters; sessions do not.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/python/calls/call_inside.h"

#define MOST SONDE_COUNTERS_MOST

struct level {
    bool     read;
    uint64_t start[MOST], inner[MOST];
};

/* Of a thread: readings of the open calls, by depth, and words of the trace, by function. */
struct snd_calls_counters {
    struct level *levels;
    uint64_t *(*words)[MOST];
    uint32_t level_room, function_room;
    uint32_t epoch; /* of the words */
    bool     grew;  /* since it was last looked at */
};

void snd_calls_counters_free_(struct snd_calls_thread *t)
{
    if (!t->counters)
        return;
    free(t->counters->levels);
    free(t->counters->words);
    free(t->counters);
    t->counters = NULL;
}

static bool make_levels(struct snd_calls_counters *c, uint32_t depth)
{
    size_t room = c->level_room ? c->level_room : 64;

    while (room <= depth)
        room *= 2;
    struct level *levels = realloc(c->levels, room * sizeof *levels);
    if (!levels)
        return false;
    memset(levels + c->level_room, 0, (room - c->level_room) * sizeof *levels);
    c->levels = levels;
    c->level_room = (uint32_t)room;
    return true;
}

/* What counters rose by since `before` is no call's: the open ones, as far as `depth`, begin that much later. */
static void leave_out(struct snd_calls_counters *c, uint32_t depth, const uint64_t before[MOST])
{
    uint64_t now[MOST];
    uint32_t count = sonde_thread_counters(now);

    for (uint32_t i = 1; i <= depth && i < c->level_room; i++)
        for (uint32_t k = 0; k < count && c->levels[i].read; k++)
            c->levels[i].start[k] += now[k] > before[k] ? now[k] - before[k] : 0;
    c->grew = false;
}

static bool make_room(struct snd_calls_thread *t)
{
    uint64_t before[MOST] = { 0 };
    bool     counted = sonde_thread_counters(before) > 0;

    if (!t->counters)
        t->counters = calloc(1, sizeof *t->counters);
    if (!t->counters || !make_levels(t->counters, t->depth))
        return false;
    if (counted)
        leave_out(t->counters, t->depth - 1, before);
    return true;
}

void snd_calls_counters_begin_(struct snd_calls_thread *t)
{
    if (t->owner || t != snd_calls_self_)
        return;
    if ((!t->counters || t->depth >= t->counters->level_room) && !make_room(t))
        return;
    struct level *level = &t->counters->levels[t->depth];
    memset(level->inner, 0, sizeof level->inner);
    level->read = sonde_thread_counters(level->start) > 0;
}

static bool make_words(struct snd_calls_counters *c, uint32_t function)
{
    size_t    room = c->function_room ? c->function_room : 256;
    uint32_t *epoch = &c->epoch;

    while (room <= function)
        room *= 2;
    void *words = realloc(c->words, room * sizeof *c->words);
    if (!words)
        return false;
    c->words = words;
    if (*epoch == sonde_epoch())
        memset(c->words + c->function_room, 0, (room - c->function_room) * sizeof *c->words);
    else
        memset(c->words, 0, room * sizeof *c->words);
    *epoch = sonde_epoch();
    c->function_room = (uint32_t)room;
    return true;
}

/* Words of the function's tally for a counter; NULL: it has none. */
static uint64_t *words_of(struct snd_calls_counters *c, uint32_t function, uint32_t counter)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0 ||
        ((function >= c->function_room || c->epoch != epoch) && !make_words(c, function)))
        return NULL;
    uint64_t **words = &c->words[function][counter];
    c->grew |= !*words;
    if (!*words)
        *words = sonde_tally(SONDE_TALLY_FUNCTION_COUNTERS, snd_calls_frame_(function), counter,
                             SND_FUNCTION_COUNTERS_WORDS);
    return *words;
}

void snd_calls_counters_end_(struct snd_calls_thread *t, const struct snd_calls_entry *entry)
{
    struct snd_calls_counters *c = t->counters;
    uint64_t                   now[MOST];

    if (t->owner || t != snd_calls_self_ || !c || t->depth + 1 >= c->level_room ||
        !c->levels[t->depth + 1].read)
        return;
    struct level *level = &c->levels[t->depth + 1], *outer = &c->levels[t->depth];
    uint32_t      count = sonde_thread_counters(now);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t  rise = now[i] > level->start[i] ? now[i] - level->start[i] : 0;
        uint64_t *words = words_of(c, entry->function, i);
        outer->inner[i] += rise;
        if (!words)
            continue;
        words[SND_FUNCTION_COUNTERS_CALLS]++;
        words[SND_FUNCTION_COUNTERS_SELF] += rise > level->inner[i] ? rise - level->inner[i] : 0;
        if (entry->outermost)
            words[SND_FUNCTION_COUNTERS_TOTAL] += rise;
    }
    if (c->grew)
        leave_out(c, t->depth, now);
}

void snd_calls_counters_renew_(struct snd_calls_thread *t)
{
    uint64_t now[MOST];
    bool     read = t == snd_calls_self_ && t->counters && sonde_thread_counters(now) > 0;

    for (uint32_t i = 1; t->counters && i <= t->depth && i < t->counters->level_room; i++) {
        struct level *level = &t->counters->levels[i];
        level->read &= read;
        memset(level->inner, 0, sizeof level->inner);
        if (read)
            memcpy(level->start, now, sizeof now);
    }
}
