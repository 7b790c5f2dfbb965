/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/diff/diff.h - two sides of one or more runs each, row by row.
 *
 *     diff_sampler.c  the times of each row in each step and each call, of one walk
 *     diff_sources.c  what is compared: operators, modules, functions, layers, lines, the run itself
 *     diff_match.c    which row of A is which of B
 *     diff_stats.c    whether times differ by more than noise
 *     diff.c         all of it in order
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_DIFF_DIFF_H
#define SND_MODEL_DIFF_DIFF_H

#include "base/error.h"
#include "base/data/map.h"
#include "model/diff/diff_stats.h"
#include "model/ranges/assembly.h"
#include "sonde/model.h"

/* What a row amounts to in one run: in all of it, and in its steps. */
struct snd_diff_sums {
    uint64_t count;
    int64_t  time_ns, bytes; /* self */
    double   flops;
};

struct snd_diff_item {
    struct sonde_text      key, name; /* what it is matched by, and shown as: of run->texts */
    struct snd_diff_sums   all, in_steps;
    struct snd_diff_series steps, calls; /* times; in run->arena */
};

struct snd_diff_run {
    struct snd_diff_item  *items; /* in the order in which they began */
    uint32_t               count, room;
    uint32_t               steps;      /* with a range of a row in them */
    bool                   is_sampled; /* counts are of samples, not of calls */
    bool                   has_memory; /* allocations or frees, whatever their sums are */
    struct snd_diff_series step_times;
    struct snd_texts       texts;
    struct snd_arena       arena;
};
void snd_diff_run_release(struct snd_diff_run *run);

/* What rows have beside their times. */
enum { SND_DIFF_COUNT = 1, SND_DIFF_MEMORY = 2, SND_DIFF_FLOPS = 4 };

/* What can be compared. The last is there for every run: one row, the run itself. */
struct snd_diff_source {
    const char *name; /* --by NAME */
    const char *unit; /* what a time is of, where steps are not compared */
    const char *summary;
    unsigned    has; /* SND_DIFF_COUNT and so on */
    enum sonde_status (*fill)(struct sonde_trace *trace, struct snd_diff_run *run,
                              struct sonde_error *err);
};
extern const struct snd_diff_source snd_diff_sources[];
extern const size_t                 snd_diff_source_count;

/* ------------------------------------------------------------------- sampler */

#define SND_DIFF_STEPS_MOST 4096u /* later steps are not sampled */
#define SND_DIFF_CALLS_MOST 4096u /* of a row; of more, every second, fourth, .. is kept */

struct snd_diff_tally;
struct snd_diff_step;

/* A consumer beside a model. All zero but `trace`: nothing seen. */
struct snd_diff_sampler {
    const struct sonde_trace *trace;
    struct snd_diff_step     *steps;
    struct snd_diff_tally    *tallies;
    uint32_t                  step_count, step_room, tally_count, tally_room;
    uint32_t                 *latest; /* of each process: its latest step, plus one */
    struct snd_map            by_id;
    bool                      has_memory; /* something was allocated or freed */
    bool                      failed;     /* memory ran out */
};
struct snd_consumer snd_diff_sampler_consumer(struct snd_diff_sampler *sampler);
void                snd_diff_sampler_release(struct snd_diff_sampler *sampler);
/* Moves what was seen of row `id` to `item`; false: out of memory. */
bool snd_diff_sampler_give(const struct snd_diff_sampler *sampler, uint32_t id,
                           struct snd_diff_run *run, struct snd_diff_item *item);
/* The steps themselves, and whether there is memory; false: out of memory. */
bool snd_diff_sampler_steps(const struct snd_diff_sampler *sampler, struct snd_diff_run *run);

/* -------------------------------------------------------------------- result */

enum snd_diff_match { SND_DIFF_BOTH, SND_DIFF_RENAMED, SND_DIFF_NEW, SND_DIFF_GONE };

/* Of a side, for one step, or for one run where there are no steps: the mean of its runs. */
struct snd_diff_value {
    double   count, time_ns, bytes, flops;
    uint64_t samples;
};

struct snd_diff_row {
    struct sonde_text      name, was; /* was: of A, where it is another */
    enum snd_diff_match    match;
    struct snd_diff_answer time;
    struct snd_diff_value  a, b;
    bool                   count_changed, bytes_changed, flops_changed; /* exactly, in every run */
};

struct snd_diff {
    const struct snd_diff_source *source;
    struct snd_diff_row          *rows;
    size_t                        count;
    struct snd_diff_noise         noise;
    struct snd_diff_answer        whole; /* a step; without steps, all rows of a run */
    double                        a_whole_ns, b_whole_ns; /* likewise, the mean */
    bool                          has_steps;
    bool                          is_sampled; /* a run is: counts are not compared */
    uint32_t                      a_runs, b_runs, a_steps, b_steps;
    bool                          cut;  /* there are more than SND_DIFF_STEPS_MOST steps */
    struct snd_diff_run          *runs; /* of A, then of B */
    /* Set by the caller, where the run itself is compared for want of rows: the first of `runs` that has none,
     * plus one; behind the last: each has some, but of no kind that all have. 0: neither. */
    uint32_t lacking;
};

/* Owns: the caller, until snd_diff_free(); texts are its own. Traces are of A, then of B. */
SND_CHECKED enum sonde_status snd_diff_new(struct sonde_trace *const *traces, size_t a_runs,
                                           size_t b_runs, const struct snd_diff_source *source,
                                           double least_effect, struct snd_diff **out,
                                           struct sonde_error *err);
void                          snd_diff_free(struct snd_diff *diff);
/* Whether a run of them has this: SND_DIFF_COUNT, SND_DIFF_MEMORY or SND_DIFF_FLOPS. */
bool snd_diff_run_has(const struct snd_diff *diff, uint32_t run, unsigned quantity);
/* How a person counts them: from 1 on side "A", then on side "B". */
uint32_t    snd_diff_run_number(const struct snd_diff *diff, uint32_t run);
const char *snd_diff_run_side(const struct snd_diff *diff, uint32_t run);

/* A row of a side over its runs. */
struct snd_diff_line {
    const struct snd_diff_item **items; /* of each run; NULL: that run does not have it */
    const struct snd_diff_item  *first;
    uint32_t                     partner; /* of the other side, plus one; 0: none */
    bool                         by_place;
};
struct snd_diff_side {
    struct snd_diff_line *lines;
    uint32_t              count, room, runs;
    struct snd_texts      keys; /* a key's number is that of its line */
    struct snd_arena      arena;
};
/* False: out of memory. */
bool snd_diff_side_fill(struct snd_diff_side *side, const struct snd_diff_run *runs,
                        uint32_t count);
void snd_diff_side_release(struct snd_diff_side *side);
/* Finds partners by key, and then by place if `by_place`; false: out of memory. */
bool snd_diff_match(struct snd_diff_side *a, struct snd_diff_side *b, bool by_place);

#endif
