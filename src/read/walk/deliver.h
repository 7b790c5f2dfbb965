/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/deliver.h - one event of a chunk to the visitor: its time, its thread, whether it was warm-up.
 *
 * Shared by the two walks (trace_walk.c, merge.c).
 *
 * Layer: read. Threads: one at a time.
 */
#ifndef SND_READ_WALK_DELIVER_H
#define SND_READ_WALK_DELIVER_H

#include "format/fields.h"
#include "read/walk/trace_walk.h"

#define SND_BACKWARDS_NS 10000000 /* less: its thread took the time, then waited for a chunk */

struct snd_walk_thread {
    uint64_t last_raw;
    int64_t  last_ns;
    uint64_t open;   /* ranges shown and open; counted only in processes with a warm-up */
    uint64_t hidden; /* open ranges that began in the warm-up */
    void    *stream; /* merge: the chunk that it is writing into now */
    bool     seen;
};

/* How events of a kind are delivered: by snd_deliver_rare(); without a time; with one; with a name, too. */
enum snd_way { SND_WAY_RARE, SND_WAY_UNTIMED, SND_WAY_TIMED, SND_WAY_NAMED };

/* Where in the trace a chunk's reading stands. */
struct snd_place {
    const struct snd_process *process;
    struct snd_walk_thread   *thread; /* NULL: undefined, events are passed over */
    uint32_t                  index;  /* of the thread */
    uint64_t                  limit;  /* raw clock that nothing can pass: the file was closed */
    bool                      defers_ends;  /* the end of a span waits for snd_deliver_end() */
    uint64_t                  span_end;     /* raw clock of that end, 0 when none waits */
    uint64_t                  sequence;     /* what CALLS_SEQUENCE said last */
    bool                      has_sequence; /* one was seen in this chunk, for this thread */
    uint32_t                  first_own;    /* string id of the chunk's first own name */
    uint32_t                  own, own_at_thread; /* names seen; at the last THREAD */
    uint64_t run_limit;     /* raw clock up to which ranges may go by snd_deliver_run(); 0: none */
    const uint8_t *ways;    /* enum snd_way, by kind */
    uint64_t      *counted; /* its process's element of walker->seen */
};

struct snd_walker {
    struct sonde_trace     *trace;
    struct snd_visitor     *visitor;
    struct snd_walk_thread *threads; /* one for each of the trace */
    struct snd_walk_stats   stats;
    struct snd_codec       *codec;
    uint64_t               *seen;     /* events by process, as the header counts them */
    const uint32_t         *share_of; /* of threads, or NULL: all may be met (shares.h) */
    uint32_t                share;    /* that is walked now: no event is of another's thread ... */
    bool                    has_strayed; /* ... but for one that ended the walk */
};

void snd_place_start(struct snd_walker *walker, struct snd_place *place,
                     const struct snd_process *process, const struct snd_chunk_ref *chunk);
/* Whether events of a kind may go by snd_deliver_run(). */
static inline bool snd_is_run(uint8_t kind)
{
    return kind == SND_EV_CALL || kind == SND_EV_END || kind == SND_EV_SPAN;
}
/*
 * Delivers calls, spans and ends, which most events are, from `words`, of which there are `count`: up to the first event
 * that is none of these, begins at the raw clock `until` or later, ends at `end_until` or later, that the visitor does not
 * take in one piece, or that wants a closer look. Returns how many words they were: none where place->run_limit is 0.
 */
size_t snd_deliver_run(struct snd_walker *walker, struct snd_place *place, const uint64_t *words,
                       size_t count, uint64_t until, uint64_t end_until);
/* An event that is rare, or that refers to what is in its chunk; false: it cannot be one. */
bool snd_deliver_rare(struct snd_walker *walker, struct snd_place *place, const uint64_t *words);
/* Delivers the end that a span has left waiting; false: its time cannot be. */
bool snd_deliver_end(struct snd_walker *walker, struct snd_place *place);
/* Notifies the visitor that its open ranges are unknown from here on. */
void snd_deliver_break(struct snd_walker *walker, struct snd_place *place);

