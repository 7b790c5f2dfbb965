/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/spans.h - begins and ends put together to ranges, as a walk delivers them.
 *
 * Ranges come as recorded: nothing is folded. What a gap or the end of the recording leaves
 * open ends there, and says so. Memory: what is open, not what was seen.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_SPANS_H
#define SND_EXPORT_SPANS_H

#include "base/error.h"
#include "format/layout.h"
#include "sonde/trace.h"

#define SND_SPAN_ATTRS 24        /* keys below it are kept */
#define SND_SPAN_DEPTH_MAX 65536 /* ranges that lie deeper are counted, not delivered */

struct snd_span {
    uint32_t process, thread;
    uint32_t depth; /* outermost 0 */
    uint32_t name, shapes;
    uint64_t serial; /* order of begins over the walk, from 1 */
    int64_t  start_ns, end_ns;
    int64_t  children_ns; /* time of the direct children */
    int64_t  bytes;       /* net, children included */
    uint32_t attr_mask;
    uint64_t attrs[SND_SPAN_ATTRS]; /* by key, where attr_mask has the bit */
    uint32_t children;              /* direct ones so far */
    bool     unfinished;
    bool     is_async;           /* it waits for others, or another thread ended it */
    bool     is_first;           /* nothing of its thread began between its parent and it */
    bool     starts_with_parent; /* at the very same nanosecond */
    uint32_t mark;   /* the exporter's own; falls to that of an outer range that ends first */
    uint64_t number; /* the exporter's own */
};

struct snd_spans; /* opaque */

struct snd_spans_calls {
    /* May be NULL. The span is open and may be given a mark. */
    void (*begin)(struct snd_span *span, void *user);
    void (*end)(const struct snd_span *span, void *user);
    void *user;
};

/* Owns: the caller, until snd_spans_free(). */
SND_CHECKED enum sonde_status snd_spans_new(const struct sonde_trace     *trace,
                                            const struct snd_spans_calls *calls,
                                            struct snd_spans **out, struct sonde_error *err);
void                          snd_spans_free(struct snd_spans *spans);

/* False when memory is out. Of ALLOC and FREE, `bytes` is the change that counts. */
bool snd_spans_event(struct snd_spans *spans, const struct sonde_event *event, int64_t bytes);
/* Ends what is open. */
void snd_spans_finish(struct snd_spans *spans);
/* Ranges too deep to be delivered. */
uint64_t snd_spans_deeper(const struct snd_spans *spans);

#endif
