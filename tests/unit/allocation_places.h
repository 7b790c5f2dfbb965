/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/allocation_places.h - from how many places a program allocates. A place is where the call is and where the calls
 * that led to it are: an array that grows in a loop is one place, the same array for another export is another.
 */
#ifndef SND_TESTS_ALLOCATION_PLACES_H
#define SND_TESTS_ALLOCATION_PLACES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

enum { PLACES_MAX = 1 << 16, PLACE_DEPTH = 10 };

static struct {
    atomic_bool     on;
    pthread_mutex_t lock;
    uint64_t        seen[PLACES_MAX]; /* by hash, of all that was looked at; 0: free */
    size_t          seen_count;
    long            made;              /* allocations, since somebody set it to 0 */
    long            fresh[PLACES_MAX]; /* which of those were the first of a place */
    size_t          fresh_count;
} places = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct place {
    uint64_t hash;
    int      depth;
};

static inline _Unwind_Reason_Code add_caller(struct _Unwind_Context *context, void *user)
{
    struct place *place = user;

    place->hash = (place->hash ^ _Unwind_GetIP(context)) * 0x9e3779b97f4a7c15u;
    place->hash ^= place->hash >> 29;
    return ++place->depth < PLACE_DEPTH ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static inline bool is_new_place(uint64_t hash)
{
    size_t at = hash % PLACES_MAX;

    while (places.seen[at] != 0 && places.seen[at] != hash)
        at = (at + 1) % PLACES_MAX;
    if (places.seen[at] == hash || places.seen_count == PLACES_MAX / 2)
        return false;
    places.seen[at] = hash;
    places.seen_count++;
    return true;
}

/* For failing_memory.h's allocation_seen. */
static inline void look_at_place(void)
{
    struct place place = { 1, 0 };

    if (!atomic_load(&places.on))
        return;
    _Unwind_Backtrace(add_caller, &place);
    pthread_mutex_lock(&places.lock);
    if (is_new_place(place.hash | 1))
        places.fresh[places.fresh_count++] = places.made;
    places.made++;
    pthread_mutex_unlock(&places.lock);
}

#endif
