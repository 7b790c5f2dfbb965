/* SPDX-License-Identifier: Apache-2.0 */
#include "record/file/chunk.h"

#include <errno.h>
#include <string.h>

#include "base/data/crc32c.h"
#include "record/file/bus_errors.h"
#include "record/clock.h"
#include "record/file/trace_file.h"
#include "record/own_pages.h"

#define RETIRED_MAX 4             /* beyond, the marking thread seals its own */
#define RETRY_DELAY_NS 100000000u /* after a failed reserve */

/* ------------------------------------------------------------------- lists */

void snd_list_push(struct snd_chunk_list *list, uint32_t chunk)
{
    snd_rec.chunks[chunk].next = SND_NO_CHUNK;
    if (list->count == 0)
        list->head = chunk;
    else
        snd_rec.chunks[list->tail].next = chunk;
    list->tail = chunk;
    list->count++;
}

uint32_t snd_list_pop(struct snd_chunk_list *list)
{
    if (list->count == 0)
        return SND_NO_CHUNK;
    uint32_t chunk = list->head;
    list->head = snd_rec.chunks[chunk].next;
    list->count--;
    return chunk;
}

static uint32_t new_descriptor(void)
{
    uint32_t chunk = snd_list_pop(&snd_rec.unused);

    if (chunk != SND_NO_CHUNK)
        return chunk;
    if (snd_rec.chunk_count == snd_rec.chunk_capacity) {
        const size_t each = sizeof *snd_rec.chunks;
        uint32_t     capacity = snd_rec.chunk_capacity ? snd_rec.chunk_capacity * 2 : 128;
        void        *grown = snd_ownpages_grow(snd_rec.chunks, snd_rec.chunk_capacity * each,
                                               capacity * each);
        if (!grown)
            return SND_NO_CHUNK;
        snd_rec.chunks = grown;
        snd_rec.chunk_capacity = capacity;
    }
    return snd_rec.chunk_count++;
}

void snd_chunks_clear(void)
{
    for (uint32_t i = 0; i < snd_rec.chunk_count; i++)
        if (snd_rec.chunks[i].map)
            snd_file_unmap(snd_rec.chunks[i].map, snd_rec.chunks[i].size);
    struct snd_chunk_list empty = { 0, 0, 0 };
    snd_rec.unused = snd_rec.ready = snd_rec.retired = snd_rec.partial = empty;
    snd_rec.sealed = snd_rec.tables = empty;
    snd_rec.chunk_count = 0;
    snd_rec.events = 0;
}

void snd_chunks_abandon(void)
{
    snd_rec.chunks = NULL;
    snd_rec.chunk_count = snd_rec.chunk_capacity = 0;
    snd_chunks_clear();
}

/* ----------------------------------------------------------------- sealing */

static inline bool is_span(const uint64_t *words)
{
    return SND_EVENT_KIND(words[0]) == SND_EV_SPAN;
}

static inline bool is_open(const uint64_t *span)
{
    return SND_SPAN_TICKS(span[1]) == 0;
}

/*
 * Most events are spans, so those are counted four at a time. Returns the first place from `at` on
 * that is not counted; adds the events that the spans stand for to `count`.
 */
static const uint64_t *count_spans(const uint64_t *at, const uint64_t *end, uint64_t *count)
{
    const uint64_t *first = at;
    uint64_t        open = 0;

    for (; end - at >= 8; at += 8) {
        if (!is_span(at) || !is_span(at + 2) || !is_span(at + 4) || !is_span(at + 6))
            break;
        open += is_open(at);
        open += is_open(at + 2);
        open += is_open(at + 4);
        open += is_open(at + 6);
    }
    *count += (uint64_t)(at - first) - open;
    return at;
}

uint64_t snd_chunk_scan(const struct snd_chunk_header *map, uint64_t size, uint64_t *events)
{
    const uint64_t *words = (const uint64_t *)map, *end = words + size / 8;
    const uint64_t *at = words + SND_CHUNK_HEADER_SIZE / 8;
    uint64_t        count = 0;

    while ((at = count_spans(at, end, &count)) < end && *at != 0) {
        unsigned length = SND_KIND_WORDS(SND_EVENT_KIND(*at));
        if (length > (size_t)(end - at))
            break;
        count += snd_event_weight(at);
        at += length;
    }
    if (events)
        *events = count;
    return (uint64_t)(at - words) * 8;
}

