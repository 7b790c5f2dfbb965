/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/collective_rows.h - collectives of a job added up: a row for each group, kind and size.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_COLLECTIVE_ROWS_H
#define SND_MODEL_RANKS_COLLECTIVE_ROWS_H

#include "model/ranks/collectives.h"

#define SND_UNFINISHED_MAX 100u /* collectives that never completed, and that are listed each */

struct snd_collective_row {
    uint32_t                 group;
    enum snd_collective_kind kind;
    uint64_t                 size_bytes;
    uint64_t                 count; /* collectives, whatever the number of ranks */
    uint64_t                 whole; /* of those, that all ranks of the group were recorded in */
    int64_t  duration_ns; /* from call to end: mean over the ranks, sum over collectives */
    int64_t  wait_ns;     /* of that, until the last one called; of whole ones, as the next */
    int64_t  transfer_ns; /* from the last call to the last end */
    uint64_t unfinished;  /* never completed */
    uint64_t mismatched;  /* ranks called different kinds, or gave different sizes */
    uint32_t last_rank;   /* that came last most often; SONDE_NONE: no whole one */
    uint64_t last_count;
};

/* One that never completed. */
struct snd_unfinished {
    uint32_t                 group;
    enum snd_collective_kind kind;
    uint64_t                 size_bytes;
    int64_t                  sequence, start_ns;
    uint32_t  process, stack; /* of the first rank that came, and its call; 0: none */
    uint32_t *ranks;          /* those that came, then those that did not. Owned */
    uint32_t  came, absent;
};

struct snd_collective_rows {
    struct snd_groups          groups;
    struct snd_collective_row *rows;
    uint32_t                   count, room;
    struct snd_unfinished     *unfinished;
    uint32_t                   unfinished_count, unfinished_room;
    uint64_t                   unfinished_all;
    struct snd_map             index;   /* of rows */
    struct snd_map             last_by; /* row, rank: how often it came last */
    bool                       failed;
};

/*
 * Owns:   the caller, who frees *out with snd_collective_rows_free().
 * Errors: as snd_collectives_walk().
 */
SND_CHECKED enum sonde_status snd_collective_rows_make(struct sonde_trace          *trace,
                                                       struct snd_collective_rows **out,
                                                       struct sonde_error          *err);
void                          snd_collective_rows_free(struct snd_collective_rows *rows);

#endif
