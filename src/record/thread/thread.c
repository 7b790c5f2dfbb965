/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread/thread.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count_of.h"
#include "record/file/chunk.h"
#include "record/clock.h"
#include "record/thread/thread_events.h"
#include "record/file/trace_file.h"
#include "record/tables/intern.h"
#include "record/own_pages.h"
#include "record/tables/sampled_threads.h"

#define FIRST_CHUNK ((uint64_t)SND_GRAIN) /* a thread that marks little costs little */
#define WORTH_REUSING \
    ((uint64_t)4096) /* free bytes that make an ended thread's chunk worth keeping */

static SONDE_THREAD_LOCAL_ struct snd_thread *self;
static struct snd_thread                     *living; /* the youngest */
static pthread_key_t                          exit_key;

struct snd_thread *snd_thread_self(void)
{
    return self;
}

void snd_lane_write(struct sonde_lane *lane, const uint64_t *words, size_t count)
{
    uint64_t *at = lane->cur;

    lane->cur = at + count;
    lane->leaf = NULL;
    for (size_t i = 1; i < count; i++)
        at[i] = words[i];
    __atomic_store_n(at, words[0], __ATOMIC_RELEASE);
}

/* ----------------------------------------------------------------- chunks */

static void point_lane_at(struct snd_thread *thread, uint32_t chunk, uint64_t used)
{
    struct snd_chunk *it = &snd_rec.chunks[chunk];

    thread->chunk = chunk;
    thread->map = it->map;
    thread->map_size = it->size;
    thread->lane->leaf = NULL;
    thread->lane->cur = (uint64_t *)((char *)it->map + used);
    thread->gap = NULL;
    snd_thread_open_lane(thread);
    thread->lane->chunks++;
}

static uint64_t lane_used(const struct snd_thread *thread)
{
    return (uint64_t)((char *)thread->lane->cur - (char *)thread->map);
}

/* Moves the chunk's own count of losses to the thread's record, where it stays. */
static void settle_losses(struct snd_thread *thread)
{
    thread->record->lost += thread->map->lost;
    thread->map->lost = 0;
}

/* Exchanges the thread's chunk for an empty one. */
static bool next_chunk(struct snd_thread *thread)
{
    uint32_t chunk = snd_chunk_take();

    if (chunk == SND_NO_CHUNK)
        return false;
    uint32_t full = thread->chunk;
    uint64_t used = lane_used(thread);
    settle_losses(thread);
    snd_chunk_open(chunk, thread->id);
    point_lane_at(thread, chunk, SND_CHUNK_HEADER_SIZE);
    snd_chunk_retire(full, used);
    return true;
}

/* ------------------------------------------------------- attach and detach */

static bool write_thread_record(struct snd_thread *thread)
{
    char     name[17] = "";
    uint32_t tid = (uint32_t)syscall(SYS_gettid);

    thread->record = snd_sampled_claim(tid, &thread->id);
    if (thread->record)
        return true;
    prctl(PR_GET_NAME, name);
    struct snd_thread_record record = {
        .tid = tid,
        .name = name[0] ? snd_table_text(name, strlen(name)) : 0,
        .start = sonde_clock(),
    };
    thread->record = snd_table_append(SND_REC_THREAD, &thread->id, &record, sizeof record);
    return thread->record != NULL;
}

/* A chunk that another thread left half empty, or a small one of its own. */
static bool first_chunk(struct snd_thread *thread, uint64_t at)
{
    uint32_t chunk = snd_list_pop(&snd_rec.partial);

    if (chunk != SND_NO_CHUNK) {
        const uint64_t words[2] = { at << 8 | SND_EV_THREAD, thread->id };
        point_lane_at(thread, chunk, snd_rec.chunks[chunk].used);
        snd_lane_write(thread->lane, words, 2);
        return true;
    }
    if (snd_rec.keep_last) /* recycled chunks are all of one size */
        chunk = snd_chunk_take();
    else if (snd_rec.exhausted) /* at the limit there may still be stock */
        chunk = snd_list_pop(&snd_rec.ready);
    else if (snd_may_reserve())
        chunk = snd_chunk_reserve(FIRST_CHUNK, FIRST_CHUNK, SND_CHUNK_LANE);
    if (chunk == SND_NO_CHUNK)
        return false;
    snd_chunk_open(chunk, thread->id);
    point_lane_at(thread, chunk, SND_CHUNK_HEADER_SIZE);
    return true;
}

static void link_thread(struct snd_thread *thread)
{
    thread->next = snd_rec.threads;
    thread->back = &snd_rec.threads;
    if (thread->next)
        thread->next->back = &thread->next;
    snd_rec.threads = thread;
    snd_rec.thread_count++;
}

static void unlink_thread(struct snd_thread *thread)
{
    *thread->back = thread->next;
    if (thread->next)
        thread->next->back = thread->back;
    thread->back = NULL;
    snd_rec.thread_count--;
}

