/* SPDX-License-Identifier: Apache-2.0 */
#include "export/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "read/scale.h"

#define INNER_MAX 1024 /* open ranges inside one that ends before them; more is no program's */

struct open_ranges {
    struct snd_span *items;
    uint32_t         count, capacity;
    uint64_t         deeper; /* begun past the limit and not yet ended */
    int64_t          last_ns;
};

struct snd_spans {
    struct snd_spans_calls    calls;
    struct open_ranges       *threads;
    uint32_t                  thread_count;
    uint64_t                  serial, deeper;
    const struct sonde_trace *trace;
    struct snd_map            keys; /* (process, KEY) of open ranges: their thread */
};

enum sonde_status snd_spans_new(const struct sonde_trace     *trace,
                                const struct snd_spans_calls *calls, struct snd_spans **out,
                                struct sonde_error *err)
{
    struct snd_spans *spans = calloc(1, sizeof *spans);
    uint32_t          count = sonde_trace_thread_count(trace);

    *out = NULL;
    if (spans)
        spans->threads = calloc(count ? count : 1, sizeof *spans->threads);
    if (!spans || !spans->threads) {
        free(spans);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %u threads", count);
    }
    spans->calls = *calls;
    spans->trace = trace;
    spans->thread_count = count;
    *out = spans;
    return SONDE_OK;
}

void snd_spans_free(struct snd_spans *spans)
{
    if (!spans)
        return;
    for (uint32_t i = 0; i < spans->thread_count; i++)
        free(spans->threads[i].items);
    free(spans->threads);
    snd_map_release(&spans->keys);
    free(spans);
}

uint64_t snd_spans_deeper(const struct snd_spans *spans)
{
    return spans->deeper;
}

static bool begin(struct snd_spans *spans, struct open_ranges *open,
                  const struct sonde_event *event)
{
    if (open->count == SND_SPAN_DEPTH_MAX) {
        open->deeper++;
        spans->deeper++;
        return true;
    }
    if (open->count == open->capacity) {
        uint32_t capacity = open->capacity ? open->capacity * 2 : 16;
        void    *items = realloc(open->items, capacity * sizeof *open->items);
        if (!items)
            return false;
        open->items = items;
        open->capacity = capacity;
    }
    struct snd_span *span = &open->items[open->count];
    memset(span, 0, sizeof *span);
    span->process = event->process;
    span->thread = event->thread;
    span->depth = open->count;
    span->name = event->name;
    span->shapes = event->aux;
    span->start_ns = event->time_ns;
    span->serial = ++spans->serial;
    span->starts_with_parent = open->count > 0 && span[-1].start_ns == span->start_ns;
    span->is_first = open->count > 0 && span[-1].children++ == 0;
    open->count++;
    if (spans->calls.begin)
        spans->calls.begin(span, spans->calls.user);
    return true;
}

static struct snd_key make_key(const struct snd_span *span)
{
    return (struct snd_key){ span->process, span->attrs[SND_ATTR_KEY], 0 };
}

/* torch's engine opens a range for the function that it is about to run, and does not say which. */
static void lend_sequence(const struct snd_spans *spans, struct snd_span *engine,
                          const struct snd_span *function)
{
    static const char prefix[] = "autograd::engine::evaluate_function: ";
    const uint32_t    lent = 1u << SND_ATTR_SEQUENCE | 1u << SND_ATTR_FWD_THREAD;

    if (!function->is_first || (function->attr_mask & lent) != lent || (engine->attr_mask & lent))
        return;
    struct sonde_text name = sonde_trace_string(spans->trace, engine->process, engine->name);
    if (name.length < sizeof prefix - 1 || memcmp(name.bytes, prefix, sizeof prefix - 1) != 0)
        return;
    engine->attrs[SND_ATTR_SEQUENCE] = function->attrs[SND_ATTR_SEQUENCE];
    engine->attrs[SND_ATTR_FWD_THREAD] = function->attrs[SND_ATTR_FWD_THREAD];
    engine->attr_mask |= lent;
}

/* Ends the range at `place`; those inside it stay open, and lie in what it lay in. */
static void end_place(struct snd_spans *spans, struct open_ranges *open, uint32_t place,
                      int64_t time_ns, bool unfinished, bool is_async)
{
    struct snd_span span = open->items[place];
    int64_t         own_bytes = span.bytes;

    if (span.attr_mask >> SND_ATTR_KEY & 1)
        snd_map_remove(&spans->keys, make_key(&span));
    for (uint32_t i = place + 1; i < open->count; i++) { /* memory is by time */
        struct snd_span *inner = &open->items[i];
        span.bytes = snd_add(span.bytes, inner->bytes);
        inner->depth--;
        if (inner->mark > span.mark)
            inner->mark = span.mark;
    }
    if (place + 1 < open->count)
        open->items[place + 1].starts_with_parent =
            place > 0 && open->items[place - 1].start_ns == open->items[place + 1].start_ns;
    memmove(&open->items[place], &open->items[place + 1],
            (open->count - place - 1) * sizeof *open->items);
    open->count--;
    /* A clock that steps back a hair must not make a negative duration. */
    span.end_ns = time_ns > span.start_ns ? time_ns : span.start_ns;
    span.unfinished = unfinished;
    span.is_async = is_async || (span.attr_mask >> SND_ATTR_ASYNC & 1);
    if (place > 0) {
        struct snd_span *up = &open->items[place - 1];
        int64_t          taken = span.is_async ? span.children_ns : span.end_ns - span.start_ns;
        up->children_ns = snd_add(up->children_ns, taken);
        up->bytes = snd_add(up->bytes, own_bytes);
        lend_sequence(spans, up, &span);
    }
    spans->calls.end(&span, spans->calls.user);
}

