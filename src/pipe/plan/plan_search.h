/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/plan/plan_search.h - what the files of the planner share.
 *
 *     plan_costs.c    what a stage and a transfer take
 *     plan_tables.c   which stages and transfers are within a period
 *     plan_search.c   the least period, and its plan
 *
 * Layer: pipe. Threads: a search belongs to one call of snd_plan_find().
 */
#ifndef SND_PIPE_PLAN_PLAN_SEARCH_H
#define SND_PIPE_PLAN_PLAN_SEARCH_H

#include "pipe/plan/plan.h"

/* ----------------------------------------------------------- plan_costs.c */

/* Bytes that a stage needs whose layers hold `layers_mb` together. */
double snd_stage_memory_bytes(const struct snd_pipeline *p, double layers_mb, uint32_t first,
                              uint32_t last);
/* Seconds to send what a layer gives; infinite over no bandwidth. */
double snd_send_time(const struct snd_pipeline *p, uint32_t layer, double bandwidth_mbps);
/* Fills the costs of a plan whose stages are placed, and what is slowest. */
void snd_plan_fill_costs(const struct snd_pipeline *p, struct snd_plan *plan);
/* Says what is in the way of any plan at all; SONDE_E_STATE. */
enum sonde_status snd_plan_say_none(const struct snd_pipeline *p, struct sonde_error *err);

/* ---------------------------------------------------------- plan_tables.c */

/* Devices that are alike in everything. */
struct snd_kind {
    uint32_t type;   /* the first of its types */
    uint32_t count;  /* of devices; more than there are layers are of no use */
    uint32_t level;  /* number of its bandwidth, the least first */
    uint64_t stride; /* what one device of it adds to a state */
    uint32_t used;   /* in the state at hand */
    uint32_t span;   /* layers that one device of it can take within the period, at most */
};

/* Sets are bits, of 0 to `layers`. */
struct snd_search {
    const struct snd_pipeline *p;
    uint32_t                   layers, words; /* words: of a set */
    struct snd_kind           *kinds;
    uint32_t                   kind_count;
    double                    *bandwidths; /* in Mbit/s, sorted */
    uint32_t                   level_count;
    uint64_t                   states;
    uint64_t                  *fits;     /* [kind][start]: ends that memory allows */
    uint64_t                  *allowed;  /* [kind][start]: those within the period as well */
    uint64_t                  *sendable; /* [level]: ends whose transfer is within the period */
    uint64_t                  *reach;    /* [state][level] */
    uint64_t                  *start;    /* a set to work in */
    bool                       monotone; /* of starts in a set, the last is as good as any */
    double                    *periods;  /* what the least can be, sorted */
    size_t                     period_count, period_room;
};

static inline bool snd_set_has(const uint64_t *set, uint32_t member)
{
    return set[member / 64] >> (member % 64) & 1;
}

static inline void snd_set_put(uint64_t *set, uint32_t member)
{
    set[member / 64] |= (uint64_t)1 << (member % 64);
}

/* The ends of stages of a kind that start after layer `start`. */
static inline uint64_t *snd_search_row(const struct snd_search *s, uint64_t *table, uint32_t kind,
                                       uint32_t start)
{
    return table + ((size_t)kind * s->layers + start) * s->words;
}

bool snd_device_types_alike(const struct snd_pipeline *p, const struct snd_device_type *a,
                            const struct snd_device_type *b);

/*
 * Makes kinds and tables. Owns: the caller ends it with snd_search_release(), failed or not.
 * Errors: SONDE_E_LIMIT, SONDE_E_NOMEM, SONDE_E_STATE if there is no device.
 */
SND_CHECKED enum sonde_status snd_search_init(struct snd_search *s, const struct snd_pipeline *p,
                                              struct sonde_error *err);
void                          snd_search_release(struct snd_search *s);
/* Fills `allowed`, `sendable`, spans and `monotone` for a period. */
void snd_search_allow(struct snd_search *s, double period);

#endif