/* The memory of a chunk of an earlier recording: this thread alone may still write there. */
static void drop_parked(struct snd_thread *thread)
{
    thread->lane->cur = thread->lane->end = thread->lane->leaf = NULL;
    if (thread->map)
        snd_file_unmap(thread->map, thread->map_size);
    thread->map = NULL;
    thread->gap = NULL;
    thread->chunk = SND_NO_CHUNK;
}

/* False: no room; tried again when there is a new supply, with the record already written. */
static bool attach(struct snd_thread *thread, uint64_t at)
{
    if (thread->serial != snd_rec.serial) {
        drop_parked(thread);
        thread->lost_since = thread->ends_since = thread->skip_depth = 0;
        thread->gap_at = 0;
        if (!write_thread_record(thread))
            return false;
        thread->serial = snd_rec.serial;
    }
    if (!first_chunk(thread, at))
        return false;
    link_thread(thread);
    if (snd_rec.has_supplier)
        pthread_cond_signal(&snd_rec.wake);
    return true;
}

static void leave_recording(struct snd_thread *thread)
{
    uint64_t used = lane_used(thread);

    thread->record->end = sonde_clock();
    settle_losses(thread);
    if (used + WORTH_REUSING <= thread->map_size && thread->lost_since == 0) {
        snd_rec.chunks[thread->chunk].used = used;
        snd_rec.chunks[thread->chunk].left = snd_rec.seq;
        snd_list_push(&snd_rec.partial, thread->chunk);
        if (snd_rec.keep_last && snd_rec.has_supplier) /* a dry thread may have it */
            pthread_cond_signal(&snd_rec.wake);
    } else {
        snd_chunk_retire(thread->chunk, used);
    }
    thread->map = NULL; /* the recording's again */
    unlink_thread(thread);
}

static void enter_living(struct snd_thread *thread)
{
    thread->older = living;
    thread->younger = &living;
    if (living)
        living->younger = &thread->older;
    living = thread;
}

static void leave_living(struct snd_thread *thread)
{
    *thread->younger = thread->older;
    if (thread->older)
        thread->older->younger = thread->younger;
}

static void free_thread(struct snd_thread *thread)
{
    snd_ownpages_free(thread->spare, SND_SPARE_SIZE);
    snd_ownpages_free(thread, sizeof *thread);
}

/* Clears what the recorder keeps in the calling thread. */
static void forget_self(void)
{
    self = NULL;
    snd_events_end();
    sonde_lane_ = (struct sonde_lane){ .epoch = 0 };
}

void snd_thread_end(struct snd_thread *thread)
{
    pthread_mutex_lock(&snd_rec.lock);
    if (thread->back && thread->serial == snd_rec.serial)
        leave_recording(thread);
    drop_parked(thread);
    leave_living(thread);
    pthread_mutex_unlock(&snd_rec.lock);
    forget_self();
    free_thread(thread);
}

void snd_threads_release(void)
{
    while (living) {
        struct snd_thread *thread = living;
        leave_living(thread);
        if (thread->map)
            snd_file_unmap(thread->map, thread->map_size);
        free_thread(thread);
    }
    forget_self();
}

static struct snd_thread *make_self(struct sonde_lane *lane)
{
    if (!self) {
        struct snd_thread *thread = snd_ownpages_new(sizeof *thread);
        if (!thread)
            return NULL;
        thread->lane = lane;
        thread->chunk = SND_NO_CHUNK;
        if (pthread_setspecific(exit_key, thread) != 0) {
            snd_ownpages_free(thread, sizeof *thread);
            return NULL;
        }
        enter_living(thread);
        self = thread;
    }
    return self;
}

bool snd_threads_init(void (*at_exit)(void *thread))
{
    return pthread_key_create(&exit_key, at_exit) == 0;
}

void snd_threads_uninit(void)
{
    pthread_key_delete(exit_key);
}

/* -------------------------------------------------------------------- room */

static uint64_t gap_counts(const struct snd_thread *thread)
{
    return (uint64_t)thread->ends_since << 32 | thread->lost_since;
}

static void write_gap(struct snd_thread *thread, uint64_t at)
{
    const uint64_t words[SND_GAP_WORDS] = { at << 8 | SND_EV_GAP, gap_counts(thread) };

    snd_lane_write(thread->lane, words, SND_GAP_WORDS);
}

/* Whether a gap is still to be written, for a pause or for what was lost without a chunk. */
static bool has_gap(const struct snd_thread *thread)
{
    return !thread->gap && (thread->lost_since != 0 || thread->ends_since != 0);
}

/* What was lost is stated, and there is room again. */
static void end_gap(struct snd_thread *thread)
{
    thread->lost_since = thread->ends_since = 0;
    thread->gap_at = 0;
    thread->gap = NULL;
}

