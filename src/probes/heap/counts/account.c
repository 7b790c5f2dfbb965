/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/counts/account.h"

#include "base/hints.h"
#include "format/known.h"
#include "format/layout.h"
#include "probes/heap/counts/heap_moments.h"
#include "probes/heap/locks.h"
#include "sonde/record.h"

#define LOOK_EVERY 1024u                /* changes between looks at the clock, for the timeline */
#define LOOK_BYTES ((uint64_t)64 << 10) /* a change of so many is worth one */
#define SHOW_TICKS ((uint64_t)1 << 25)  /* some 10 ms */

static uint32_t changes;
static uint64_t shown_at;

/* Before a stack's bytes change: what it held at the latest peak. */
static inline void keep_share(uint64_t *words, uint64_t peaks)
{
    if (words[SND_HEAP_PEAK_NUMBER] == peaks)
        return;
    words[SND_HEAP_PEAK_NUMBER] = peaks;
    words[SND_HEAP_PEAK_BYTES] = words[SND_HEAP_BYTES] - words[SND_HEAP_FREED_BYTES];
    words[SND_HEAP_PEAK_BLOCKS] = words[SND_HEAP_ALLOCATIONS] - words[SND_HEAP_FREES];
}

static void add_variance(uint64_t *word, double variance)
{
    double value;

    __builtin_memcpy(&value, word, sizeof value);
    value += variance;
    __builtin_memcpy(word, &value, sizeof value);
}

/* The free that happens now ends the peak. */
static inline void end_peak(uint64_t *process)
{
    if (process[SND_HEAP_PROCESS_RISING] == 0)
        return;
    process[SND_HEAP_PROCESS_PEAKS]++;
    process[SND_HEAP_PROCESS_RISING] = 0;
}

static void sample_freed(const struct snd_heap_counts *counts, const struct snd_heap_weight *weight)
{
    uint64_t *all = snd_heap_process_sampled(counts->kind);

    counts->sampled[SND_HEAP_SAMPLED_LIVE]--;
    add_variance(&counts->sampled[SND_HEAP_SAMPLED_LIVE_VARIANCE], -weight->variance);
    all[SND_HEAP_SAMPLED_LIVE]--;
    add_variance(&all[SND_HEAP_SAMPLED_LIVE_VARIANCE], -weight->variance);
}

static void sample_taken(const struct snd_heap_counts *counts, const struct snd_heap_weight *weight)
{
    uint64_t *all = snd_heap_process_sampled(counts->kind), *words[2] = { counts->sampled, all };

    for (int i = 0; i < 2; i++) {
        words[i][SND_HEAP_SAMPLED_SAMPLES]++;
        words[i][SND_HEAP_SAMPLED_LIVE]++;
        add_variance(&words[i][SND_HEAP_SAMPLED_VARIANCE], weight->variance);
        add_variance(&words[i][SND_HEAP_SAMPLED_LIVE_VARIANCE], weight->variance);
    }
    if (snd_heap_process(counts->kind)[SND_HEAP_PROCESS_RISING])
        all[SND_HEAP_SAMPLED_PEAK_VARIANCE] = all[SND_HEAP_SAMPLED_LIVE_VARIANCE];
}

static inline void give_back(struct snd_heap_counts *counts, const struct snd_heap_change *change,
                             bool grows)
{
    uint64_t *process = snd_heap_process(counts->kind), *words = counts->words;

    if (!grows)
        end_peak(process);
    keep_share(words, process[SND_HEAP_PROCESS_PEAKS]);
    words[SND_HEAP_FREES] += change->freed_weight.count;
    words[SND_HEAP_FREED_BYTES] += change->freed_weight.bytes;
    words[SND_HEAP_TEMPORARY] += change->is_temporary ? change->freed_weight.count : 0;
    process[SND_HEAP_PROCESS_LIVE] -= change->freed_weight.bytes;
    if (SND_UNLIKELY(counts->sampled != NULL))
        sample_freed(counts, &change->freed_weight);
}

