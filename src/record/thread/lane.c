/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread/lane.h"

#include <time.h>

#include "record/thread/thread_counts.h"
#include "record/session/fork.h"

static SONDE_THREAD_LOCAL_ uint64_t entered_at; /* raw clock, or 0: it need not wait */

/* Under the lock: makes the lane ready, or says why not. */
static enum snd_entry prepare(size_t words)
{
    if (snd_rec.phase == SND_FORKED)
        snd_fork_open_child();
    uint32_t epoch = sonde_epoch();
    if (snd_rec.phase != SND_OPEN || epoch == 0)
        return SND_ENTRY_OFF;
    return snd_thread_make_room(words, epoch, entered_at) ? SND_ENTRY_READY : SND_ENTRY_LOST;
}

/* Counts a dropped event where it survives the process, and keeps begins and ends in pairs. */
static void count_loss(struct sonde_lane *lane, enum snd_intent intent)
{
    struct snd_thread *thread = snd_thread_self();

    snd_count(thread && thread->map ? &thread->map->lost : &snd_header->lost_events, 1);
    if (!thread)
        return;
    snd_thread_lose(thread, entered_at, intent == SND_INTENT_END && thread->skip_depth == 0);
    if (intent == SND_INTENT_BEGIN) {
        lane->depth++;
        thread->skip_depth++;
    } else if (intent == SND_INTENT_END) {
        lane->depth--;
        thread->skip_depth -= thread->skip_depth > 0;
    }
    thread->supply_seen = __atomic_load_n(&snd_rec.supplies, __ATOMIC_ACQUIRE);
    /* Shut the lane, so that the next event comes here even if it would fit. */
    lane->end = lane->cur;
    lane->leaf = NULL;
}

/* A dry lane whose supply has not changed need not take the lock to learn that. */
static bool is_still_dry(const struct sonde_lane *lane, uint32_t epoch)
{
    const struct snd_thread *thread = snd_thread_self();

    if (!thread || lane->epoch != epoch || thread->lost_since == 0)
        return false;
    if (thread->skip_depth > 0) /* shut until the end of the dropped begin is dropped too */
        return true;
    /* Without a helper nobody but the thread itself would ever try again. */
    return __atomic_load_n(&snd_rec.has_supplier, __ATOMIC_RELAXED) &&
           thread->supply_seen == __atomic_load_n(&snd_rec.supplies, __ATOMIC_ACQUIRE);
}

/* The lane is busy and has no room, or is of another epoch. */
static enum snd_entry enter_slow(size_t words, uint32_t epoch, enum snd_intent intent)
{
    struct sonde_lane *lane = &sonde_lane_;
    enum snd_entry     entry = SND_ENTRY_LOST;

    entered_at = sonde_clock();
    if (!is_still_dry(lane, epoch)) {
        snd_lock();
        entry = prepare(words);
        snd_unlock();
    }
    if (entry == SND_ENTRY_LOST)
        count_loss(lane, intent);
    if (entry != SND_ENTRY_READY)
        snd_lane_leave();
    return entry;
}

/*
 * The same while ranges have counters: they are read before a begin's time is taken, and after an
 * end's, so that the reading is not the range's own.
 */
static enum snd_entry enter_counted(size_t words, uint32_t epoch, enum snd_intent intent)
{
    struct sonde_lane *lane = &sonde_lane_;
    struct snd_thread *thread = snd_thread_self();
    uint64_t           end_at = intent == SND_INTENT_END ? sonde_clock() : 0;
    enum snd_entry     entry = SND_ENTRY_READY;

    words += intent == SND_INTENT_OTHER ? 0 : snd_counts_room();
    if (thread && thread->map && lane->epoch == epoch && thread->lost_since == 0)
        snd_thread_open_lane(thread);
    if (lane->epoch != epoch || !snd_lane_has_room(lane, words))
        entry = enter_slow(words, epoch, intent);
    if (entry == SND_ENTRY_READY && intent != SND_INTENT_OTHER) {
        snd_counts_write(snd_thread_self());
        entered_at = end_at;
    }
    return entry;
}

enum snd_entry snd_lane_enter(size_t words, enum snd_intent intent)
{
    struct sonde_lane *lane = &sonde_lane_;
    uint32_t           epoch = sonde_epoch();

    if (epoch == 0)
        return SND_ENTRY_OFF;
    if (lane->busy) { /* a signal handler, or a hook, inside the recorder itself */
        if (snd_header)
            snd_count(&snd_header->refused_events, 1);
        return SND_ENTRY_LOST;
    }
    lane->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (epoch == SND_EPOCH_WIPED) {
        snd_fork_notice();
        epoch = sonde_epoch();
        if (epoch == 0 || epoch == SND_EPOCH_WIPED) { /* the library is not set up yet */
            snd_lane_leave();
            return SND_ENTRY_OFF;
        }
    }
    entered_at = 0;
    if (snd_counts_asked > 0)
        return enter_counted(words, epoch, intent);
    if (lane->epoch == epoch && snd_lane_has_room(lane, words))
        return SND_ENTRY_READY;
    return enter_slow(words, epoch, intent);
}

uint64_t snd_lane_time(void)
{
    uint64_t at = entered_at;

    entered_at =
        0; /* the time of entry is of one event; a second event of the same entry reads the clock */
    return at ? at : sonde_clock();
}

void snd_lane_leave(void)
{
    if (snd_counts_asked > 0)
        sonde_lane_.end = sonde_lane_.cur; /* the next mark comes here too */
    sonde_lane_leave(&sonde_lane_);
}

static uint32_t ending; /* threads that are in at_thread_exit() */

static void at_thread_exit(void *thread)
{
    __atomic_fetch_add(&ending, 1, __ATOMIC_ACQUIRE);
    sonde_lane_.busy = 1; /* what a later destructor marks is dropped */
    snd_fork_notice();
    snd_thread_end(thread);
    __atomic_fetch_sub(&ending, 1, __ATOMIC_RELEASE);
}

bool snd_lanes_init(void)
{
    return snd_threads_init(at_thread_exit);
}

void snd_lanes_uninit(void)
{
    const struct timespec a_while = { 0, 1000000 };

    snd_threads_uninit();
    do /* one round more than needed: threads that have counted themselves out have still to return */
        clock_nanosleep(CLOCK_MONOTONIC, 0, &a_while, NULL);
    while (__atomic_load_n(&ending, __ATOMIC_ACQUIRE) > 0);
}
