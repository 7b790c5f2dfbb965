/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/chance.h"

#include <stdlib.h>
#include <string.h>

#define SHUFFLES 1999u

bool snd_blocks_init(struct snd_blocks *b, uint32_t ranks)
{
    *b = (struct snd_blocks){ .ranks = ranks, .fold = 1 };
    b->amounts = calloc((size_t)SND_BLOCKS_MAX * (ranks ? ranks : 1), sizeof *b->amounts);
    return b->amounts != NULL;
}

void snd_blocks_release(struct snd_blocks *b)
{
    free(b->amounts);
    b->amounts = NULL;
}

void snd_blocks_clear(struct snd_blocks *b)
{
    memset(b->amounts, 0, (size_t)SND_BLOCKS_MAX * b->ranks * sizeof *b->amounts);
    b->count = 0;
    b->begun = 0;
    b->fold = 1;
}

static void merge(struct snd_blocks *b)
{
    for (uint32_t i = 0; i < b->count / 2; i++)
        for (uint32_t r = 0; r < b->ranks; r++)
            b->amounts[(size_t)i * b->ranks + r] = b->amounts[(size_t)2 * i * b->ranks + r] +
                                                   b->amounts[(size_t)(2 * i + 1) * b->ranks + r];
    b->count /= 2;
    memset(b->amounts + (size_t)b->count * b->ranks, 0,
           (size_t)(SND_BLOCKS_MAX - b->count) * b->ranks * sizeof *b->amounts);
    b->fold *= 2;
}

void snd_blocks_next(struct snd_blocks *b)
{
    if (b->begun++ % b->fold != 0 && b->count > 0)
        return;
    if (b->count == SND_BLOCKS_MAX)
        merge(b);
    b->count++;
}

void snd_blocks_add(struct snd_blocks *b, uint32_t rank, int64_t amount)
{
    if (b->count == 0)
        snd_blocks_next(b);
    if (rank < b->ranks)
        b->amounts[(size_t)(b->count - 1) * b->ranks + rank] += amount;
}

int64_t snd_blocks_sum(const struct snd_blocks *b, uint32_t rank)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < b->count; i++)
        sum += b->amounts[(size_t)i * b->ranks + rank];
    return sum;
}

uint32_t snd_blocks_with(const struct snd_blocks *b, uint32_t rank, uint32_t *any)
{
    uint32_t with = 0;

    *any = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        bool has = false;
        for (uint32_t r = 0; r < b->ranks; r++)
            has |= b->amounts[(size_t)i * b->ranks + r] > 0;
        *any += has;
        with += b->amounts[(size_t)i * b->ranks + rank] > 0;
    }
    return with;
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 32) * below >> 32);
}

double snd_blocks_chance(const struct snd_blocks *b, int64_t sum)
{
    uint64_t state = 0x9E3779B97F4A7C15u;
    int64_t *sums = calloc((size_t)b->ranks + 1, sizeof *sums);
    uint32_t as_much = 0;

    for (uint32_t n = 0; sums && n < SHUFFLES; n++) {
        int64_t most = 0;
        memset(sums, 0, (size_t)b->ranks * sizeof *sums);
        for (uint32_t i = 0; i < b->count; i++)
            for (uint32_t r = 0; r < b->ranks; r++) {
                int64_t amount = b->amounts[(size_t)i * b->ranks + r];
                if (amount <= 0)
                    continue;
                uint32_t to = draw(&state, b->ranks);
                sums[to] += amount;
                most = sums[to] > most ? sums[to] : most;
            }
        as_much += most >= sum;
    }
    bool is_known = sums != NULL;
    free(sums);
    return is_known ? (1.0 + as_much) / (1.0 + SHUFFLES) : 1.0;
}