/* Where the records that the file holds end, and how many after them are lost. */
static uint64_t count_void_records(const struct snd_chunk_header *map, uint64_t used, size_t cut,
                                   uint64_t *end)
{
    uint64_t at = SND_CHUNK_HEADER_SIZE, lost = 0;

    *end = at;
    while (at + sizeof(struct snd_record_head) <= used) {
        struct snd_record_head head;
        memcpy(&head, (const char *)map + at, sizeof head);
        if (SND_RECORD_SIZE(head) < sizeof head)
            break;
        at += SND_RECORD_SIZE(head);
        if (at <= cut)
            *end = at;
        else
            lost++;
    }
    return lost;
}

uint64_t snd_chunk_void(const struct snd_chunk_header *map, uint64_t size, uint64_t *end)
{
    const uint64_t *words = (const uint64_t *)map;
    size_t          cut = snd_bus_cut(map, size);
    uint64_t        at = SND_CHUNK_HEADER_SIZE / 8, last = at, lost = 0;

    if (cut >= size)
        return 0;
    while (at < size / 8) {
        if (words[at] == 0) { /* what the file has, or had, is not in this memory */
            at++;
            continue;
        }
        unsigned length = SND_KIND_WORDS(SND_EVENT_KIND(words[at]));
        if ((at + length) * 8 <= cut)
            last = at + length;
        else
            lost += at + length > size / 8                    ? 1
                    : SND_EVENT_KIND(words[at]) == SND_EV_GAP ? 0 /* what it states is counted */
                                                              : snd_event_weight(words + at);
        at += length;
    }
    if (end)
        *end = last * 8;
    return lost;
}

/*
 * Counts and cuts off what was stored in memory that the file does not hold. Returns the bytes that
 * remain.
 */
static uint64_t lose_void(struct snd_chunk_header *map, uint64_t used)
{
    size_t   cut = snd_bus_cut(map, used);
    uint64_t end = used;

    if (cut >= used)
        return used;
    if (map->kind == SND_CHUNK_TABLE)
        snd_count(&snd_header->lost_names, count_void_records(map, used, cut, &end));
    else
        snd_count(&snd_header->lost_events, snd_chunk_void(map, used, &end));
    return end;
}

uint64_t snd_chunk_seal(struct snd_chunk_header *map, uint64_t used, bool checksum)
{
    uint64_t events = 0;

    used = lose_void(map, used);
    if (map->magic != SND_CHUNK_MAGIC) /* the file was truncated, and made longer again since */
        snd_header->cut_files = 1;
    if (map->kind == SND_CHUNK_LANE)
        snd_chunk_scan(map, used, &events);
    if (checksum) {
        map->crc = snd_crc32c(0, (const char *)map + SND_CHUNK_HEADER_SIZE,
                              used - SND_CHUNK_HEADER_SIZE);
        map->crc_set = 1;
    }
    __atomic_store_n(&map->used, used, __ATOMIC_RELEASE);
    return events;
}

void snd_chunk_count(uint32_t chunk, uint64_t events)
{
    snd_rec.chunks[chunk].events = events;
    snd_rec.events += events;
}

/*
 * Seals without the lock: no other thread can reach the chunk. In keep-last mode it enters the list of
 * sealed chunks before that: the list is by age, and of two threads that seal at once either may finish first.
 */
void snd_chunk_seal_next(void)
{
    uint32_t         chunk = snd_list_pop(&snd_rec.retired);
    struct snd_chunk it = snd_rec.chunks[chunk];
    bool             at_leisure = snd_rec.retired.count == 0 && snd_rec.ready.count > 0;

    snd_rec.in_flight++;
    snd_rec.chunks[chunk].map = NULL;
    snd_rec.chunks[chunk].sealing = true;
    if (snd_rec.keep_last)
        snd_list_push(&snd_rec.sealed, chunk);
    pthread_mutex_unlock(&snd_rec.lock);
    /* no checksum while other chunks wait */
    uint64_t events = snd_chunk_seal(it.map, it.used, at_leisure);
    snd_file_unmap(it.map, it.size);
    pthread_mutex_lock(&snd_rec.lock);
    snd_chunk_count(chunk, events);
    snd_rec.chunks[chunk].sealing = false;
    if (!snd_rec.keep_last)
        snd_list_push(&snd_rec.unused, chunk);
    if (--snd_rec.in_flight == 0 || snd_rec.keep_last)
        pthread_cond_broadcast(&snd_rec.settled);
}

