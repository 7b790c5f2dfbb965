/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/counts/heap_moments.h"

#include "format/layout.h"
#include "probes/heap/heap_pages.h"
#include "sonde/record.h"

#define FIRST_TICKS ((uint64_t)1 << 25) /* between moments at first: some 10 ms */
#define MOMENTS 128u /* the time between moments doubles after this many, or after SHARES */
#define SHARES 16384u
#define NUMBERS (UINT32_MAX >> 2) /* that fit beside the kind, and are no late id of the recorder */
#define END SND_HEAP_OWN          /* of the list: no stack that changes */

struct snd_heap_share {
    uint32_t id, kind;
    uint64_t blocks, bytes;
};

static uint32_t changed = END, changed_count;
static uint32_t of, number, moments, shares; /* `of`: the recording that they count in */
static uint64_t ticks = FIRST_TICKS, taken_at, looked_at;
uint64_t        snd_heap_highest[SND_HEAP_KINDS];

void snd_heap_moment_list(struct snd_heap_counts *counts, uint32_t stack)
{
    counts->next_changed = changed;
    changed = stack;
    changed_count++;
}

/* Another file, or another process: its moments are counted from 0. */
static void begin_again(uint32_t first)
{
    of = first;
    number = moments = shares = 0;
    ticks = FIRST_TICKS;
    taken_at = 0;
}

static void copy_kind(struct snd_heap_moment *moment, enum snd_heap_kind kind)
{
    const uint64_t *process = snd_heap_process(kind), *sampled = snd_heap_process_sampled(kind);

    moment->of[kind].is_there = process[SND_HEAP_PROCESS_ALLOCATIONS] > 0;
    moment->of[kind].bytes = process[SND_HEAP_PROCESS_LIVE];
    moment->of[kind].highest = snd_heap_highest[kind];
    moment->of[kind].variance = sampled ? sampled[SND_HEAP_SAMPLED_LIVE_VARIANCE] : 0;
    snd_heap_highest[kind] = process[SND_HEAP_PROCESS_LIVE];
}

/* Empties the list into the copy. Stacks of another recording, or of a parent, are left out. */
static void copy_changed(struct snd_heap_moment *moment)
{
    for (uint32_t stack = changed, next; stack != END; stack = next) {
        struct snd_heap_counts *counts = snd_heap_counts_at(stack);
        next = counts->next_changed;
        counts->next_changed = 0;
        if (snd_heap_counts_of(stack) != counts)
            continue;
        const uint64_t *words = counts->words;
        moment->shares[moment->count++] = (struct snd_heap_share){
            .id = counts->id,
            .kind = counts->kind,
            .blocks = words[SND_HEAP_ALLOCATIONS] - words[SND_HEAP_FREES],
            .bytes = words[SND_HEAP_BYTES] - words[SND_HEAP_FREED_BYTES],
        };
    }
    changed = END;
    changed_count = 0;
}

void snd_heap_moment_look(struct snd_heap_moment *moment, uint64_t at)
{
    uint32_t first = snd_heap_first_stack();
    uint64_t since = looked_at;

    looked_at = at;
    if (first == 0)
        return; /* no file yet */
    if (first != of)
        begin_again(first);
    if (at - taken_at < ticks || changed_count == 0 || number == NUMBERS)
        return;
    moment->count = 0;
    moment->room = changed_count;
    moment->shares = snd_heap_pages(moment->room * sizeof *moment->shares);
    if (!moment->shares)
        return;
    copy_changed(moment);
    for (int kind = 0; kind < SND_HEAP_KINDS; kind++)
        copy_kind(moment, kind);
    moment->at = at;
    moment->since = since;
    moment->number = number++;
    taken_at = at;
    moments++;
    shares += moment->count;
    if (moments >= MOMENTS || shares >= SHARES) {
        ticks *= 2;
        moments = shares = 0;
    }
}

static uint32_t place_of(const struct snd_heap_moment *moment, uint32_t kind)
{
    return moment->number * SND_HEAP_KINDS + kind;
}

/* A moment is there once all of it is. */
void snd_heap_moment_write(struct snd_heap_moment *moment)
{
    for (uint32_t i = 0; i < moment->count; i++) {
        const struct snd_heap_share *share = &moment->shares[i];
        uint64_t                    *words = sonde_tally(SONDE_TALLY_HEAP_HELD, share->id,
                                                         place_of(moment, share->kind), SND_HEAP_HELD_WORDS);
        if (!words)
            continue;
        words[SND_HEAP_HELD_BLOCKS] = share->blocks;
        words[SND_HEAP_HELD_BYTES] = share->bytes;
    }
    for (uint32_t kind = 0; kind < SND_HEAP_KINDS; kind++) {
        uint64_t *words = moment->of[kind].is_there
                              ? sonde_tally(SONDE_TALLY_HEAP_MOMENT, 0, place_of(moment, kind),
                                            SND_HEAP_MOMENT_WORDS)
                              : NULL;
        if (!words)
            continue;
        words[SND_HEAP_MOMENT_BYTES] = moment->of[kind].bytes;
        words[SND_HEAP_MOMENT_HIGHEST] = moment->of[kind].highest;
        words[SND_HEAP_MOMENT_AT] = moment->at;
        words[SND_HEAP_MOMENT_SINCE] = moment->since;
        words[SND_HEAP_MOMENT_VARIANCE] = moment->of[kind].variance;
        __atomic_store_n(&words[SND_HEAP_MOMENT_TAKEN], 1, __ATOMIC_RELEASE);
    }
    snd_heap_pages_free(moment->shares, moment->room * sizeof *moment->shares);
}
