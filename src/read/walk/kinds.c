/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/kinds.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/system/crew.h"
#include "format/fields.h"
#include "read/file/cursor.h"
#include "read/walk/shares.h"
#include "read/walk/trace_walk.h"

/* What those that look have in common. */
struct looking {
    const struct sonde_trace *trace;
    atomic_uint_fast64_t      next;     /* chunk that nobody has looked at */
    atomic_bool               is_over;  /* memory is out, or it is in vain */
    bool                      in_order; /* one looks at all chunks, in their order */
};

/* One of them. */
struct look {
    struct looking    *all;
    struct snd_kinds   kinds;
    struct snd_map     keys; /* (process, key) of ranges that an END_KEY may end: their thread */
    uint32_t           process, thread;
    uint32_t           place;               /* of the chunk's first thread, in kinds.beside */
    bool               failed, has_end_key; /* failed: memory ran out */
    enum sonde_status  status;
    struct sonde_error why;
};

/* ------------------------------------------------- threads that share chunks */

static uint32_t find_least(uint32_t *beside, uint32_t place)
{
    while (beside[place] != place)
        place = beside[place] = beside[beside[place]]; /* half as long a way the next time */
    return place;
}

static void join(uint32_t *beside, uint32_t one, uint32_t other)
{
    uint32_t x = find_least(beside, one), y = find_least(beside, other);

    beside[x < y ? y : x] = x < y ? x : y;
}

static uint32_t places(const struct sonde_trace *trace)
{
    return trace->thread_count + trace->process_count;
}

/* ------------------------------------------------------------------- one event */

/* Kinds of which more is noted than their presence. */
static const bool has_more[256] = {
    [SND_EV_ATTR] = true,    [SND_EV_ATTR64] = true, [SND_EV_FREE] = true,
    [SND_EV_END_KEY] = true, [SND_EV_THREAD] = true,
};

static void note_attr(struct look *look, uint8_t key, uint64_t value)
{
    look->kinds.attrs[key] = true;
    if (key == SND_ATTR_KEY && look->all->in_order && !look->kinds.crossing_end)
        look->failed |= !snd_map_put(&look->keys, (struct snd_key){ look->process, value, 0 },
                                     look->thread);
}

static void note_more(struct look *look, const uint64_t *words)
{
    uint32_t begun;

    switch (SND_EVENT_KIND(words[0])) {
    case SND_EV_FREE:
        look->kinds.unsized_free |= words[3] == 0 && words[2] != 0;
        break;
    case SND_EV_THREAD:
        look->thread = SND_LOW(words[1]);
        join(look->kinds.beside, look->place,
             snd_kinds_place(look->all->trace, look->process, look->thread));
        break;
    case SND_EV_END_KEY:
        look->has_end_key = true;
        look->kinds.crossing_end |=
            !snd_map_take(&look->keys, (struct snd_key){ look->process, words[1], 0 }, &begun) ||
            begun != look->thread;
        break;
    case SND_EV_ATTR:
        note_attr(look, SND_ATTR_KEY(words[0]), SND_ATTR_VALUE(words[0]));
        break;
    default:
        note_attr(look, SND_ATTR_KEY(words[0]), words[1]);
    }
}

/* Notes the event at `words`; returns where the next one is. */
static inline const uint64_t *note(struct look *look, const uint64_t *words)
{
    uint8_t kind = SND_EVENT_KIND(*words);

    look->kinds.events[kind] = true;
    if (has_more[kind])
        note_more(look, words);
    return words + SND_KIND_WORDS(kind);
}

/* Every event of the trace comes here, so that as little as can be is done with most of them. */
static void look_at(struct look *look, struct snd_cursor *c)
{
    do {
        const uint64_t *at = c->words + c->at, *end = c->words + c->count;
        if (c->count > SND_EVENT_WORDS_MAX)
            for (const uint64_t *whole = end - SND_EVENT_WORDS_MAX; at < whole && *at != 0;)
                at = note(look, at);
        while (at < end && *at != 0 && SND_KIND_WORDS(SND_EVENT_KIND(*at)) <= (size_t)(end - at))
            at = note(look, at);
        c->at = (size_t)(at - c->words);
        if (at < end && *at == 0)
            return;
    } while (snd_cursor_fill(c)); /* the event that the window's end cuts is the next one's first */
}

/* -------------------------------------------------------------------- all events */