void snd_chunk_retire(uint32_t chunk, uint64_t used)
{
    snd_rec.chunks[chunk].used = used;
    snd_rec.chunks[chunk].left = snd_rec.seq;
    snd_list_push(&snd_rec.retired, chunk);
    if (!snd_rec.has_supplier || snd_rec.retired.count > RETIRED_MAX)
        snd_chunk_seal_next();
    else
        pthread_cond_signal(&snd_rec.wake);
}

/* --------------------------------------------------------------- reserving */

static void note_failure(int os_error)
{
    snd_header->last_os_error = (uint32_t)os_error;
    snd_count(&snd_header->failed_reserves, 1);
    snd_rec.retry_at = snd_monotonic_ns() + RETRY_DELAY_NS;
}

static void note_limit(void)
{
    snd_rec.exhausted = true;
    __atomic_fetch_or(&snd_header->flags, SND_FILE_LIMIT, __ATOMIC_RELAXED);
}

/* The chunk that was given up first: a full one, or one that an ended thread left half empty. */
static struct snd_chunk_list *oldest(void)
{
    struct snd_chunk_list *full = &snd_rec.sealed, *partial = &snd_rec.partial;

    if (full->count == 0 || partial->count == 0)
        return full->count ? full : partial;
    return snd_rec.chunks[full->head].left <= snd_rec.chunks[partial->head].left ? full : partial;
}

/* Takes the oldest out of its list, once it is sealed. */
static uint32_t pop_oldest(void)
{
    uint32_t serial = snd_rec.serial;

    while (snd_rec.phase == SND_OPEN && snd_rec.serial == serial) {
        struct snd_chunk_list *list = oldest();
        if (list->count == 0 && snd_rec.retired.count > 0)
            snd_chunk_seal_next(); /* the helper has not come to it */
        else if (list->count > 0 && snd_rec.chunks[list->head].sealing)
            pthread_cond_wait(&snd_rec.settled, &snd_rec.lock);
        else
            return snd_list_pop(list);
    }
    return SND_NO_CHUNK;
}

/* The oldest chunk, emptied: keep-last mode at its limit. */
static uint32_t recycle(uint64_t size)
{
    uint32_t chunk = pop_oldest();

    if (chunk == SND_NO_CHUNK)
        return SND_NO_CHUNK;
    struct snd_chunk it = snd_rec.chunks[chunk];
    if (it.size < size) { /* a thread's small first chunk: leave its old events in place */
        snd_list_push(&snd_rec.unused, chunk);
        return recycle(size);
    }
    uint64_t events = 0;
    snd_rec.in_flight++;
    pthread_mutex_unlock(&snd_rec.lock);
    struct snd_chunk_header *map = it.map ? it.map : snd_file_map(it.offset, it.size);
    if (map) {
        snd_chunk_scan(map, it.size, &events);
        /* The header says "never used" first, so that a reader never sees half of it. */
        __atomic_store_n(&map->seq, 0, __ATOMIC_RELEASE);
        map->crc_set = 0;
        map->lost = 0;
        __atomic_store_n(&map->used, 0, __ATOMIC_RELEASE);
        memset((char *)map + SND_CHUNK_HEADER_SIZE, 0, it.size - SND_CHUNK_HEADER_SIZE);
    }
    pthread_mutex_lock(&snd_rec.lock);
    if (--snd_rec.in_flight == 0)
        pthread_cond_broadcast(&snd_rec.settled);
    snd_rec.chunks[chunk].map = map;
    if (!map) {
        snd_list_push(&snd_rec.sealed, chunk);
        return SND_NO_CHUNK;
    }
    snd_rec.events -= it.events;
    snd_rec.chunks[chunk].events = 0;
    snd_count(&snd_header->recycled_chunks, 1);
    snd_count(&snd_header->recycled_events, events);
    __atomic_fetch_or(&snd_header->flags, SND_FILE_LIMIT, __ATOMIC_RELAXED);
    return chunk;
}

static void init_chunk(struct snd_chunk_header *map, uint64_t size, enum snd_chunk_kind kind)
{
    map->kind = (uint16_t)kind;
    map->header_size = SND_CHUNK_HEADER_SIZE;
    map->size = size;
    __atomic_store_n(&map->magic, SND_CHUNK_MAGIC, __ATOMIC_RELEASE);
}

/*
 * Whether the limit leaves room. Tables may exceed it a little, or threads could not be recorded;
 * in keep-last mode names stay within it (intern.c).
 */
static bool is_within_limit(uint64_t size, enum snd_chunk_kind kind)
{
    uint64_t slack = kind == SND_CHUNK_TABLE ? (uint64_t)1 << 20 : 0;

    return snd_rec.max_bytes == 0 || snd_rec.file_end + size <= snd_rec.max_bytes ||
           snd_rec.file_end + size - snd_rec.max_bytes <= slack;
}

