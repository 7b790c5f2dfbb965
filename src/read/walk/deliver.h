/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/deliver.h - one event of a chunk to the visitor: its time, its thread, whether it was warm-up.
 *
 * Shared by the two walks (trace_walk.c, merge.c). walk_rare.c has the kinds that most chunks lack.
 *
 * Layer: read. Threads: one at a time.
 */
#ifndef SND_READ_WALK_DELIVER_H
#define SND_READ_WALK_DELIVER_H

#include "read/walk/trace_walk.h"

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
    uint64_t leaf_limit; /* raw clock up to which calls may go by snd_deliver_leaves(); 0: none */
    const uint8_t *ways; /* enum snd_way, by kind */
    uint64_t      *counted; /* its process's element of walker->seen */
};

struct snd_walker {
    struct sonde_trace     *trace;
    struct snd_visitor     *visitor;
    struct snd_walk_thread *threads; /* one for each of the trace */
    struct snd_walk_stats   stats;
    struct snd_codec       *codec;
    uint64_t               *seen; /* events by process, as the header counts them */
};

void snd_place_start(struct snd_walker *walker, struct snd_place *place,
                     const struct snd_process *process, const struct snd_chunk_ref *chunk);
/* Goes over to the thread of that id. */
void snd_place_switch(struct snd_walker *walker, struct snd_place *place, uint32_t thread_id);
/*
 * Delivers the calls in `words`, of which there are `count`, up to the first event that is none, is not
 * closed, begins at the raw clock `until` or later, ends at `end_until` or later, or that the visitor
 * does not take. Returns how many words they were. Only where place->leaf_limit is not 0.
 */
size_t snd_deliver_leaves(struct snd_walker *walker, struct snd_place *place, const uint64_t *words,
                          size_t count, uint64_t until, uint64_t end_until);
/* An event of a known kind that is its thread's and refers to the tables alone; false: it cannot be one. */
bool snd_deliver_known(struct snd_walker *walker, struct snd_place *place, const uint64_t *words,
                       bool is_timed);
/* The same for events that are rare, or that refer to what is in their chunk. */
bool snd_deliver_rare(struct snd_walker *walker, struct snd_place *place, const uint64_t *words);
/* Delivers the end that a span has left waiting; false: its time cannot be. */
bool snd_deliver_end(struct snd_walker *walker, struct snd_place *place);
/* Notifies the visitor that its open ranges are unknown from here on. */
void snd_deliver_break(struct snd_walker *walker, struct snd_place *place);

/* Delivers one whole event; false: it cannot be one. */
static inline bool snd_deliver(struct snd_walker *walker, struct snd_place *place,
                               const uint64_t *words)
{
    uint8_t way = place->ways[SND_EVENT_KIND(words[0])];

    ++*place->counted;
    if (way == SND_WAY_RARE || (way == SND_WAY_NAMED && (words[1] & SND_OWN_NAME)))
        return snd_deliver_rare(walker, place, words);
    return snd_deliver_known(walker, place, words, way != SND_WAY_UNTIMED);
}

/* merge.c: the walk by time. */
SND_CHECKED enum sonde_status snd_walk_merged(struct snd_walker *walker, struct sonde_error *err);

/* 0: unknown, 1: timed, 2: not timed. */
extern const uint8_t snd_event_class[256];

#endif
