/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/chance.h - amounts of each rank in each of many blocks of time, and whether one rank has more than chance gives it.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_CHANCE_H
#define SND_MODEL_RANKS_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

#define SND_BLOCKS_MAX 512u /* more are merged, two and two */

struct snd_blocks {
    uint32_t ranks, count;
    uint32_t fold;    /* begins of blocks that make one now: a power of two */
    uint64_t begun;   /* so far */
    int64_t *amounts; /* by block, then rank */
};

/* False: memory is out. */
bool snd_blocks_init(struct snd_blocks *blocks, uint32_t ranks);
void snd_blocks_release(struct snd_blocks *blocks);
/* Forgets all of them. */
void snd_blocks_clear(struct snd_blocks *blocks);

/* A block begins; those of before stay as they are, or are merged. */
void snd_blocks_next(struct snd_blocks *blocks);
void snd_blocks_add(struct snd_blocks *blocks, uint32_t rank, int64_t amount);

int64_t snd_blocks_sum(const struct snd_blocks *blocks, uint32_t rank);
/* In how many blocks the rank has something; and how many there are in which any has. */
uint32_t snd_blocks_with(const struct snd_blocks *blocks, uint32_t rank, uint32_t *any);

/*
 * How often some rank would have at least `sum` if in each block the amounts went to ranks by chance: from 1,999 such shuffles,
 * the same in each run.
 */
double snd_blocks_chance(const struct snd_blocks *blocks, int64_t sum);

#endif