void snd_thread_lose(struct snd_thread *thread, uint64_t at, bool is_end)
{
    bool is_first = thread->lost_since == 0;

    if (thread->lost_since < UINT32_MAX)
        thread->lost_since++;
    if (is_end && thread->ends_since < SND_GAP_ALL - 1)
        thread->ends_since++;
    if (is_first && thread->map) {
        uint64_t *gap = thread->lane->cur;
        write_gap(thread, thread->gap_at ? thread->gap_at : at);
        thread->gap = gap;
    } else if (thread->gap) {
        __atomic_store_n(&thread->gap[1], gap_counts(thread), __ATOMIC_RELAXED);
    }
}

/* When the lane's epoch was paused, or 0. */
static uint64_t paused_at(const struct sonde_lane *lane)
{
    uint32_t epoch = __atomic_load_n(&lane->epoch, __ATOMIC_RELAXED);
    size_t   i = epoch % SND_COUNT_OF(snd_rec.pauses);

    return snd_rec.pauses[i].epoch == epoch ? snd_rec.pauses[i].at : 0;
}

/* A pause was between the lane's epoch and this one: which ranges are open is unknown. */
static void enter_epoch(struct snd_thread *thread, uint32_t epoch, bool attached)
{
    struct sonde_lane *lane = thread->lane;

    if (lane->epoch == epoch)
        return;
    thread->skip_depth = 0;
    if (attached) {
        if (thread->gap_at == 0)
            thread->gap_at = paused_at(lane);
        thread->ends_since = SND_GAP_ALL;
        if (thread->gap)
            thread->gap[1] = gap_counts(thread);
        lane->leaf = NULL;
    }
    lane->epoch = epoch;
}

bool snd_thread_make_room(size_t words, uint32_t epoch, uint64_t now)
{
    struct snd_thread *thread = make_self(&sonde_lane_);

    if (!thread)
        return false;
    bool attached = thread->back && thread->serial == snd_rec.serial;
    enter_epoch(thread, epoch, attached);
    if (!attached && !attach(thread, now))
        return false;
    if (thread->lost_since == 0)
        snd_thread_open_lane(thread);
    size_t gap_words = has_gap(thread) ? SND_GAP_WORDS : 0;
    if (!snd_lane_has_room(thread->lane, words + gap_words) &&
        (!next_chunk(thread) || !snd_lane_has_room(thread->lane, words + gap_words)))
        return false;
    if (gap_words > 0)
        write_gap(thread, thread->gap_at ? thread->gap_at : now);
    end_gap(thread);
    return true;
}

/* ---------------------------------------------------------- ends and forks */

/* Ranges that were open when a pause began and were never ended: they end at the pause. */
static void write_last_pause(const struct snd_thread *thread, struct snd_chunk *it, void *view)
{
    uint64_t at = thread->lost_since == 0 ? paused_at(thread->lane) : 0;

    if (at != 0 && it->used + SND_GAP_WORDS * 8 <= it->size) {
        uint64_t *words = (uint64_t *)((char *)view + it->used);
        words[1] = (uint64_t)SND_GAP_ALL << 32;
        words[0] = at << 8 | SND_EV_GAP;
        it->used += SND_GAP_WORDS * 8;
    }
}

/*
 * The thread may be writing at the same time. A second mapping of its chunk is read instead of its
 * lane, and what it still writes goes into the anonymous memory mapped over the first.
 */
static void park(struct snd_thread *thread, uint64_t now)
{
    struct snd_chunk *it = &snd_rec.chunks[thread->chunk];
    void             *view = snd_file_view(it->offset, it->size);

    thread->record->end = now;
    snd_count(&snd_header->lost_events, snd_chunk_void(thread->map, it->size, NULL));
    snd_file_park(thread->map, thread->map_size);
    it->map = NULL; /* the thread's own to unmap */
    if (!view)
        return;
    struct snd_chunk_header *map = view;
    it->used = snd_chunk_scan(map, it->size, NULL);
    write_last_pause(thread, it, view);
    thread->record->lost += map->lost;
    map->lost = 0;
    snd_chunk_count(thread->chunk, snd_chunk_seal(map, it->used, true));
    snd_file_unmap(view, it->size);
    snd_file_punch(it->offset + it->used, it->offset + it->size);
}

void snd_threads_park(uint64_t now)
{
    while (snd_rec.threads) {
        struct snd_thread *thread = snd_rec.threads;
        park(thread, now);
        unlink_thread(thread);
    }
}

/* Its chunk is its parent's, but the memory is the thread's own to unmap, if it is alive here. */
static void forget(struct snd_thread *thread)
{
    if (thread->map)
        snd_file_park(thread->map, thread->map_size);
    if (thread->back && thread->chunk < snd_rec.chunk_count)
        snd_rec.chunks[thread->chunk].map = NULL;
    thread->back = NULL;
}

void snd_threads_forget(enum snd_survivor survivor)
{
    if (survivor == SND_SURVIVOR_ANY)
        for (struct snd_thread *thread = snd_rec.threads; thread; thread = thread->next)
            forget(thread);
    if (survivor == SND_SURVIVOR_CALLER && self)
        forget(self);
    snd_rec.threads = NULL;
    snd_rec.thread_count = 0;
}
