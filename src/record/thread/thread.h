/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/thread.h - a thread's life in a recording: attach, change chunks, detach, park.
 *
 * Layer:   record.
 * Threads: with snd_rec.lock held, except where it says otherwise.
 */
#ifndef SND_RECORD_THREAD_THREAD_H
#define SND_RECORD_THREAD_THREAD_H

#include "record/state.h"

/* The calling thread, or NULL if it has not been attached yet. Without the lock. */
struct snd_thread *snd_thread_self(void);

/*
 * Attaches the calling thread if it is not, and gives its lane room for `words` words of this
 * epoch, after a gap if events were lost. `now` is the raw clock. False: there is no room. May let
 * go of the lock.
 */
bool snd_thread_make_room(size_t words, uint32_t epoch, uint64_t now);

static inline bool snd_lane_has_room(const struct sonde_lane *lane, size_t words)
{
    return (size_t)(lane->end - lane->cur) >= words;
}

#define SND_GAP_WORDS 2u /* kept free at the end of each chunk, for a gap */

/*
 * Opens a lane that was shut only to send every mark through the slow path (thread_counts.h), not
 * after a loss.
 */
static inline void snd_thread_open_lane(const struct snd_thread *thread)
{
    thread->lane->end = (uint64_t *)((char *)thread->map + thread->map_size) - SND_GAP_WORDS;
}

/*
 * Counts an event of the calling thread as lost at the time `at`; further ones are lost too until there is
 * room again. `is_end`: it is the end of a recorded range. Without the lock.
 */
void snd_thread_lose(struct snd_thread *thread, uint64_t at, bool is_end);

/* Writes an event of `count` words; word 0 goes last and publishes it. Without the lock. */
void snd_lane_write(struct sonde_lane *lane, const uint64_t *words, size_t count);

/* The recording ends: every thread's chunk is sealed, and parked. */
void snd_threads_park(uint64_t now);

/*
 * A new process has one of its parent's threads. CALLER: it is the calling one (after fork()). ANY: it may also
 * be another, since the process was noticed late and may have created threads. UNKNOWN: what the lock guards
 * cannot be read, and no thread's chunk is touched.
 */
enum snd_survivor { SND_SURVIVOR_CALLER, SND_SURVIVOR_ANY, SND_SURVIVOR_UNKNOWN };
void snd_threads_forget(enum snd_survivor survivor);

/* Once for the process: the function that is called when an attached thread ends. */
bool snd_threads_init(void (*at_exit)(void *thread));

/* From then on no ending thread calls it. */
void snd_threads_uninit(void);

/* In that function: detaches the calling thread and frees it. Without the lock. */
void snd_thread_end(struct snd_thread *thread);

/* Frees what is known of every thread, once none comes here again. Without the lock. */
void snd_threads_release(void);

#endif
