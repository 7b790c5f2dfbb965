/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/critical.h - the critical path of a job: what its end waited for, through threads, streams and ranks.
 *
 * The path is walked back from the last moment of the rank that ends last. A thread that waited for a collective leads to the rank that
 * entered it last, at its entry; one that waited for a GPU to the work that it waited for; work of a GPU to the one before it on
 * its stream, or to another stream's, or to its launch, whichever was last; a thread in which nothing ran to another of its process that worked
 * meanwhile, as autograd's do. Else it goes on in the same thread.
 *
 * What each part would win if it took no time is less than the part where something else was nearly as late: at each place where the
 * path takes the latest of several, the next latest limits what is won since ranks, or thread and GPU, last waited for each other.
 *
 * Asked for it, each step has a path of its own: back from the last moment of the rank that ends it last, to where the rank that the
 * path has come to began it.
 *
 * Memory: 16 bytes for each change of what a thread does.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_CRITICAL_H
#define SND_MODEL_RANKS_CRITICAL_H

#include "read/reader.h"

enum snd_part_kind {
    SND_PART_HOST, /* nothing that is known: the program's own code */
    SND_PART_OPERATOR,
    SND_PART_LOADING,
    SND_PART_COLLECTIVE,
    SND_PART_CALL, /* of a GPU's API */
    SND_PART_KERNEL,
    SND_PART_COPY,
    SND_PART_LAUNCH, /* from the call to the begin of what it launched; or a stream that stands still */
    SND_PART_KINDS,
};
extern const char *const snd_part_kind_words[SND_PART_KINDS];

struct snd_critical_row {
    uint32_t           process, rank; /* rank SONDE_NONE: not known */
    uint32_t           thread;        /* of the trace; SONDE_NONE: a stream */
    uint32_t           queue;         /* of the process: where a GPU worked */
    enum snd_part_kind kind;
    uint32_t           name; /* of the trace; SONDE_NONE: none */
    int64_t            ns;   /* on the path */
    uint64_t           count;
    int64_t            win_ns;  /* that the job were shorter if it took no time */
    uint64_t           step;    /* that the path is of, if steps were asked for */
    int64_t            path_ns; /* that the path lasts which it lies on */
};

struct snd_critical {
    struct snd_critical_row *rows; /* by step, the longest first */
    uint32_t                 count, room;
    int64_t                  span_ns; /* of the path; of those of all steps */
    uint64_t                 steps;   /* of the rank that it ends in */
};

/*
 * Owns:   the caller, who frees *out with snd_critical_free().
 * Errors: as snd_collectives_walk().
 */
SND_CHECKED enum sonde_status snd_critical_make(struct sonde_trace *trace, bool by_step,
                                                struct snd_critical **out, struct sonde_error *err);
void                          snd_critical_free(struct snd_critical *critical);

#endif