/* Whether an event is not of the schedule's warm-up, whose events are recorded and not shown. */
bool snd_deliver_is_shown(const struct snd_process *process, struct snd_walk_thread *thread,
                          uint8_t kind, uint64_t word1);
/* Hands a call over as the begin and the attributes that it stands for. */
void snd_deliver_parts(const struct snd_walker *walker, const struct snd_place *place,
                       const struct snd_call_record *call, const uint64_t *sequence);

/* ----------------------------------------------- the hot path, inlined into both walks */

static inline bool snd_deliver_advance_clock_(struct snd_walker *w, struct snd_place *place,
                                              uint64_t word0)
{
    struct snd_walk_thread *t = place->thread;
    uint64_t                raw = snd_time_extend(SND_EVENT_TIME56(word0), t->last_raw);

    if (raw > place->limit)
        return false;
    int64_t ns = snd_scale_ns(&place->process->scale, raw);
    if (!snd_time_is_sane(ns))
        return false;
    t->last_raw = raw;
    if (ns < t->last_ns) {
        w->stats.clock_backwards += snd_sub(t->last_ns, ns) > SND_BACKWARDS_NS;
        return true;
    }
    t->last_ns = ns;
    return true;
}

/* Counts an event whose time has been told; false: it was warm-up, which is not shown. */
static inline bool snd_deliver_count_shown_(struct snd_walker *w, struct snd_place *place,
                                            uint8_t kind, const uint64_t *words)
{
    if (place->process->valid_from != 0 &&
        !snd_deliver_is_shown(place->process, place->thread, kind,
                              SND_KIND_WORDS(kind) > 1 ? words[1] : 0)) {
        w->stats.warmup_events++;
        return false;
    }
    w->stats.events++;
    return true;
}

/* Time of an event that has none: that of the event before it, or the thread's start if it is the first. */
static inline int64_t snd_deliver_time_(const struct snd_walker *w, const struct snd_place *place)
{
    int64_t ns = place->thread->last_ns;

    return ns != INT64_MIN ? ns : w->trace->threads[place->index].shown.start_ns;
}

/* Hands an event to the visitor, unless it was warm-up: then false. */
static inline bool snd_deliver_show_(struct snd_walker *w, struct snd_place *place, uint8_t kind,
                                     const uint64_t *words)
{
    struct snd_walk_thread *t = place->thread;
    struct snd_visitor     *v = w->visitor;

    if (!snd_deliver_count_shown_(w, place, kind, words))
        return false;
    if (kind == SND_EV_BEGIN)
        v->begin(v->user, place->index, t->last_ns, SND_LOW(words[1]), SND_HIGH(words[1]));
    else if (kind == SND_EV_END)
        v->end(v->user, place->index, t->last_ns);
    else
        v->other(v->user, place->index, snd_deliver_time_(w, place), words);
    return true;
}

/* The end of a range that has its duration in it. */
static inline bool snd_deliver_ticks_(struct snd_walker *w, struct snd_place *place, uint32_t ticks)
{
    if (ticks == 0)
        return true;
    ++*place->counted;
    place->span_end = place->thread->last_raw + ticks;
    return place->defers_ends || snd_deliver_end(w, place);
}

static inline bool snd_deliver_span_(struct snd_walker *w, struct snd_place *place,
                                     const uint64_t *words)
{
    const uint64_t begin[2] = { words[0], SND_SPAN_NAME(words[1]) };

    snd_deliver_show_(w, place, SND_EV_BEGIN, begin);
    return snd_deliver_ticks_(w, place, SND_SPAN_TICKS(words[1]));
}

