/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/collectives.h - the collectives of a job, those of all ranks matched.
 *
 * The trace is walked once, each process by time; calls of all processes are put in order where they take turns. A collective is handed over when all ranks of its group have left it, or at the end of
 * the trace: what is kept meanwhile are the collectives that are under way, so that memory does not grow with the trace.
 * Ranks meet by job, group and sequence number; where calls have none, by their order within the group; sends and
 * receives by their order between two ranks.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_COLLECTIVES_H
#define SND_MODEL_RANKS_COLLECTIVES_H

#include "model/ranges/assembly.h"
#include "model/ranks/groups.h"
#include "sonde/sink.h"

/* A rank in a collective. */
struct snd_collective_member {
    uint32_t process, rank;    /* rank: the job's; the process's number where it is not known */
    uint32_t spec;             /* a number of groups.specs */
    uint32_t thread, name;     /* of its call; SONDE_NONE: only its work was recorded */
    uint32_t stack;            /* of its call; 0: none */
    uint32_t work_thread;      /* where its work began, if it has_work ... */
    int64_t  work_ns;          /* ... and when */
    int64_t  start_ns, end_ns; /* from its call until it left the collective */
    int64_t  arrive_ns;        /* when its work began; of one without such a range, its call */
    int64_t  enter_ns;         /* as late as can be said: of a GPU's work, when that began */
    int64_t  wait_ns;          /* from its call to the last one's; -1: not known */
    bool     is_complete;      /* it left the collective */
    bool     has_call, has_work;
    bool     has_launched; /* a GPU's work, which ends when it left */
};

struct snd_collective {
    const struct snd_group       *group;
    uint32_t                      group_number;
    int64_t                       sequence;
    enum snd_collective_kind      kind;
    uint64_t                      size_bytes;
    struct snd_collective_member *members; /* by rank */
    uint32_t                      count, room;
    uint32_t                      last; /* the member that came last, if all of them are there */
    int64_t                       last_start_ns;
    bool is_whole;    /* all ranks of the group are there: waiting and transfer are known */
    bool is_complete; /* and all have left it */
    bool kind_differs, size_differs;
    /* Ranks of the group that were recorded then and never came. */
    const uint32_t *absent;
    uint32_t        absent_count;
};

struct snd_collective_watcher {
    void *user;
    /*
     * Any may be NULL. Collectives and `began` come in the order of time; the rest in that of time within each process, a few
     * milliseconds ahead of them: `range` is given before the collective that it is a part of, `step` before its `began`.
     */
    void (*done)(void *user, const struct snd_collective *collective);
    void (*open)(void *user, struct snd_lane *lane, struct snd_open_range *range);
    void (*close)(void *user, struct snd_lane *lane, struct snd_open_range *range);
    /* In place of open() and close(), as snd_consumer has them; both or none. */
    uint32_t (*kind)(void *user, const struct snd_lane *lane, const struct snd_range *shared);
    snd_leaf_fn *leaf;
    void (*step)(void *user, uint32_t process, int64_t ns, uint64_t number);
    void (*began)(void *user, uint32_t process); /* a step */
    /* An ALLOC, a FREE or a COUNTER of the process. */
    void (*memory)(void *user, struct snd_lane *lane, const uint64_t *words);
    /*
     * Clocks are not one yet: of hosts that are seconds apart more collectives are under way than there is room for. Those
     * that come when it is full are left out, not the first, which the others will come to.
     */
    bool waits;
};

/*
 * Walks the trace and hands over what it finds. `groups` is filled in, and released by the caller whatever this returns.
 * Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED, SONDE_E_IO.
 */
SND_CHECKED enum sonde_status snd_collectives_walk(struct sonde_trace                  *trace,
                                                   struct snd_groups                   *groups,
                                                   const struct snd_collective_watcher *watcher,
                                                   struct sonde_error                  *err);

/*
 * The same in steps. One that waits (snd_wait()) is on the next walk of the trace, whoever makes it, which must be by time, of all or of each
 * process. `watcher` and `groups` stay until the end. *out may be NULL: there is nothing to look for.
 * Owns: the caller, who ends it.
 */
struct snd_collectives;
SND_CHECKED enum sonde_status snd_collectives_begin(struct sonde_trace                  *trace,
                                                    struct snd_groups                   *groups,
                                                    const struct snd_collective_watcher *watcher,
                                                    struct snd_collectives             **out,
                                                    struct sonde_error                  *err);
void                          snd_collectives_wait(struct snd_collectives *collectives);
/* Hands over the rest, if the walk went well, whose status this is and which is returned, and frees it. */
SND_CHECKED enum sonde_status snd_collectives_end(struct snd_collectives *collectives,
                                                  enum sonde_status       status,
                                                  struct sonde_error     *err);

/* "0-3,7": ranks in order, as a text. */
void snd_ranks_text(struct sonde_buffer *out, const uint32_t *ranks, size_t count);

#endif