static void end(struct snd_spans *spans, struct open_ranges *open, uint64_t inside, int64_t time_ns,
                bool unfinished)
{
    if (inside < open->deeper) {
        open->deeper--;
        return;
    }
    inside -= open->deeper;
    if (inside >= open->count || inside > INNER_MAX)
        return; /* its begin was lost: the ledger counts it */
    end_place(spans, open, open->count - 1 - (uint32_t)inside, time_ns, unfinished, false);
}

static void end_key(struct snd_spans *spans, const struct sonde_event *event)
{
    struct snd_key key = { event->process, event->value, 0 };
    uint32_t       thread;

    if (!snd_map_get(&spans->keys, key, &thread))
        return;
    struct open_ranges *open = &spans->threads[thread];
    uint32_t            least = open->count > INNER_MAX ? open->count - INNER_MAX : 0;
    for (uint32_t i = open->count; i-- > least;) {
        const struct snd_span *span = &open->items[i];
        if ((span->attr_mask >> SND_ATTR_KEY & 1) && span->attrs[SND_ATTR_KEY] == event->value) {
            end_place(spans, open, i, event->time_ns, false, thread != event->thread);
            return;
        }
    }
}

static bool set_attr(struct snd_spans *spans, struct open_ranges *open, uint32_t key,
                     uint64_t value)
{
    static const uint32_t sums = 1u << SND_ATTR_FLOPS | 1u << SND_ATTR_MACS | 1u << SND_ATTR_BYTES;

    if (key >= SND_SPAN_ATTRS || open->count == 0 || open->deeper > 0)
        return true;
    struct snd_span *span = &open->items[open->count - 1];
    bool             adds = (sums >> key & 1) && (span->attr_mask >> key & 1);
    if (key == SND_ATTR_KEY && (value == 0 || (span->attr_mask >> key & 1)))
        return true; /* a range has one key */
    span->attrs[key] = adds ? span->attrs[key] + value : value;
    span->attr_mask |= 1u << key;
    if (key == SND_ATTR_SHAPES)
        span->shapes = (uint32_t)value;
    return key != SND_ATTR_KEY || snd_map_put(&spans->keys, make_key(span), span->thread);
}

static void close_gap(struct snd_spans *spans, struct open_ranges *open,
                      const struct sonde_event *event)
{
    uint64_t ends = event->aux == SND_GAP_ALL ? UINT64_MAX : event->aux;

    while (ends-- > 0 && (open->count > 0 || open->deeper > 0))
        end(spans, open, 0, event->time_ns, true);
}

bool snd_spans_event(struct snd_spans *spans, const struct sonde_event *event, int64_t bytes)
{
    if (event->thread >= spans->thread_count)
        return true;
    struct open_ranges *open = &spans->threads[event->thread];
    if (event->kind != SONDE_EVENT_ATTR)
        open->last_ns = event->time_ns;
    switch (event->kind) {
    case SONDE_EVENT_BEGIN:
        return begin(spans, open, event);
    case SONDE_EVENT_END:
        end(spans, open, 0, event->time_ns, false);
        break;
    case SONDE_EVENT_END_AT:
        end(spans, open, event->aux, event->time_ns, false);
        break;
    case SONDE_EVENT_END_KEY:
        end_key(spans, event);
        break;
    case SONDE_EVENT_GAP:
        close_gap(spans, open, event);
        break;
    case SONDE_EVENT_ATTR:
        return set_attr(spans, open, event->aux, event->value);
    case SONDE_EVENT_ALLOC:
    case SONDE_EVENT_FREE:
        if (open->count > 0)
            open->items[open->count - 1].bytes = snd_add(open->items[open->count - 1].bytes, bytes);
        break;
    default:
        break;
    }
    return true;
}

void snd_spans_finish(struct snd_spans *spans)
{
    for (uint32_t i = 0; i < spans->thread_count; i++) {
        struct open_ranges *open = &spans->threads[i];
        while (open->count > 0 || open->deeper > 0)
            end(spans, open, 0, open->last_ns, true);
    }
}
