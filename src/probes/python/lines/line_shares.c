/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/lines/line_shares.c - lines counted for sessions that are nested or overlap.
 *
 * A function's table has a share for each session that counts for itself: places of its own, and
 * the stamp that lines had when it began. A line is the session's if it began and ended while the
 * session was on.
 */
#include "probes/python/lines/line_events.h"
#include "probes/python/memory/memory_counts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ----------------------------------------------------------------------- shares */

static struct snd_line_share *find(const struct snd_line_table *table, uint32_t number)
{
    struct snd_line_share *share = table->shares;

    while (share && share->number != number)
        share = share->next;
    return share;
}

static void free_share(struct snd_line_share *share)
{
    free(share->places);
    free(share);
}

static struct snd_line_share *find_or_make(struct snd_line_table *table, uint32_t number,
                                           unsigned use)
{
    struct snd_line_share *share = find(table, number);

    if (share)
        return share;
    share = calloc(1, sizeof *share);
    if (!share)
        return NULL;
    share->places = calloc(table->count, sizeof *share->places);
    if (!share->places) {
        free(share);
        return NULL;
    }
    share->number = number;
    share->use = use;
    share->process = getpid();
    share->next = table->shares;
    table->shares = share;
    snd_line_set_more(table);
    return share;
}

void snd_line_free_shares(struct snd_line_table *table)
{
    while (table->shares) {
        struct snd_line_share *share = table->shares;
        table->shares = share->next;
        free_share(share);
    }
    snd_line_set_more(table);
}

static uint64_t *place_of(struct snd_line_table *table, struct snd_line_share *share, uint32_t line)
{
    if (share->epoch != table->epoch) {
        memset(share->places, 0, table->count * sizeof *share->places);
        if (share->process == getpid()) /* a forked child continues its parent's counts */
            share->has_base = false;
        share->process = getpid();
        share->epoch = table->epoch;
    }
    if (!share->places[line])
        share->places[line] = snd_line_words(table, line, share->use, share->number);
    return share->places[line];
}

/* ----------------------------------------------------------------------- counting */

static bool is_in(const struct snd_line_share *share, uint64_t stamp, unsigned use)
{
    return share->on && share->use == use && stamp >= share->stamp;
}

void snd_line_share_time(struct snd_line_run *run, uint64_t ticks)
{
    for (struct snd_line_share *share = run->table->shares; share; share = share->next) {
        uint64_t *place = is_in(share, run->stamp, SND_LINE_TIME)
                              ? place_of(run->table, share, run->line)
                              : NULL;
        if (place) {
            place[SND_LINE_RUNS]++;
            place[SND_LINE_TICKS] += ticks;
        }
    }
}

void snd_line_share_memory(struct snd_line_run *run, const struct snd_line_bytes *bytes)
{
    for (struct snd_line_share *share = run->table->shares; share; share = share->next) {
        uint64_t *place = is_in(share, run->stamp, SND_LINE_MEMORY)
                              ? place_of(run->table, share, run->line)
                              : NULL;
        if (place)
            snd_line_add_bytes(place, bytes);
    }
}

void snd_line_share_call(struct snd_line_table *table, uint32_t line, uint64_t in_use,
                         bool is_outermost, const struct snd_line_left *left)
{
    for (struct snd_line_share *share = table->shares; share; share = share->next) {
        uint64_t *place = is_in(share, UINT64_MAX, SND_LINE_MEMORY) ? place_of(table, share, line)
                                                                    : NULL;
        if (!place)
            continue;
        place[SND_LINE_MEMORY_RUNS]++;
        place[SND_LINE_MEMORY_IN_USE] = in_use;
        if (!is_outermost)
            continue;
        if (!share->has_base)
            place[SND_LINE_MEMORY_NET] += in_use;
        else if (left && left->stamp >= share->stamp)
            place[SND_LINE_MEMORY_NET] += (uint64_t)(snd_memory_mine_.net_bytes - left->net_bytes);
        share->has_base = true;
    }
}

void snd_line_share_more(struct snd_line_table *table, uint32_t line, int64_t bytes)
{
    for (struct snd_line_share *share = table->shares; share; share = share->next) {
        uint64_t *place = is_in(share, UINT64_MAX, SND_LINE_MEMORY) && share->has_base
                              ? place_of(table, share, line)
                              : NULL;
        if (place)
            place[SND_LINE_MEMORY_NET] += (uint64_t)bytes;
    }
}

/* -------------------------------------------------------------------- on and off */

bool snd_line_share_choose(struct snd_line_table *table, uint32_t number, unsigned use, bool on)
{
    struct snd_line_share *share = find_or_make(table, number, use);

    if (!share)
        return false;
    share->on = on;
    if (on)
        share->stamp = ++snd_line_stamp;
    return true;
}

void snd_line_share_announce(struct snd_line_table *table, uint32_t line)
{
    for (struct snd_line_share *share = table->shares; share; share = share->next)
        if (share->on)
            place_of(table, share, line);
}

bool snd_line_share_split(struct snd_line_table *table, uint32_t number, unsigned use, bool on)
{
    struct snd_line_share *share = find_or_make(table, number, use);

    if (!share)
        return false;
    if (table->epoch != sonde_epoch() || table->epoch == 0)
        snd_line_renew(table);
    for (uint32_t line = 0; line < table->count; line++) {
        const uint64_t *words = snd_line_place(table, line, use);
        uint64_t       *to = words && words[SND_LINE_RUNS] ? place_of(table, share, line) : NULL;
        if (to)
            memcpy(to, words, snd_line_word_count(use) * sizeof *to);
    }
    share->has_base = table->has_base;
    share->on = on;
    share->stamp = 0;
    return true;
}

void snd_line_share_forget(struct snd_line_table *table, uint32_t number, bool has)
{
    struct snd_line_share **link = &table->shares, *share;

    while ((share = *link) && share->number != number)
        link = &share->next;
    if (!share)
        return;
    for (uint32_t line = 0; has && share->epoch == sonde_epoch() && line < table->count; line++)
        if (share->places[line])
            memset(share->places[line], 0, snd_line_word_count(share->use) * sizeof(uint64_t));
    *link = share->next;
    free_share(share);
    snd_line_set_more(table);
}
