/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/samples/sample_lines.h - source lines of sampled stacks, each once, of any language that has lines.
 *
 * Layer: model (sees base/, format/, read/). Threads: one at a time.
 */
#ifndef SND_MODEL_SAMPLES_SAMPLE_LINES_H
#define SND_MODEL_SAMPLES_SAMPLE_LINES_H

#include "base/error.h"
#include "sonde/model.h"

struct snd_sample_line {
    struct sonde_text function, file;
    uint32_t          first_line, line;
    bool              is_native;
    uint64_t          samples;           /* in which it was running */
    int64_t           self_ns, total_ns; /* self: its function was innermost; of running threads */
    /*
     * The same where a stack with several functions of the line (a comprehension in 3.11, a lambda)
     * counts for one of them: over all functions they add up to the line's.
     */
    uint64_t once_samples;
    int64_t  once_ns;
};

/* By function, the one with the longest self time first; its lines in their order. */
struct snd_sample_lines {
    struct snd_sample_line *rows;
    uint32_t                count, room;
    int64_t                 whole_ns; /* of all samples: what shares refer to */
};

/* Release it whatever this returns. Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. */
SND_CHECKED enum sonde_status snd_sample_lines_make(struct snd_sample_lines *lines,
                                                    struct sonde_trace      *trace,
                                                    struct sonde_error      *err);
void                          snd_sample_lines_release(struct snd_sample_lines *lines);

#endif
