/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/stacks/tree_stacks.h - the paths of ranges, or of counted Python calls, as call stacks with their self time.
 *
 * For formats of stacks, of a trace without samples: what is a node of the tree there is a stack here.
 *
 * Layer: export. Threads: as a trace.
 */
#ifndef SND_EXPORT_STACKS_TREE_STACKS_H
#define SND_EXPORT_STACKS_TREE_STACKS_H

#include "base/error.h"
#include "model/samples/mixed_stacks.h"
#include "sonde/model.h"

struct snd_tree_stacks {
    struct sonde_functions *functions; /* NULL: ranges */
    struct sonde_call_tree *calls;
    struct sonde_tree      *ranges;
    struct snd_mixed_frame *frames; /* of the current stack, innermost first */
    size_t                  count;
    uint64_t                call_count;
    int64_t                 self_ns;
    uint32_t                at; /* the next node */
};

/*
 * `stacks` need not be initialised, and must be released whatever this returns.
 * Errors: SONDE_E_STATE: the trace has neither; SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_tree_stacks_open(struct snd_tree_stacks *stacks,
                                                   struct sonde_trace     *trace,
                                                   struct sonde_error     *err);
void                          snd_tree_stacks_release(struct snd_tree_stacks *stacks);
/* The next one that has time of its own, or calls; false: the end. */
bool snd_tree_stacks_next(struct snd_tree_stacks *stacks);

#endif
