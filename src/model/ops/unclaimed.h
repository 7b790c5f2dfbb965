/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/unclaimed.h - memory that no range took, until it is known whether a Python function did.
 *
 * A call of a Python function is recorded when it returns, after the memory that it took. As in
 * torch.profiler, that memory is the function's, and has no row "[memory]".
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_OPS_UNCLAIMED_H
#define SND_MODEL_OPS_UNCLAIMED_H

#include <stdbool.h>
#include <stdint.h>

struct snd_unclaimed_item {
    int64_t ns, bytes;
    bool    is_cpu;
};

struct snd_unclaimed_list {
    struct snd_unclaimed_item *items; /* by time */
    uint32_t                   count, room;
};

/* All zero is an empty one. */
struct snd_unclaimed {
    struct snd_unclaimed_list *threads;
    uint32_t                   count;
};

/* False: out of memory. */
bool snd_unclaimed_begin(struct snd_unclaimed *unclaimed, uint32_t threads);
bool snd_unclaimed_add(struct snd_unclaimed *unclaimed, uint32_t thread,
                       const struct snd_unclaimed_item *item);
/* A call of a function returns on the thread, that began then: what came since is its own. */
void snd_unclaimed_claim(struct snd_unclaimed *unclaimed, uint32_t thread, int64_t start_ns);
void snd_unclaimed_release(struct snd_unclaimed *unclaimed);

#endif
