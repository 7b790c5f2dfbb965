/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_edges.c - edges (caller, callee) of a thread, and their words in the trace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/metadata.h"
#include "probes/python/calls/call_inside.h"

#define EDGES_A_BLOCK 256u

struct snd_calls_session snd_calls_process_;
uint64_t                 snd_calls_unused_words_[SND_CALLS_WORDS];

struct block {
    struct block         *next;
    uint32_t              used;
    struct snd_calls_edge edges[EDGES_A_BLOCK];
};

struct snd_calls_edges {
    struct snd_map map; /* (caller, callee) to a number: block and place, newest block first */
    struct block  *blocks;
    struct block **by_number;
    uint32_t       block_count, block_room;
};

struct snd_calls_edges *snd_calls_new_edges_(void)
{
    return calloc(1, sizeof(struct snd_calls_edges));
}

uint64_t *snd_calls_words_(uint32_t number, uint32_t caller, uint32_t callee)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return NULL;
    uint32_t caller_frame = caller ? snd_calls_interned_(caller, epoch)->frame : 0;
    uint32_t callee_frame = snd_calls_interned_(callee, epoch)->frame;
    return sonde_tally(SONDE_TALLY_OF(SONDE_TALLY_CALLS, number), callee_frame, caller_frame,
                       SND_CALLS_WORDS);
}

static uint32_t owner; /* snd_calls_set_owner() */

/* Writes the owner to each recording once, also to a forked child's own; or `again`. */
static void record_owner(bool again)
{
    static uint32_t written; /* epoch */
    char            text[16];

    if (sonde_epoch() == 0 || (written == sonde_epoch() && !again))
        return;
    written = sonde_epoch();
    snprintf(text, sizeof text, "%u", owner);
    sonde_metadata(snd_meta_key(SND_META_PYTHON_FUNCTIONS_SESSION), text);
}

void snd_calls_set_owner(uint32_t number)
{
    if (number != 0) /* from here on, the process's counts are its counts */
        snd_map_release(&snd_calls_process_.pairs);
    owner = number;
    record_owner(true);
}

void snd_calls_fetch_words_(const struct snd_calls_thread *t, struct snd_calls_edge *edge)
{
    struct snd_calls_session *session = t->owner ? t->owner : &snd_calls_process_;
    struct snd_key            pair = { edge->caller, edge->callee, 0 };
    uint32_t                  unused;
    uint64_t                 *words = NULL;

    if (t->epoch != 0 &&
        (snd_calls.mode == SND_CALLS_COUNTED || snd_calls.mode == SND_CALLS_COUNTERS)) {
        words = snd_calls_words_(session->number, edge->caller, edge->callee);
        record_owner(false);
        if (words && !snd_map_get(&session->pairs, pair, &unused) &&
            !snd_map_put(&session->pairs, pair, 0))
            words = NULL; /* no memory: its counts would mix with another session's */
    }
    edge->words = words ? words : snd_calls_unused_words_;
    edge->epoch = t->epoch;
}

static struct snd_calls_edge *new_edge(struct snd_calls_edges *edges, uint32_t caller,
                                       uint32_t callee)
{
    if (!edges->blocks || edges->blocks->used == EDGES_A_BLOCK) {
        if (!snd_grow(&edges->by_number, &edges->block_room, edges->block_count,
                      sizeof *edges->by_number))
            return NULL;
        struct block *block = malloc(sizeof *block);
        if (!block)
            return NULL;
        block->next = edges->blocks;
        block->used = 0;
        edges->blocks = block;
        edges->by_number[edges->block_count++] = block;
    }
    struct block *block = edges->blocks;
    uint32_t      number = (edges->block_count - 1) * EDGES_A_BLOCK + block->used;
    if (!snd_map_put(&edges->map, (struct snd_key){ caller, callee, 0 }, number))
        return NULL;
    struct snd_calls_edge *edge = &block->edges[block->used++];
    *edge = (struct snd_calls_edge){ .words = snd_calls_unused_words_,
                                     .caller = caller,
                                     .callee = callee };
    return edge;
}

struct snd_calls_edge *snd_calls_edge_(struct snd_calls_thread *t, uint32_t caller, uint32_t callee)
{
    struct snd_calls_edges *edges = t->edges;
    struct snd_calls_edge  *edge;
    uint32_t                number;

    if (snd_map_get(&edges->map, (struct snd_key){ caller, callee, 0 }, &number)) {
        edge = &edges->by_number[number / EDGES_A_BLOCK]->edges[number % EDGES_A_BLOCK];
    } else {
        edge = new_edge(edges, caller, callee);
        if (!edge) {
            snd_calls.lost++;
            return NULL;
        }
        edge->epoch = t->epoch + 1;
    }
    if (edge->epoch != t->epoch)
        snd_calls_fetch_words_(t, edge);
    t->functions[callee].edge = edge;
    t->functions[callee].caller = caller + 1;
    return edge;
}

void snd_calls_drop_edges_(struct snd_calls_edges *edges)
{
    while (edges->blocks) {
        struct block *block = edges->blocks;
        edges->blocks = block->next;
        free(block);
    }
    snd_map_release(&edges->map);
    free(edges->by_number);
    memset(edges, 0, sizeof *edges);
}
