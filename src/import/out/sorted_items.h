/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/out/sorted_items.h - what a file says, in any order, put in the order of lanes and times.
 *
 * What does not fit in memory goes, sorted, to a temporary file, and is merged from there.
 *
 * Layer: import (sees base/). Threads: one at a time.
 */
#ifndef SND_IMPORT_OUT_SORTED_ITEMS_H
#define SND_IMPORT_OUT_SORTED_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum snd_item_kind {
    SND_ITEM_THREAD_NAME, /* a: string */
    SND_ITEM_CALL,        /* a range. a: call; b: sequence number plus one, 0 none */
    SND_ITEM_SPAN,        /* a range. a: name */
    SND_ITEM_API,         /* a range. a: name; b: the attribute API */
    SND_ITEM_ATTR,        /* of the range before it. a: key; b: value */
    SND_ITEM_FUNCTION, /* a call of a Python function. a: frame, its number << 32; b: parent's number */
    SND_ITEM_BEGIN, /* of a range whose end comes by itself. a: name */
    SND_ITEM_END,
    SND_ITEM_ASYNC_BEGIN, /* a: name; b: key */
    SND_ITEM_ASYNC_END,   /* b: key */
    SND_ITEM_MARK,        /* a: name */
    SND_ITEM_STEP,        /* b: number */
    SND_ITEM_COUNTER,     /* a: name; b: a double */
    SND_ITEM_LINK,        /* a: kind, 1 << 32 if it arrives; b: id */
    SND_ITEM_ALLOC,       /* a: address; b: size; more: device */
    SND_ITEM_FREE,
    SND_ITEM_WORK, /* of a device. a: work, queue << 32; b: node of a graph; more: correlation */
};

struct snd_item {
    uint64_t lane;  /* SND_ITEM_DEVICES, or process << 32 | thread minus process */
    int64_t  start; /* ns */
    uint64_t rank;  /* among those of one lane and start: snd_item_rank() */
    uint64_t a, b;
    uint32_t index; /* as they came */
    uint32_t more;
    uint32_t kind; /* enum snd_item_kind */
    uint32_t unused;
};

#define SND_ITEM_DEVICES UINT64_MAX

/* Names, then begins and ends that come by themselves, then ranges, the longest first, then moments. */
#define SND_RANK_NAME 0u
#define SND_RANK_ALONE 1u
#define SND_RANK_RANGE(ns) (((uint64_t)1 << 63) - (uint64_t)(ns)) /* a duration, at most 2^62 */
#define SND_RANK_MOMENT UINT64_MAX
static inline int64_t snd_item_duration(const struct snd_item *item)
{
    return (int64_t)(((uint64_t)1 << 63) - item->rank);
}

struct snd_items {
    struct snd_item *items, *spare; /* owned */
    uint32_t         count;
    uint32_t         next_index;
    int              file; /* of runs; -1: none yet */
    struct snd_run {
        uint64_t at, end; /* items of the file */
    } * runs;
    uint32_t run_count, run_room;
    bool     failed_memory, failed_file;
};

SND_CHECKED bool snd_items_begin(struct snd_items *items);
void             snd_items_release(struct snd_items *items);
/* False: memory or the disk is out. */
SND_CHECKED bool snd_items_add(struct snd_items *items, const struct snd_item *item);

/* Hands all of them over in order; nothing can be added then. */
typedef void     snd_items_take(void *user, const struct snd_item *item);
SND_CHECKED bool snd_items_walk(struct snd_items *items, snd_items_take *take, void *user);

#endif
