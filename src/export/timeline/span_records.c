/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline/span_records.h"

#include <stdlib.h>

#include "base/text/buf.h"
#include "read/reader.h"

enum kind { BEGIN, END, LEAF, EVENT, CHANGE }; /* CHANGE: an event with one */

struct head {
    uint32_t size; /* of the whole record */
    uint32_t kind;
};

/* The attributes that the span has follow, one after the other. */
struct record {
    struct head     head;
    struct snd_span span;
    uint64_t        attrs[];
};

struct event_record {
    struct head            head;
    struct sonde_event     event;
    struct snd_live_change change;
};

_Static_assert(sizeof(struct record) % 8 == 0, "records lie one behind the other");
_Static_assert(sizeof(struct event_record) % 8 == 0, "records lie one behind the other");

/* ---------------------------------------------------------------------- packing */

static bool pack(struct snd_ahead_writer *writer, enum kind kind, const struct snd_span *span)
{
    struct record *r = snd_ahead_room(writer, sizeof *r + SND_SPAN_ATTRS * sizeof *r->attrs);

    if (!r)
        return false;
    uint64_t *to = r->attrs;
    r->span = *span;
    for (uint32_t mask = kind == BEGIN ? 0 : span->attr_mask; mask != 0; mask &= mask - 1)
        *to++ = span->attrs[__builtin_ctz(mask)];
    r->head.size = (uint32_t)((const char *)to - (const char *)r);
    r->head.kind = kind;
    snd_ahead_put(writer, r->head.size);
    return true;
}

static bool pack_begin(struct snd_span *span, void *user)
{
    return pack(user, BEGIN, span);
}

static bool pack_end(const struct snd_span *span, void *user)
{
    return pack(user, END, span);
}

static bool pack_leaf(const struct snd_span *span, void *user)
{
    return pack(user, LEAF, span);
}

static bool pack_event(const struct sonde_event *event, const struct snd_live_change *change,
                       void *user)
{
    struct snd_ahead_writer *writer = user;
    struct event_record     *r = snd_ahead_room(writer, sizeof *r);

    if (!r)
        return false;
    r->head = (struct head){ sizeof *r, change ? CHANGE : EVENT };
    r->event = *event;
    if (change)
        r->change = *change;
    snd_ahead_put(writer, sizeof *r);
    return true;
}

struct snd_spans_calls snd_spanrecords_pack(const struct snd_spans_calls *wanted,
                                            struct snd_ahead_writer      *writer)
{
    return (struct snd_spans_calls){ .begin = wanted->begin ? pack_begin : NULL,
                                     .end = pack_end,
                                     .leaf = pack_leaf,
                                     .event = wanted->event ? pack_event : NULL,
                                     .user = writer,
                                     .gpu = wanted->gpu };
}

/* -------------------------------------------------------------------- replaying */

/* What an exporter has given the open ranges of a thread, outermost first. */
struct snd_open_spans {
    struct given {
        uint64_t number;
        uint32_t mark;
    } * items;
    uint32_t count, room;
};

/* The attributes go where their keys are. */
static void unpack(struct snd_span_replay *replay, struct record *r)
{
    const uint64_t *from = r->attrs;

    for (uint32_t mask = r->span.attr_mask; mask != 0; mask &= mask - 1)
        replay->attrs[__builtin_ctz(mask)] = *from++;
    r->span.attrs = replay->attrs;
}

/* What the exporter gives it is kept until its end. */
static bool begin(struct snd_span_replay *replay, struct snd_span *span)
{
    struct snd_open_spans *open = &replay->open[span->thread];
    bool                   goes_on = replay->calls->begin(span, replay->calls->user);

    while (open->count <= span->depth) {
        if (!snd_grow(&open->items, &open->room, open->count, sizeof *open->items)) {
            replay->failed = true;
            return false;
        }
        open->items[open->count++] = (struct given){ 0 };
    }
    open->items[span->depth] = (struct given){ span->number, span->mark };
    return goes_on;
}

/* Those inside it that stay open are one less deep then. */
static void leave(struct snd_open_spans *open, struct snd_span *span)
{
    if (span->depth >= open->count)
        return;
    struct given *own = &open->items[span->depth];
    span->mark = own->mark;
    span->number = own->number;
    open->count--;
    for (uint32_t i = span->depth; i < open->count; i++) {
        open->items[i] = open->items[i + 1];
        if (open->items[i].mark > span->mark)
            open->items[i].mark = span->mark;
    }
}

static bool end(struct snd_span_replay *replay, struct snd_span *span)
{
    leave(&replay->open[span->thread], span);
    return replay->calls->end(span, replay->calls->user);
}

/* It has no attributes when it begins. */
static bool leaf(const struct snd_span_replay *replay, struct snd_span *span)
{
    uint32_t mask = span->attr_mask;

    if (replay->calls->begin) {
        span->attr_mask = 0;
        if (!replay->calls->begin(span, replay->calls->user))
            return false;
        span->attr_mask = mask;
    }
    return replay->calls->end(span, replay->calls->user);
}

static bool call(struct snd_span_replay *replay, struct head *head)
{
    if (head->kind == EVENT || head->kind == CHANGE) {
        const struct event_record *r = (const struct event_record *)head;
        return replay->calls->event(&r->event, head->kind == CHANGE ? &r->change : NULL,
                                    replay->calls->user);
    }
    struct record *r = (struct record *)head;
    if (head->kind == BEGIN)
        return begin(replay, &r->span);
    unpack(replay, r);
    return head->kind == LEAF ? leaf(replay, &r->span) : end(replay, &r->span);
}

bool snd_spanrecords_begin(struct snd_span_replay *replay, const struct sonde_trace *trace,
                           const struct snd_spans_calls *calls)
{
    *replay = (struct snd_span_replay){ .trace = trace, .calls = calls };
    replay->open = calloc((size_t)trace->thread_count + 1, sizeof *replay->open);
    return replay->open != NULL;
}

bool snd_spanrecords_replay(struct snd_span_replay *replay, const struct snd_block *block)
{
    char *at = block->bytes, *stop = at + block->length;

    while (at < stop && !replay->stopped && !replay->failed) {
        struct head *head = (struct head *)at;
        replay->stopped = !call(replay, head) && !replay->failed;
        at += head->size;
    }
    return !replay->stopped && !replay->failed;
}

void snd_spanrecords_release(struct snd_span_replay *replay)
{
    for (uint32_t i = 0; replay->open && i < replay->trace->thread_count; i++)
        free(replay->open[i].items);
    free(replay->open);
    replay->open = NULL;
}