static inline void snd_deliver_call_begin_(const struct snd_walker *w,
                                           const struct snd_place *place, const uint64_t *words,
                                           int64_t ns)
{
    static const struct snd_table_call none = { 0 };
    const struct snd_tables           *t = &place->process->tables;
    const struct snd_visitor          *v = w->visitor;
    uint32_t                           id = SND_LOW(words[1]);
    const struct snd_table_call       *call = id < t->call_count ? &t->calls[id] : &none;
    bool                               has_sequence = (call->record.flags & SND_CALL_SEQUENCE) &&
                        place->has_sequence; /* number 0 is one too */
    const uint64_t *sequence = has_sequence ? &place->sequence : NULL;

    if (v->call)
        v->call(v->user, place->index, ns, call, sequence);
    else
        snd_deliver_parts(w, place, &call->record, sequence);
}

static inline bool snd_deliver_call_(struct snd_walker *w, struct snd_place *place,
                                     const uint64_t *words)
{
    if (snd_deliver_count_shown_(w, place, SND_EV_BEGIN, words))
        snd_deliver_call_begin_(w, place, words, place->thread->last_ns);
    return snd_deliver_ticks_(w, place, SND_SPAN_TICKS(words[1]));
}

static inline bool snd_deliver_api_(struct snd_walker *w, struct snd_place *place,
                                    const uint64_t *words)
{
    const uint64_t begin[2] = { words[0], SND_SPAN_NAME(words[1]) };
    const uint64_t call[2] = { SND_WORD0_ATTR64(SND_ATTR_API), words[2] };

    if (snd_deliver_show_(w, place, SND_EV_BEGIN, begin)) {
        w->stats.events++; /* as if it had been written apart */
        w->visitor->other(w->visitor->user, place->index, place->thread->last_ns, call);
    }
    return snd_deliver_ticks_(w, place, SND_SPAN_TICKS(words[1]));
}

/* The end that is part of an event which is not shown. */
static inline bool snd_deliver_skip_end_(const struct snd_place *place, const uint64_t *words)
{
    *place->counted += snd_event_weight(words) - 1;
    return true;
}

/* An event of a known kind that is its thread's and refers to the tables alone; false: it cannot be one. */
static inline __attribute__((always_inline)) bool snd_deliver_plain(struct snd_walker *w,
                                                                    struct snd_place  *place,
                                                                    const uint64_t    *words,
                                                                    bool               is_timed)
{
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (!place->thread) {
        w->stats.lost_threads++;
        return snd_deliver_skip_end_(place, words);
    }
    if (is_timed && !snd_deliver_advance_clock_(w, place, words[0]))
        return !snd_deliver_skip_end_(place, words);
    if (kind == SND_EV_SPAN)
        return snd_deliver_span_(w, place, words);
    if (kind == SND_EV_CALL)
        return snd_deliver_call_(w, place, words);
    if (kind == SND_EV_API)
        return snd_deliver_api_(w, place, words);
    if (kind == SND_EV_ATTR && SND_ATTR_KEY(words[0]) == SND_ATTR_CALLS_SEQUENCE) {
        place->sequence = SND_ATTR_VALUE(words[0]);
        place->has_sequence = true;
        return true;
    }
    snd_deliver_show_(w, place, kind, words);
    return true;
}

/* Delivers one whole event; false: it cannot be one. */
static inline bool snd_deliver(struct snd_walker *walker, struct snd_place *place,
                               const uint64_t *words)
{
    uint8_t way = place->ways[SND_EVENT_KIND(words[0])];

    ++*place->counted;
    if (way == SND_WAY_RARE || (way == SND_WAY_NAMED && (words[1] & SND_OWN_NAME)))
        return snd_deliver_rare(walker, place, words);
    return snd_deliver_plain(walker, place, words, way != SND_WAY_UNTIMED);
}

/* merge.c: the walk by time. */
SND_CHECKED enum sonde_status snd_walk_merged(struct snd_walker *walker, struct sonde_error *err);

/* 0: unknown, 1: timed, 2: not timed. */
extern const uint8_t snd_event_class[256];

#endif
