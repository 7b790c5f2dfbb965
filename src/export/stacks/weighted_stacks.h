/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/stacks/weighted_stacks.h - call stacks that have a weight each, bytes or events, as folded text and for speedscope.
 *
 * Stacks are in groups, each of which is a root of the folded text, and a profile of speedscope.
 *
 * Layer: export. Threads: as a trace.
 */
#ifndef SND_EXPORT_STACKS_WEIGHTED_STACKS_H
#define SND_EXPORT_STACKS_WEIGHTED_STACKS_H

#include "base/text/buf.h"
#include "base/files/sink.h"
#include "model/samples/mixed_stacks.h"

struct snd_weighted_stack {
    uint32_t                      group;
    const struct snd_mixed_frame *frames; /* innermost first */
    size_t                        count;
    uint64_t                      weight; /* 0: it is left out */
};

struct snd_weighted_source {
    struct sonde_trace *trace;
    void               *user;
    uint32_t            group_count;
    bool (*next)(void *user, struct snd_weighted_stack *stack); /* false: the end */
    void (*rewind)(void *user);
    void (*name)(void *user, uint32_t group, struct sonde_buffer *name);
    const char *(*unit)(void *user, uint32_t group); /* as speedscope has it */
};

/* Errors: SONDE_E_NOMEM. */
typedef enum sonde_status snd_weighted_write(const struct snd_weighted_source *source,
                                             struct snd_out *out, struct sonde_error *err);
snd_weighted_write        snd_weighted_folded;
snd_weighted_write        snd_weighted_speedscope;

#endif
