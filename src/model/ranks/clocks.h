/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/clocks.h - how far the clocks of a job's hosts are apart, from the collectives that their ranks met in.
 *
 * Nobody leaves a collective before the last one has entered it: of two hosts, each collective gives an interval in
 * which the offset of their clocks lies for certain. Those are intersected along a line with drift, in pieces where no line fits all
 * of them or the clock bends. Within what is left, the line is a robust one through the moments at which the hosts left.
 *
 * The error that is stated is never smaller than the time by which ranks of one host leave apart, nor than what the exits scatter about the
 * line by, and never larger than the interval allows. Where no host has two ranks, or there are few collectives, it is the interval's.
 *
 * Memory: what is kept of collectives has a limit; of more, those that say most are kept.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_CLOCKS_H
#define SND_MODEL_RANKS_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* A rank in a collective, by the clock of its host. */
struct snd_stay {
    uint32_t host, rank;
    int64_t  enter_ns, exit_ns;
};

/* How far a host's clock is ahead of the reference's when it shows `at_ns`; between knots along a line. */
struct snd_clock_knot {
    int64_t at_ns;
    double  offset_ns, error_ns; /* offset: beyond the host's base */
};

struct snd_host_clock {
    int64_t                base_ns;
    struct snd_clock_knot *knots; /* by time */
    uint32_t               count, room;
    double                 drift; /* before the first knot and after the last: offset a ns ... */
    double                 drift_error; /* ... and what the error grows by */
    bool                   is_known;    /* else nothing ties it to the reference */
};

struct snd_clocks {
    struct snd_host_clock *clocks; /* of each host, once solved */
    uint32_t               host_count, reference;
    /* What was measured, for those who ask why. */
    double spread_ns;  /* by which ranks of one host leave apart; negative: no host has two */
    double by_rank_ns; /* each rank later than the one before it, as in a ring; 0: none such */
    struct snd_clock_meetings *meetings;
};

/* False: memory is out. */
bool snd_clocks_init(struct snd_clocks *clocks, uint32_t hosts);
void snd_clocks_release(struct snd_clocks *clocks);

/* A collective of a group. `stays` are put in another order. False: memory is out. */
bool snd_clocks_add(struct snd_clocks *clocks, uint32_t group, struct snd_stay *stays,
                    uint32_t count);
/* Once, after all of them. False: memory is out. */
bool snd_clocks_solve(struct snd_clocks *clocks);

/* Whether any two hosts have met. */
bool snd_clocks_any(const struct snd_clocks *clocks);

/* At a moment of the host's own clock; `error_ns` may be NULL. */
int64_t snd_clock_offset(const struct snd_host_clock *clock, int64_t at_ns, double *error_ns);

#endif
