/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/shares.h"

#include <stdlib.h>

#include "base/data/sort.h"
#include "base/system/crew.h"
#include "base/system/processors.h"

/* A thread has begun after some 0.1 ms; these are read in some 2 ms. */
#define WORKER_BYTES ((uint64_t)1 << 19)

static uint64_t bytes_of(const struct snd_chunk_ref *chunk)
{
    return chunk->used != 0 && chunk->used < chunk->size ? chunk->used : chunk->size;
}

uint64_t snd_lane_bytes(const struct sonde_trace *trace)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < trace->process_count; i++)
        for (uint32_t k = 0; k < trace->processes[i].lane_count; k++)
            bytes = snd_count_add(bytes, bytes_of(&trace->processes[i].lanes[k]));
    return bytes;
}

uint32_t snd_workers(const struct sonde_trace *trace, uint64_t bytes)
{
    uint64_t workers = bytes / WORKER_BYTES + 1, most = snd_processors();

    if (trace->workers != 0)
        workers = most = trace->workers;
    most = most < SND_CREW_MAX ? most : SND_CREW_MAX;
    return (uint32_t)(workers < most ? workers : most);
}

/* A share of the thread at a place of kinds->beside, and how it is numbered before shares are sorted. */
struct draft {
    struct snd_share share;
    uint32_t         place;
};

static int compare(const void *x, const void *y)
{
    const struct draft *a = x, *b = y;

    return SND_ORDER(SND_FALLING(a->share.bytes, b->share.bytes), SND_RISING(a->place, b->place));
}

/* Adds up the chunks of each share; `number` is of places, plus one. Returns how many shares there are. */
static uint32_t count_chunks(const struct sonde_trace *trace, const struct snd_kinds *kinds,
                             struct draft *drafts, uint32_t *number)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        for (uint32_t k = 0; k < p->lane_count; k++) {
            uint32_t place = kinds->beside[snd_kinds_place(trace, i, p->lanes[k].thread)];
            if (number[place] == 0) {
                drafts[count] = (struct draft){ { .process = i }, place };
                number[place] = ++count;
            }
            struct snd_share *share = &drafts[number[place] - 1].share;
            share->bytes = snd_count_add(share->bytes, bytes_of(&p->lanes[k]));
            share->chunk_count++;
        }
    }
    return count;
}

static void list_chunks(struct snd_shares *shares, const struct snd_kinds *kinds,
                        const uint32_t *number)
{
    const struct sonde_trace *trace = shares->trace;
    uint32_t                  first = 0;

    for (uint32_t i = 0; i < shares->count; i++) {
        shares->items[i].first_chunk = first;
        first += shares->items[i].chunk_count;
        shares->items[i].chunk_count = 0;
    }
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        for (uint32_t k = 0; k < p->lane_count; k++) {
            uint32_t          place = kinds->beside[snd_kinds_place(trace, i, p->lanes[k].thread)];
            struct snd_share *share = &shares->items[number[place] - 1];
            shares->chunks[share->first_chunk + share->chunk_count++] = k;
        }
    }
}

enum sonde_status snd_shares_make(struct snd_shares *shares, struct sonde_trace *trace,
                                  const struct snd_kinds *kinds, struct sonde_error *err)
{
    uint32_t places = trace->thread_count + trace->process_count;
    size_t   chunks = 0;

    *shares = (struct snd_shares){ .trace = trace };
    for (uint32_t i = 0; i < trace->process_count; i++)
        chunks += trace->processes[i].lane_count;
    struct draft *drafts = calloc((size_t)places + 1, sizeof *drafts);
    uint32_t     *number = calloc((size_t)places + 1, sizeof *number);
    shares->items = calloc((size_t)places + 1, sizeof *shares->items);
    shares->chunks = calloc(chunks + 1, sizeof *shares->chunks);
    shares->of_thread = calloc((size_t)trace->thread_count + 1, sizeof *shares->of_thread);
    shares->seen = calloc((size_t)trace->process_count + 1, sizeof *shares->seen);
    bool good = drafts && number && shares->items && shares->chunks && shares->of_thread &&
                shares->seen && chunks < UINT32_MAX;
    if (good) {
        shares->count = count_chunks(trace, kinds, drafts, number);
        snd_sort(drafts, shares->count, sizeof *drafts, compare);
        for (uint32_t i = 0; i < shares->count; i++) {
            shares->items[i] = drafts[i].share;
            shares->bytes = snd_count_add(shares->bytes, drafts[i].share.bytes);
            number[drafts[i].place] = i + 1;
        }
        list_chunks(shares, kinds, number);
        for (uint32_t i = 0; i < trace->thread_count; i++)
            shares->of_thread[i] = number[kinds->beside[i]] - 1; /* 0: none */
    }
    free(drafts);
    free(number);
    return good ? SONDE_OK
                : snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
}

void snd_shares_release(struct snd_shares *shares)
{
    free(shares->items);
    free(shares->chunks);
    free(shares->of_thread);
    free(shares->seen);
    shares->items = NULL;
    shares->chunks = NULL;
    shares->of_thread = NULL;
    shares->seen = NULL;
}
