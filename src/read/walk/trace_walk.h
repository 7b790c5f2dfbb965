/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/trace_walk.h - all events of a trace, handed to a visitor.
 *
 * By thread: chunk after chunk in the order in which they came into use; the fastest.
 * By time: chunks merged on the trace's axis (merge.c); only those that overlap are open. A visitor that has `settled` does with the
 * order of time within each process: they take turns, each for a stretch of time, so that few events have to be compared.
 *
 * In both, the events of one thread come in order, their times never fall, what is older than
 * a schedule's warm-up is left out, and where a chunk is damaged the visitor is handed a gap
 * that closes everything, so that ranges before and after are not taken for each other's.
 *
 * Layer: read. Threads: one at a time.
 */
#ifndef SND_READ_WALK_TRACE_WALK_H
#define SND_READ_WALK_TRACE_WALK_H

#include "read/file/cursor.h"
#include "read/reader.h"

/* Long enough for hundreds of ranges of a process, short enough that few collectives of a job are kept meanwhile. */
#define SND_STRETCH_NS ((int64_t)1 << 22)

/* A CALL or SPAN that has its duration in it: a range without anything inside. */
struct snd_leaf {
    int64_t  start_ns, end_ns;
    uint32_t id;           /* of the call record, or of the span's name, which there is */
    bool     is_call;      /* not a span */
    bool     has_sequence; /* the chunk has told one, of calls whose record has the flag */
    uint64_t sequence;
};

/* A DEVICE or DEVICE_NODE; ids are the process's. */
struct snd_device_work {
    int64_t  start_ns, duration_ns;
    uint64_t node; /* 0 none */
    uint32_t work, queue, correlation;
    uint32_t thread; /* that wrote it: an index of the trace */
};

/* `thread` is an index of the trace; ids are the process's. `stop` ends the walk. */
struct snd_visitor {
    void (*begin)(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes);
    void (*end)(void *user, uint32_t thread, int64_t ns);
    /* Every other known kind but THREAD; the words as in format/fields.h. */
    void (*other)(void *user, uint32_t thread, int64_t ns, const uint64_t *words);
    /*
     * May be NULL. In place of begin and attributes: a range that a framework made, by its call record.
     * `sequence`: the number that the chunk has told, of calls whose record has the flag; NULL: none.
     */
    void (*call)(void *user, uint32_t thread, int64_t ns, const struct snd_table_call *call,
                 const uint64_t *sequence);
    /*
     * May be NULL. In place of call or begin, and end, at the time of the begin. Other threads' events
     * until the end come after it; `leaf_in_order`: there are none, a range that has some is not a leaf.
     * False: not taken; then call or begin, and end follow.
     */
    bool (*leaf)(void *user, uint32_t thread, const struct snd_leaf *leaf);
    /*
     * May be NULL. Work of a device, which `other` is not handed: it was written by some thread after it
     * was done, and is in no order.
     */
    void (*device)(void *user, uint32_t process, const struct snd_device_work *work);
    /*
     * May be NULL, else a walk by time is by process within each stretch of time (SND_STRETCH_NS). Called between stretches, and
     * at the end (INT64_MAX): what comes from now on is of `ns` or later.
     */
    void (*settled)(void *user, int64_t ns);
    void *user;
    bool  stop;
    bool  leaf_in_order;
};

struct snd_walk_stats {
    uint64_t events;         /* delivered */
    uint64_t warmup_events;  /* left out */
    uint64_t unknown_events; /* of a later version: stepped over */
    uint64_t lost_threads;   /* events of a thread that the tables do not define */
    uint64_t damaged_chunks;
    uint64_t clock_backwards; /* times that had to be raised to the one before */
    uint64_t missing_events;  /* closed files had them when they were closed */
};

/* Adds what another walk met. */
void snd_walk_stats_add(struct snd_walk_stats *sum, const struct snd_walk_stats *one);

/* `stats` may be NULL. Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. */
SND_CHECKED enum sonde_status snd_walk(struct sonde_trace *trace, enum sonde_order order,
                                       struct snd_visitor *visitor, struct snd_walk_stats *stats,
                                       struct sonde_error *err);

/* The trace's index of the thread with an id of the process, or of the one for undefined ids; SONDE_NONE: there is none. */
static inline uint32_t snd_thread_of(const struct snd_process *process, uint32_t id)
{
    uint32_t at = id - 1; /* 0 wraps to undefined */
    uint32_t defined = process->tables.thread_count ? process->tables.thread_count - 1 : 0;

    if (at >= defined)
        at = defined;
    return at < process->thread_count ? process->first_thread + at : SONDE_NONE;
}

/*
 * The thread that a SAMPLE or FUNCTION is about. The visitor is handed the thread that wrote it: the
 * events of one thread come in order, and these may be read before or after what their thread did
 * itself.
 */
uint32_t snd_subject_thread(const struct sonde_trace *trace, uint32_t lane, const uint64_t *words);

/*
 * Of a SAMPLE or SAMPLE_RUN: the time that it stands for, and when its stack was read. `ns` is the event's
 * time. Begin and end are scaled each: times of one thread that follow each other do so in nanoseconds, too.
 */
struct snd_sample_times {
    int64_t begin_ns, end_ns, read_ns;
};
struct snd_sample_times snd_sample_times(const struct sonde_trace *trace, uint32_t lane, int64_t ns,
                                         const uint64_t *words);

/* An event as the public walk shows it, from the words that `other` is handed; false: no such kind. */
bool snd_event_show(const struct sonde_trace *trace, uint32_t thread, int64_t ns,
                    const uint64_t *words, struct sonde_event *event);

/* The raw clock of the last event of a file that was not closed; 0 if it has none. */
SND_CHECKED enum sonde_status snd_walk_latest(const struct snd_process *process, uint64_t *latest,
                                              struct sonde_error *err);

#endif