/* The chunks that nobody has looked at, one after the other. */
static void look_at_chunks(struct look *look)
{
    struct looking           *all = look->all;
    const struct sonde_trace *trace = all->trace;
    struct snd_cursor         cursor = { 0 };
    struct snd_codec         *codec = NULL;
    uint64_t                  number = 0, mine = atomic_fetch_add(&all->next, 1);

    for (uint32_t i = 0; i < trace->process_count && !atomic_load(&all->is_over); i++) {
        const struct snd_process *p = &trace->processes[i];
        for (uint32_t k = 0; k < p->lane_count && !atomic_load(&all->is_over); k++) {
            if (number++ < mine)
                continue;
            mine = atomic_fetch_add(&all->next, 1);
            look->status = snd_cursor_open(&cursor, p, &p->lanes[k], SND_WINDOW_WALK, &codec,
                                           &look->why);
            look->process = i;
            look->thread = p->lanes[k].thread;
            look->place = snd_kinds_place(trace, i, look->thread);
            if (look->status == SONDE_OK)
                look_at(look, &cursor);
            if (look->status != SONDE_OK || look->failed || (look->has_end_key && !all->in_order))
                atomic_store(&all->is_over, true);
        }
    }
    snd_cursor_release(&cursor);
    snd_codec_free(codec);
}

static void *work(void *user)
{
    struct look   *look = user;
    const uint32_t count = places(look->all->trace);

    look->kinds.beside = malloc(((size_t)count + 1) * sizeof *look->kinds.beside);
    look->failed = !look->kinds.beside;
    for (uint32_t i = 0; !look->failed && i < count; i++)
        look->kinds.beside[i] = i;
    if (look->failed)
        atomic_store(&look->all->is_over, true);
    else
        look_at_chunks(look);
    snd_map_release(&look->keys);
    if (look->status == SONDE_OK && look->failed)
        look->status = snd_fail(&look->why, SONDE_E_NOMEM, "out of memory for the kinds of events");
    return NULL;
}

static void add(struct snd_kinds *sum, const struct snd_kinds *one, uint32_t count)
{
    for (size_t i = 0; i < 256; i++) {
        sum->events[i] |= one->events[i];
        sum->attrs[i] |= one->attrs[i];
    }
    sum->unsized_free |= one->unsized_free;
    sum->crossing_end |= one->crossing_end;
    for (uint32_t i = 0; i < count; i++)
        if (one->beside[i] != i)
            join(sum->beside, i, one->beside[i]);
}

/*
 * By so many threads. Whether an end by key crosses threads is told by the order of chunks: where there are such ends,
 * `wants_order` is set instead of `out`.
 */
static enum sonde_status look_at_all(const struct sonde_trace *trace, uint32_t workers,
                                     struct snd_kinds *out, bool *wants_order,
                                     struct sonde_error *err)
{
    struct looking    all = { .trace = trace, .in_order = workers < 2 };
    struct look       looks[SND_CREW_MAX] = { 0 };
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < workers; i++)
        looks[i].all = &all;
    snd_crew_work(work, looks, sizeof looks[0], workers);
    *wants_order = false;
    for (uint32_t i = 0; i < workers; i++) {
        if (status == SONDE_OK && looks[i].status != SONDE_OK) {
            status = looks[i].status;
            if (err)
                *err = looks[i].why;
        }
        *wants_order |= looks[i].has_end_key && !all.in_order;
    }
    for (uint32_t i = 1; i < workers && status == SONDE_OK && !*wants_order; i++)
        if (looks[i].kinds.beside) /* there was a thread for it */
            add(&looks[0].kinds, &looks[i].kinds, places(trace));
    if (status == SONDE_OK && !*wants_order) {
        *out = looks[0].kinds;
        looks[0].kinds.beside = NULL;
        for (uint32_t i = 0; i < places(trace); i++)
            out->beside[i] = find_least(out->beside, i);
    }
    for (uint32_t i = 0; i < workers; i++)
        free(looks[i].kinds.beside);
    return status;
}

enum sonde_status snd_trace_kinds(struct sonde_trace *trace, const struct snd_kinds **out,
                                  struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    *out = NULL;
    if (!trace->kinds) {
        struct snd_kinds *kinds = calloc(1, sizeof *kinds);
        bool              wants_order;
        if (!kinds)
            return snd_fail(err, SONDE_E_NOMEM, "out of memory for the kinds of events");
        status = look_at_all(trace, snd_workers(trace, snd_lane_bytes(trace)), kinds, &wants_order,
                             err);
        if (status == SONDE_OK && wants_order)
            status = look_at_all(trace, 1, kinds, &wants_order, err);
        if (status != SONDE_OK) {
            free(kinds);
            return status;
        }
        trace->kinds = kinds;
    }
    *out = trace->kinds;
    return SONDE_OK;
}

void snd_kinds_free(struct snd_kinds *kinds)
{
    if (kinds)
        free(kinds->beside);
    free(kinds);
}
