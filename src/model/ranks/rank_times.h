/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/rank_times.h - what each rank of a job did with its time, and who made the others wait.
 *
 * The time of a rank, from its first step or range to its last range, is divided by what ran in it on any of its threads. Compute: an
 * operator. Communication: a collective, from its call to its end; exposed: while nothing computed. Copies: of a GPU. Data loading: torch's
 * DataLoader. Idle: none of these. Where a GPU worked, compute, communication and copies are its kernels, as HTA has them.
 *
 * A straggler is a rank that the others wait for. It is charged from the moment when all others had come to a
 * collective to the one when it came, each moment once. It is named if that is much (SND_STRAGGLER_PERCENT), and if it
 * would hardly ever be the same rank by chance.
 *
 * Asked for it, the same is told of each step of each rank: of its GPU, what it did while the step lasted on the host. A
 * collective counts in the step of its call.
 *
 * Memory depends on ranks and names, not on events; where steps are asked for, on their number.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_RANK_TIMES_H
#define SND_MODEL_RANKS_RANK_TIMES_H

#include "model/ranks/collectives.h"
#include "model/ranks/rank_memory.h"

#define SND_STRAGGLER_PERCENT 10   /* of the job's span that it makes the others wait, at least */
#define SND_STRAGGLER_CHANCE 0.005 /* how often chance alone may make it as much, at most */

enum snd_rank_cause {
    SND_CAUSE_COMPUTE,
    SND_CAUSE_LOADING,
    SND_CAUSE_COMMUNICATION,
    SND_CAUSE_HOST,
    SND_CAUSES,
};
extern const char *const snd_rank_cause_words[SND_CAUSES];

struct snd_rank_row {
    uint32_t process, rank; /* rank SONDE_NONE: not known */
    uint64_t step;          /* of a row of a step: its number */
    int64_t  start_ns, span_ns;
    int64_t  compute_ns, communication_ns, exposed_ns, copy_ns, loading_ns, idle_ns;
    int64_t  wait_ns;      /* in collectives, until the last rank came */
    int64_t  caused_ns;    /* that it alone made the others wait */
    int64_t  late_work_ns; /* of that, after its call: the work itself began late */
    uint64_t steps, collectives;
    uint64_t last;                  /* of those, to which it came last */
    int64_t  peaks[SND_HELD_KINDS]; /* that it held at once, of each kind ... */
    int64_t  peak_bytes; /* ... that is: on its GPUs; without any, on the CPU; -1: not recorded */
};

struct snd_straggler {
    uint32_t            row; /* a number of rows */
    enum snd_rank_cause cause;
    int64_t             more_ns;       /* than the median rank spent on that */
    double              chance;        /* that chance alone makes it as much */
    bool                is_persistent; /* in at least half of the steps */
    struct sonde_text
        where; /* the range in which it differs most from the median rank; may be empty */
};

struct snd_rank_times {
    struct snd_groups     groups;
    struct snd_rank_row  *rows;
    uint32_t              count;
    struct snd_rank_row  *steps; /* if they were asked for: by number, then rank */
    uint32_t              step_count;
    struct snd_straggler *stragglers; /* the worst first */
    uint32_t              straggler_count;
};

/*
 * Owns:   the caller, who frees *out with snd_rank_times_free().
 * Errors: as snd_collectives_walk().
 */
SND_CHECKED enum sonde_status snd_rank_times_make(struct sonde_trace *trace, bool by_step,
                                                  struct snd_rank_times **out,
                                                  struct sonde_error     *err);
void                          snd_rank_times_free(struct snd_rank_times *times);

#endif
