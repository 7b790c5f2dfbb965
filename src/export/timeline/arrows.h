/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/timeline/arrows.h - which forward operator a backward one belongs to, by torch's rule.
 *
 * Of the forward operators with one sequence number, the one that began last; the first backward
 * operator that ends takes it. Ranges are handed over in the order in which they end.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_TIMELINE_ARROWS_H
#define SND_EXPORT_TIMELINE_ARROWS_H

#include "base/data/map.h"
#include "export/timeline/spans.h"

/* Where an arrow leaves. */
struct snd_arrow_end {
    uint64_t serial; /* of the range */
    int64_t  start_ns;
    uint32_t thread;
};

struct snd_arrows {
    uint32_t             *torch_ids;   /* by thread: torch's number of it; 0: unknown */
    struct snd_map        by_sequence; /* (process, torch's thread, sequence) to forwards */
    struct snd_arrow_end *forwards;    /* whose backward is still awaited */
    uint32_t              count, room;
    uint32_t             *spare; /* places in forwards to use again */
    uint32_t              spare_count, spare_room;
};

/* `arrows` is zero before. False when memory is out; it is released in any case. */
bool snd_arrows_init(struct snd_arrows *arrows, const struct sonde_trace *trace);
void snd_arrows_release(struct snd_arrows *arrows);

/* A range of torch ends. True: it is a backward operator, and *forward is its forward operator. */
bool snd_arrows_follow(struct snd_arrows *arrows, const struct snd_span *span,
                       struct snd_arrow_end *forward);

#endif
