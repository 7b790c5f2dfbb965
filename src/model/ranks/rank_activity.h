/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/rank_activity.h - what the threads of each rank do, from moment to moment.
 *
 * A thread does what the innermost range tells that counts: a collective inside an operator is communication. The time of a rank
 * is handed over in stretches, each of which ends where one of its threads begins to do something else.
 *
 * Its functions are for a walk of ranges by time within each process (snd_collective_watcher).
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_RANK_ACTIVITY_H
#define SND_MODEL_RANKS_RANK_ACTIVITY_H

#include "model/ranges/assembly.h"

enum snd_doing { SND_NOTHING, SND_COMPUTES, SND_LOADS, SND_COMMUNICATES, SND_DOINGS };

struct snd_thread_activity {
    uint32_t open[SND_DOINGS]; /* ranges of each kind */
    uint8_t  doing;            /* enum snd_doing */
    uint8_t  leaf;             /* what its leaf under way does ... */
    int64_t  end_ns;           /* ... and when it ends */
    uint32_t next_end; /* thread of the process with the next leaf under way, or SONDE_NONE */
};

struct snd_process_activity {
    uint32_t threads[SND_DOINGS]; /* that do it now */
    int64_t  first_ns, at_ns;     /* what was handed over, once it began */
    int64_t  last_ns;             /* the last moment at which nothing changed */
    uint32_t ends;    /* thread with the leaf under way that ends first; SONDE_NONE: none */
    bool     is_rank; /* others are passed over */
    bool     began;
    struct { /* the range that has begun last, while it is not judged; lane NULL: none */
        struct snd_lane *lane;
        uint32_t         place;
        uint64_t         order;
    } fresh;
};

struct snd_activity {
    struct sonde_trace *trace;
    void               *user;
    /* From `from_ns`, where the last one of the process ended, to `to_ns` so many threads did each. */
    void (*stretch)(void *user, uint32_t process, const uint32_t threads[SND_DOINGS],
                    int64_t from_ns, int64_t to_ns);
    struct snd_thread_activity  *threads;
    struct snd_process_activity *processes;
    uint8_t                     *by_name; /* enum snd_doing that a name alone tells, plus one */
};

/* What a range does as far as its name alone tells; SND_NOTHING: it does not. */
enum snd_doing snd_doing_by_name(struct snd_text name);

/* `user` and `stretch` are set, the rest is zero. False: out of memory. Release it whatever this returns. */
SND_CHECKED bool snd_activity_begin(struct snd_activity *activity, struct sonde_trace *trace);
void             snd_activity_release(struct snd_activity *activity);
/* How many processes are ranks: each that says its rank; all, where none does. A process alone is no job. */
uint32_t snd_activity_rank_count(const struct snd_activity *activity);

/* To be called with what the walk hands over. */
void snd_activity_open(struct snd_activity *activity, struct snd_lane *lane,
                       struct snd_open_range *open);
/* Returns what it was. */
enum snd_doing snd_activity_close(struct snd_activity *activity, struct snd_lane *lane,
                                  struct snd_open_range *open);
enum snd_doing snd_activity_kind(struct snd_activity *activity, const struct snd_lane *lane,
                                 const struct snd_range *shared);
void           snd_activity_leaf(struct snd_activity *activity, const struct snd_lane *lane,
                                 const struct snd_leaf *leaf, enum snd_doing does);
/* A stretch ends here, whatever its threads do. */
void snd_activity_step(struct snd_activity *activity, uint32_t process, int64_t ns);
/* The walk is over. */
void snd_activity_end(struct snd_activity *activity);

#endif
