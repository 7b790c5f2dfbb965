/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/summary/ledger.h - counts of what is missing, and the sentences about them.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_SUMMARY_LEDGER_H
#define SND_MODEL_SUMMARY_LEDGER_H

#include "model/ranges/assembly.h"

enum snd_ledger_key {
#define SND_LEDGER(key, one, many, advice) SND_LEDGER_##key,
#include "model/summary/ledger.def"
#undef SND_LEDGER
    SND_LEDGER_COUNT,
};

struct snd_ledger {
    uint64_t counts[SND_LEDGER_COUNT];
    int      os_error;       /* why the file could not be extended, or 0 */
    int      child_error;    /* errno of the latest forked process without a trace */
    char     uncounted[224]; /* operators without FLOPs, with their shares of the time */
    char     unmapped[160];  /* kinds of events of an imported file that have no place in a trace */
    char     switched[192];  /* why Python calls were not seen in the way chosen first */
    char     absent[192];    /* why GPUs were not recorded */
    uint64_t early_ns;       /* by how much work of a GPU began too early, at most */
    uint64_t unclosed_roots; /* of not_closed: files whose process no other of the trace started */
    uint64_t native_samples; /* of native samplers: what cut and broken stacks are a part of */
    uint64_t rounds;         /* of samplers: what missed, torn and unread ones are a part of */
};

/* Adds what opening and walking the trace found. */
void snd_ledger_fill(struct snd_ledger *ledger, const struct sonde_trace *trace,
                     const struct snd_assembly_stats *stats);

/* One item for each count that is not zero, in the order of ledger.def; returns how many. */
size_t snd_ledger_list(const struct snd_ledger *ledger,
                       struct sonde_ledger_item items[SND_LEDGER_COUNT]);

#endif
