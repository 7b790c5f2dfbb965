/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/groups.h - process groups of a job, and what the calls of collectives say of themselves.
 *
 * A group is known by its job, its name and its ranks. What a call says (COLLECTIVE, docs/FORMAT.md) is read once for
 * each text of a process.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_GROUPS_H
#define SND_MODEL_RANKS_GROUPS_H

#include "base/data/map.h"
#include "read/reader.h"

enum snd_collective_kind {
#define SND_COLLECTIVE(name, word, from, to, per) SND_COLLECTIVE_##name,
#define SND_CALLED(name, prefix)
#include "model/ranks/collective_kinds.def"
#undef SND_CALLED
#undef SND_COLLECTIVE
    SND_COLLECTIVE_KINDS
};

const char *snd_collective_word(enum snd_collective_kind kind);
/* How many bytes go over a rank's link for each byte of the collective's size. */
double snd_collective_bus_share(enum snd_collective_kind kind, uint32_t group_size);

struct snd_group {
    struct sonde_text name, description, job;
    uint32_t          size;  /* ranks in it; 0: not known */
    uint32_t         *ranks; /* of the job, in the group's order; NULL: not known. Owned */
    bool is_async;           /* its work is done by other threads, which have ranges of their own */
};

/* What a call says of a collective. */
struct snd_collective_spec {
    uint32_t                 group; /* a number of `groups` */
    enum snd_collective_kind kind;
    uint64_t                 size_bytes; /* the larger of what the rank gives and gets */
    struct sonde_text        dtype;
    uint32_t                 own, peer; /* ranks in the group; SONDE_NONE: not said, none */
    int64_t                  sequence;  /* where the text itself says it, else -1 */
};

struct snd_groups {
    struct sonde_trace         *trace;
    struct snd_texts            keys; /* job, name and ranks of each group */
    struct snd_group           *groups;
    uint32_t                    count, room;
    struct snd_map              index; /* process, string's id: to specs */
    struct snd_collective_spec *specs;
    uint32_t                    spec_count, spec_room;
    bool                        has_async; /* some process of the trace has ranges of such work */
};

void snd_groups_begin(struct snd_groups *groups, struct sonde_trace *trace);
/* Whether any text of the trace describes a collective. */
bool snd_groups_any(const struct sonde_trace *trace);
void snd_groups_release(struct snd_groups *groups);

/* What the text `id` of a process says: a number of `specs`; SONDE_NONE: memory is out. */
uint32_t snd_groups_spec(struct snd_groups *groups, uint32_t process, uint32_t id);

/* The job's rank of the group's `own`-th; SONDE_NONE: not known. */
uint32_t snd_group_rank(const struct snd_group *group, uint32_t own);

#endif