/* Returns 0 or an errno. */
static int reserve(uint64_t size, enum snd_chunk_kind kind, uint32_t *out)
{
    uint32_t chunk = new_descriptor();
    if (chunk == SND_NO_CHUNK)
        return ENOMEM;

    /* While the file is being opened the lock is kept: another thread would open it again. */
    bool     lets_go = snd_rec.phase == SND_OPEN;
    uint64_t offset = snd_rec.file_end;
    snd_rec.file_end += size;
    snd_rec.chunks[chunk] =
        (struct snd_chunk){ .offset = offset, .size = size, .next = SND_NO_CHUNK };
    snd_rec.in_flight++;
    if (lets_go)
        pthread_mutex_unlock(&snd_rec.lock);

    int   failed = snd_file_reserve(offset, size);
    void *map = failed ? NULL : snd_file_map(offset, size);
    if (map)
        init_chunk(map, size, kind);
    else if (!failed)
        failed = errno;

    if (lets_go)
        pthread_mutex_lock(&snd_rec.lock);
    if (--snd_rec.in_flight == 0)
        pthread_cond_broadcast(&snd_rec.settled);
    if (!map) {
        if (snd_rec.file_end == offset + size)
            snd_rec.file_end = offset;
        snd_list_push(&snd_rec.unused, chunk);
        return failed;
    }
    snd_rec.chunks[chunk].map = map;
    *out = chunk;
    return 0;
}

static uint64_t half(uint64_t size)
{
    return size / 2 / SND_GRAIN * SND_GRAIN;
}

/* Leaves room for other processes of the run that write to the same disk. */
static uint64_t fair_size(uint64_t size, uint64_t least)
{
    uint64_t share = snd_file_free() / 8;

    while (half(size) >= least && size > share)
        size = half(size);
    return size;
}

/* Lanes' chunks that are used again (keep-last) are all of one size. */
uint32_t snd_chunk_reserve(uint64_t size, uint64_t least, enum snd_chunk_kind kind)
{
    bool     is_lane = kind == SND_CHUNK_LANE;
    uint32_t chunk = SND_NO_CHUNK;
    int      failed = 0;

    if (is_lane && snd_rec.keep_last)
        least = size;
    for (uint64_t now = fair_size(size, least); now >= least; now = half(now)) {
        failed = is_within_limit(now, kind) ? reserve(now, kind, &chunk) : 0;
        if (chunk != SND_NO_CHUNK)
            return chunk;
    }
    if (failed != 0)
        note_failure(failed);
    else if (!snd_rec.keep_last)
        note_limit();
    return snd_rec.keep_last && is_lane ? recycle(size) : SND_NO_CHUNK;
}

bool snd_may_reserve(void)
{
    if (snd_rec.exhausted)
        return false;
    return snd_rec.retry_at == 0 || snd_monotonic_ns() >= snd_rec.retry_at;
}

/*
 * In keep-last mode with few chunks, other threads may be moving all of them from one list to the
 * next. Waiting for one is short, and no event is lost. False: none is being moved.
 */
static bool wait_for_recycling(void)
{
    uint32_t serial = snd_rec.serial;

    if (!snd_rec.keep_last || snd_rec.in_flight == 0)
        return false;
    pthread_cond_wait(&snd_rec.settled, &snd_rec.lock);
    return snd_rec.phase == SND_OPEN && snd_rec.serial == serial;
}

uint32_t snd_chunk_take(void)
{
    do {
        uint32_t chunk = snd_list_pop(&snd_rec.ready);
        if (snd_rec.has_supplier && snd_rec.ready.count <= SND_READY_MAX / 2)
            pthread_cond_signal(&snd_rec.wake);
        if (chunk != SND_NO_CHUNK)
            return chunk;
        if (!snd_may_reserve())
            return SND_NO_CHUNK;
        snd_count(&snd_header->late_chunks, 1);
        chunk = snd_chunk_reserve(snd_rec.chunk_bytes, SND_GRAIN, SND_CHUNK_LANE);
        if (chunk != SND_NO_CHUNK)
            return chunk;
    } while (wait_for_recycling());
    return SND_NO_CHUNK;
}

void snd_chunk_open(uint32_t chunk, uint32_t thread)
{
    struct snd_chunk_header *map = snd_rec.chunks[chunk].map;

    map->thread = thread;
    __atomic_store_n(&map->seq, ++snd_rec.seq, __ATOMIC_RELEASE);
}
