/* SPDX-License-Identifier: Apache-2.0 */
#include "export/spans.h"

#include <stdlib.h>
#include <string.h>

#include "read/scale.h"

struct open_ranges {
    struct snd_span *items;
    uint32_t         count, capacity;
    uint64_t         deeper; /* begun past the limit and not yet ended */
    int64_t          last_ns;
};

struct snd_spans {
    struct snd_spans_calls calls;
    struct open_ranges    *threads;
    uint32_t               thread_count;
    uint64_t               serial, deeper;
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
    open->count++;
    if (spans->calls.begin)
        spans->calls.begin(span, spans->calls.user);
    return true;
}

static void end(struct snd_spans *spans, struct open_ranges *open, int64_t time_ns, bool unfinished)
{
    if (open->deeper > 0) {
        open->deeper--;
        return;
    }
    if (open->count == 0)
        return; /* its begin was lost: the ledger counts it */
    struct snd_span *span = &open->items[--open->count];
    /* A clock that steps back a hair must not make a negative duration. */
    span->end_ns = time_ns > span->start_ns ? time_ns : span->start_ns;
    span->unfinished = unfinished;
    if (open->count > 0) {
        span[-1].children_ns = snd_add(span[-1].children_ns, span->end_ns - span->start_ns);
        span[-1].bytes = snd_add(span[-1].bytes, span->bytes);
    }
    spans->calls.end(span, spans->calls.user);
}

static void set_attr(struct open_ranges *open, uint32_t key, uint64_t value)
{
    static const uint32_t sums = 1u << SND_ATTR_FLOPS | 1u << SND_ATTR_MACS | 1u << SND_ATTR_BYTES;

    if (key >= SND_SPAN_ATTRS || open->count == 0 || open->deeper > 0)
        return;
    struct snd_span *span = &open->items[open->count - 1];
    bool             adds = (sums >> key & 1) && (span->attr_mask >> key & 1);
    span->attrs[key] = adds ? span->attrs[key] + value : value;
    span->attr_mask |= 1u << key;
    if (key == SND_ATTR_SHAPES)
        span->shapes = (uint32_t)value;
}

static void close_gap(struct snd_spans *spans, struct open_ranges *open,
                      const struct sonde_event *event)
{
    uint64_t ends = event->aux == SND_GAP_ALL ? UINT64_MAX : event->aux;

    while (ends-- > 0 && (open->count > 0 || open->deeper > 0))
        end(spans, open, event->time_ns, true);
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
        end(spans, open, event->time_ns, false);
        break;
    case SONDE_EVENT_GAP:
        close_gap(spans, open, event);
        break;
    case SONDE_EVENT_ATTR:
        set_attr(open, event->aux, event->value);
        break;
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
            end(spans, open, open->last_ns, true);
    }
}