static inline void take(struct snd_heap_counts *counts, const struct snd_heap_change *change)
{
    uint64_t *process = snd_heap_process(counts->kind), *words = counts->words;

    keep_share(words, process[SND_HEAP_PROCESS_PEAKS]);
    words[SND_HEAP_ALLOCATIONS] += change->taken_weight.count;
    words[SND_HEAP_BYTES] += change->taken_weight.bytes;
    process[SND_HEAP_PROCESS_ALLOCATIONS] += change->taken_weight.count;
    process[SND_HEAP_PROCESS_LIVE] += change->taken_weight.bytes;
    snd_heap_moment_holds(counts->kind, process[SND_HEAP_PROCESS_LIVE]);
    if (process[SND_HEAP_PROCESS_LIVE] > process[SND_HEAP_PROCESS_PEAK]) {
        process[SND_HEAP_PROCESS_PEAK] = process[SND_HEAP_PROCESS_LIVE];
        process[SND_HEAP_PROCESS_RISING] = 1;
    }
    if (SND_UNLIKELY(counts->sampled != NULL))
        sample_taken(counts, &change->taken_weight);
}

/* A point of the timeline is due, or a moment was copied. */
static SND_NOINLINE void show(bool due, uint64_t live, struct snd_heap_moment *moment)
{
    struct snd_heap_thread *self = &snd_heap_self;
    enum snd_heap_inside    before = self->inside;

    self->inside = SND_PREPARING;
    if (due)
        sonde_counter(snd_known_name(SND_KNOWN_HEAP_LIVE), (double)live);
    if (moment->shares)
        snd_heap_moment_write(moment);
    self->inside = before;
}

/* Looks at the clock now and then: is a point of the timeline due? Copies a moment if one is. */
static SND_NOINLINE bool look(struct snd_heap_moment *moment)
{
    uint64_t at = sonde_clock();

    if (snd_heap_first_stack() == 0)
        return false;
    snd_heap_moment_look(moment, at);
    if (at - shown_at < SHOW_TICKS)
        return false;
    shown_at = at;
    return true;
}

static inline bool is_worth_a_look(const struct snd_heap_change *change)
{
    return SND_UNLIKELY(++changes % LOOK_EVERY == 0) ||
           SND_UNLIKELY((change->taken_weight.bytes | change->freed_weight.bytes) >= LOOK_BYTES);
}

void snd_heap_count(const struct snd_heap_change *change)
{
    struct snd_heap_thread *self = &snd_heap_self;
    enum snd_heap_inside    before = self->inside;
    struct snd_heap_moment  moment;
    uint64_t                live = 0;
    bool                    due = false;

    moment.shares = NULL;
    self->inside = SND_COUNTING;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    snd_heap_lock(&snd_heap_counting);
    struct snd_heap_counts *freed = change->freed ? snd_heap_counts_of(change->freed) : NULL;
    struct snd_heap_counts *taken = change->taken ? snd_heap_counts_of(change->taken) : NULL;
    if (is_worth_a_look(change) && (freed || taken))
        due = look(&moment);
    if (freed) {
        snd_heap_moment_changes(freed, change->freed);
        give_back(freed, change, taken && change->taken_weight.bytes >= change->freed_weight.bytes);
    }
    if (taken) {
        snd_heap_moment_changes(taken, change->taken);
        take(taken, change);
    }
    if (SND_UNLIKELY(due))
        live = snd_heap_process(SND_HEAP_MALLOC)[SND_HEAP_PROCESS_LIVE];
    snd_heap_unlock(&snd_heap_counting);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->inside = before;
    if (SND_UNLIKELY(due || moment.shares))
        show(due, live, &moment);
}

static void count_word(enum snd_heap_kind kind, int word)
{
    struct snd_heap_thread *self = &snd_heap_self;
    enum snd_heap_inside    before = self->inside;

    self->inside = SND_COUNTING;
    uint32_t unknown = snd_heap_unknown(kind);
    if (unknown && snd_heap_counts_of(unknown))
        __atomic_fetch_add(&snd_heap_process(kind)[word], 1, __ATOMIC_RELAXED);
    self->inside = before;
}

void snd_heap_count_unknown(enum snd_heap_kind kind)
{
    count_word(kind, SND_HEAP_PROCESS_UNKNOWN);
}

void snd_heap_count_unseen(enum snd_heap_kind kind)
{
    count_word(kind, SND_HEAP_PROCESS_UNSEEN);
}
