/* SPDX-License-Identifier: Apache-2.0 */
#include "model/memory/heap_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "read/reader.h"

#define KINDS 2u  /* malloc's and mapped memory, beside a moment's number in `other` */
#define SURE 1.96 /* standard deviations that 95 % lie within */

double snd_heap_half_interval(uint64_t variance)
{
    double value;

    memcpy(&value, &variance, sizeof value);
    return isfinite(value) && value > 0 ? SURE * 1024 * sqrt(value) : 0;
}

static int64_t clock_ns(const struct snd_scale *scale, uint64_t raw)
{
    return snd_time_clamp(snd_scale_ns(scale, raw));
}

static bool add_moment(struct snd_heap_history *h, const struct snd_scale *scale,
                       const struct sonde_tally_row *row)
{
    uint64_t at = row->words[SND_HEAP_MOMENT_AT], since = row->words[SND_HEAP_MOMENT_SINCE];

    if (row->words[SND_HEAP_MOMENT_TAKEN] == 0)
        return true; /* the process ended before it was written whole */
    if (!snd_grow(&h->moments, &h->moment_room, h->moment_count, sizeof *h->moments))
        return false;
    h->moments[h->moment_count++] = (struct snd_heap_moment){
        .number = row->other / KINDS,
        .at_ns = clock_ns(scale, at),
        .since_ns = clock_ns(scale, since ? since : at), /* 0: nobody had looked before */
        .bytes = row->words[SND_HEAP_MOMENT_BYTES],
        .highest = row->words[SND_HEAP_MOMENT_HIGHEST],
        .error = snd_heap_half_interval(row->words[SND_HEAP_MOMENT_VARIANCE]),
    };
    return true;
}

static bool add_share(struct snd_heap_history *h, const struct sonde_tally_row *row)
{
    if (!snd_grow(&h->shares, &h->share_room, h->share_count, sizeof *h->shares))
        return false;
    h->shares[h->share_count++] = (struct snd_heap_share){
        .number = row->other / KINDS,
        .stack = row->key,
        .blocks = row->words[SND_HEAP_HELD_BLOCKS],
        .bytes = row->words[SND_HEAP_HELD_BYTES],
    };
    return true;
}

static int compare_moments(const void *left, const void *right)
{
    const struct snd_heap_moment *x = left, *y = right;

    return (x->number > y->number) - (x->number < y->number);
}

static int compare_shares(const void *left, const void *right)
{
    const struct snd_heap_share *x = left, *y = right;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* In the order of time, each knowing what was written before it. */
static void put_in_order(struct snd_heap_history *h)
{
    uint32_t end = 0;

    snd_sort(h->moments, h->moment_count, sizeof *h->moments, compare_moments);
    snd_sort(h->shares, h->share_count, sizeof *h->shares, compare_shares);
    for (uint32_t i = 0; i < h->moment_count; i++) {
        struct snd_heap_moment *moment = &h->moments[i];
        int64_t                 before = i > 0 ? moment[-1].at_ns : moment->since_ns;
        while (end < h->share_count && h->shares[end].number <= moment->number)
            end++;
        moment->end = end;
        if (moment->at_ns < before) /* of a damaged file */
            moment->at_ns = before;
        if (moment->since_ns < before || moment->since_ns > moment->at_ns)
            moment->since_ns = before;
        if (moment->highest < moment->bytes)
            moment->highest = moment->bytes;
    }
}

bool snd_heap_history_read(const struct sonde_trace *trace, uint32_t process, bool is_mapped,
                           struct snd_heap_history *out)
{
    const struct snd_scale *scale = &trace->processes[process].scale;
    struct sonde_tally_row  row;
    bool                    ok = true;

    memset(out, 0, sizeof *out);
    for (uint32_t n = 0; ok && sonde_trace_tally(trace, process, n, &row); n++) {
        if (row.other % KINDS != is_mapped)
            continue;
        if (row.kind == SND_TALLY_HEAP_MOMENT)
            ok = add_moment(out, scale, &row);
        else if (row.kind == SND_TALLY_HEAP_HELD)
            ok = add_share(out, &row);
    }
    put_in_order(out);
    return ok;
}

void snd_heap_history_release(struct snd_heap_history *history)
{
    free(history->moments);
    free(history->shares);
    memset(history, 0, sizeof *history);
}

const struct snd_heap_moment *snd_heap_history_at(const struct snd_heap_history *history,
                                                  int64_t                        at_ns)
{
    for (uint32_t i = 0; i < history->moment_count; i++)
        if (history->moments[i].at_ns >= at_ns)
            return &history->moments[i];
    return NULL;
}
