/* SPDX-License-Identifier: Apache-2.0 */
#include "record/file/supply.h"

#include <time.h>

#include "record/file/apart_file.h"
#include "record/file/chunk.h"
#include "record/clock.h"
#include "record/tables/intern.h"
#include "record/unload.h"

#define STOCK_DELAY_NS 1000000u   /* a recording shorter than this needs no stock */
#define CLOCK_FIRST_NS 250000000u /* first further clock pair; then twice as long each time */
#define CLOCK_LAST_NS 60000000000u
#define HELPERS_MAX 2u /* that a busy machine has not let end yet */

static uint32_t wanted_stock(uint64_t now_ns, uint64_t started_ns)
{
    /* retry_at: a thread may be waiting for its very first chunk. */
    if ((snd_rec.thread_count == 0 && snd_rec.retry_at == 0) ||
        now_ns - started_ns < STOCK_DELAY_NS)
        return 0;
    return snd_rec.thread_count + 1 < SND_READY_MAX ? snd_rec.thread_count + 1 : SND_READY_MAX;
}

/* Reserves one chunk if the stock is low. Returns whether it did anything. */
static bool restock(uint64_t now_ns, uint64_t started_ns)
{
    if (snd_rec.ready.count >= wanted_stock(now_ns, started_ns) || !snd_may_reserve())
        return false;
    uint32_t chunk = snd_chunk_reserve(snd_rec.chunk_bytes, SND_GRAIN, SND_CHUNK_LANE);
    if (chunk == SND_NO_CHUNK)
        return false;
    snd_rec.retry_at = 0;
    snd_list_push(&snd_rec.ready, chunk);
    __atomic_fetch_add(&snd_rec.supplies, 1, __ATOMIC_RELEASE);
    return true;
}

static void wait_until(uint64_t at_ns)
{
    struct timespec until = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };

    pthread_cond_timedwait(&snd_rec.wake, &snd_rec.lock, &until);
}

/* restock() and snd_chunk_seal_next() let go of the lock: the recording may have been stopped. */
static bool is_turn(const void *turn)
{
    return snd_rec.supply_turn == (uint32_t)(uintptr_t)turn;
}

static void *supply(void *turn)
{
    pthread_mutex_lock(&snd_rec.lock);
    if (is_turn(turn))
        snd_apart_keep();
    uint64_t started_ns = snd_monotonic_ns();
    uint64_t interval = CLOCK_FIRST_NS, pair_at = started_ns + interval;
    while (is_turn(turn)) {
        uint64_t now = snd_monotonic_ns();
        if (now >= pair_at) {
            snd_table_clock();
            interval = interval * 2 < CLOCK_LAST_NS ? interval * 2 : CLOCK_LAST_NS;
            pair_at = now + interval;
        }
        if (snd_rec.retired.count > 0) {
            snd_chunk_seal_next();
        } else if (!restock(now, started_ns) && is_turn(turn) && snd_rec.retired.count == 0) {
            uint64_t next = pair_at;
            if (now < started_ns + STOCK_DELAY_NS)
                next = started_ns + STOCK_DELAY_NS;
            else if (snd_rec.retry_at > now)
                next = snd_rec.retry_at;
            wait_until(next);
        }
    }
    snd_rec.helpers--;
    pthread_cond_broadcast(&snd_rec.settled);
    pthread_mutex_unlock(&snd_rec.lock);
    return NULL;
}

/* Read without the lock by threads that have no chunk. */
static void set_supplier(bool there)
{
    __atomic_store_n(&snd_rec.has_supplier, there, __ATOMIC_RELAXED);
}

static pthread_t helper; /* the latest; joined if its code may be unmapped, or else detached */

void snd_supply_start(void)
{
    set_supplier(false);
    if (snd_rec.is_alone)
        return;
    void *turn = (void *)(uintptr_t)snd_rec.supply_turn; /* NOLINT(performance-no-int-to-ptr) */
    if (snd_apart_thread(&helper, !snd_unload_is_possible(), supply, turn, "sonde-supply")) {
        snd_rec.helpers++;
        set_supplier(true);
    }
}

void snd_supply_stop(void)
{
    bool has_helper = snd_rec.has_supplier;

    snd_rec.supply_turn++;
    pthread_cond_broadcast(&snd_rec.wake);
    set_supplier(false);
    if (has_helper && snd_unload_is_possible()) {
        pthread_mutex_unlock(&snd_rec.lock);
        pthread_join(helper, NULL);
        pthread_mutex_lock(&snd_rec.lock);
    }
    while (snd_rec.in_flight > 0 || snd_rec.helpers > HELPERS_MAX)
        pthread_cond_wait(&snd_rec.settled, &snd_rec.lock);
}
