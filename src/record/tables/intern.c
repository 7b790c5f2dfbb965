/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tables/intern.h"

#include <string.h>
#include <sys/mman.h>

#include "record/file/chunk.h"
#include "record/clock.h"
#include "record/file/trace_file.h"
#include "record/own_pages.h"

#define TABLE_FIRST ((uint64_t)SND_GRAIN)
#define TABLE_NEXT ((uint64_t)1 << 18)
#define TABLE_GROWS 16 /* a chunk has 1/16 of the tables' size, if that is more than TABLE_NEXT */
#define NAMES_MAX ((uint64_t)64 << 20) /* the limit for a program that keeps making names */
#define TABLE_MAX \
    ((uint64_t)1 << 30) /* with stacks and tallies, whose number is bounded by the program's code */
#define TABLE_KEPT 4096u /* keep-last: bytes of the last chunk that names leave free */
#define TABLE_SHARE 4    /* keep-last: names may take 1/4 of the limit */
#define SLOTS_FIRST 1024u
#define TALLIES_FIRST 512u
#define PARKED_MAX (TABLE_MAX / TABLE_NEXT + 2) /* chunks with tallies */

static size_t payload_room(size_t size)
{
    return (sizeof(struct snd_record_head) + size + 7) & ~(size_t)7;
}

/* Of the next table chunk: a small limit is not to be used up by one. */
static uint64_t next_size(void)
{
    bool     is_small = snd_rec.keep_last && snd_rec.max_bytes / 16 < TABLE_NEXT;
    uint64_t size = TABLE_NEXT;

    if (snd_rec.table_chunk == SND_NO_CHUNK || is_small)
        return TABLE_FIRST;
    while (!snd_rec.keep_last && size * 2 <= snd_rec.table_bytes / TABLE_GROWS)
        size *= 2;
    return size;
}

static bool has_room(size_t need)
{
    return snd_rec.table_chunk != SND_NO_CHUNK &&
           snd_rec.table_used + need <= snd_rec.chunks[snd_rec.table_chunk].size;
}

/* In flight, so that a stop waits until we, too, are done with the tables. */
static void wait_for_new_chunk(void)
{
    snd_rec.in_flight++;
    while (snd_rec.table_growing)
        pthread_cond_wait(&snd_rec.settled, &snd_rec.lock);
    if (--snd_rec.in_flight == 0)
        pthread_cond_broadcast(&snd_rec.settled);
}

/* Adds a table chunk; false: no room. One thread at a time; releases the lock meanwhile. */
static bool add_chunk(size_t need)
{
    uint64_t size = next_size();

    if (snd_rec.table_bytes + need > TABLE_MAX)
        return false;
    uint64_t least = (need + SND_CHUNK_HEADER_SIZE + SND_GRAIN - 1) / SND_GRAIN * SND_GRAIN;
    while (size < least)
        size *= 2;
    uint32_t before = snd_rec.table_chunk;
    snd_rec.table_growing = true;
    uint32_t chunk = snd_chunk_reserve(size, least, SND_CHUNK_TABLE);
    snd_rec.table_growing = false;
    pthread_cond_broadcast(&snd_rec.settled);
    if (chunk == SND_NO_CHUNK)
        return false;
    snd_chunk_open(chunk, 0);
    snd_list_push(&snd_rec.tables, chunk);
    if (before != SND_NO_CHUNK)
        snd_rec.chunks[before].used = snd_rec.table_used;
    snd_rec.table_chunk = chunk;
    snd_rec.table_used = SND_CHUNK_HEADER_SIZE;
    snd_rec.table_bytes += snd_rec.chunks[chunk].size;
    return true;
}

/* Whether a table chunk has room for `need` more bytes. */
static bool make_room(size_t need)
{
    while (!has_room(need)) {
        if (snd_rec.table_growing)
            wait_for_new_chunk();
        else if (!add_chunk(need))
            return false;
    }
    return true;
}

/* Whether a program can make any number of these. Frames, stacks and tallies are bounded by its code. */
static bool is_name(enum snd_record_type type)
{
    return type != SND_REC_FRAME && type != SND_REC_STACK && type != SND_REC_TALLY;
}

void *snd_table_append(enum snd_record_type type, uint32_t *id, const void *payload, size_t size)
{
    size_t need = payload_room(size);

    if (!make_room(need))
        return NULL;
    char *at = (char *)snd_rec.chunks[snd_rec.table_chunk].map + snd_rec.table_used;
    snd_rec.table_used += need;
    if (is_name(type))
        snd_rec.name_bytes += need;
    *id = ++snd_rec.next_id[type];
    memcpy(at + sizeof(struct snd_record_head), payload, size);
    uint64_t head = (uint64_t)*id << 32 | (uint32_t)(need << 8) | type;
    __atomic_store_n((uint64_t *)at, head, __ATOMIC_RELEASE);
    return at + sizeof(struct snd_record_head);
}

void snd_table_clock(void)
{
    struct snd_clock_pair pair = snd_clock_pair_now();
    uint32_t              id;

    snd_table_append(SND_REC_CLOCK, &id, &pair, sizeof pair);
}

/* ------------------------------------------------------------------ lookup */

static struct snd_intern_slot *find_slot(struct snd_intern_slot *slots, size_t count,
                                         struct snd_hash hash, uint32_t type)
{
    size_t at = hash.low & (count - 1);

    while (slots[at].id != 0 && (slots[at].hash.low != hash.low ||
                                 slots[at].hash.high != hash.high || slots[at].type != type))
        at = (at + 1) & (count - 1);
    return &slots[at];
}

static bool grow_slots(void)
{
    size_t                  count = snd_rec.slot_count ? snd_rec.slot_count * 2 : SLOTS_FIRST;
    struct snd_intern_slot *slots = snd_ownpages_new(count * sizeof *slots);

    if (!slots)
        return false;
    for (size_t i = 0; i < snd_rec.slot_count; i++)
        if (snd_rec.slots[i].id != 0)
            *find_slot(slots, count, snd_rec.slots[i].hash,
                       snd_rec.slots[i].type) = snd_rec.slots[i];
    snd_ownpages_free(snd_rec.slots, snd_rec.slot_count * sizeof *slots);
    snd_rec.slots = slots;
    snd_rec.slot_count = count;
    return true;
}

/* Chunks of any other size are not packed whole, and could not keep names of their own. */
bool snd_table_is_kept_last(void)
{
    return snd_rec.keep_last && snd_rec.chunk_bytes <= SONDE_DEFAULT_CHUNK_BYTES;
}

/* Types that need not be in the tables: names, and what leads to them. */
static bool may_be_late(enum snd_record_type type)
{
    return type == SND_REC_STRING || type == SND_REC_SHAPES || type == SND_REC_FRAME ||
           type == SND_REC_STACK || type == SND_REC_CALL || type == SND_REC_QUEUE ||
           type == SND_REC_WORK;
}

/* In keep-last mode names are not to fill the file: further ones go where they are used. */
static bool is_share_spent(enum snd_record_type type, size_t need)
{
    return may_be_late(type) && snd_table_is_kept_last() && snd_rec.max_bytes != 0 &&
           snd_rec.table_chunk != SND_NO_CHUNK &&
           snd_rec.table_used + need + TABLE_KEPT > snd_rec.chunks[snd_rec.table_chunk].size &&
           (snd_rec.table_bytes + TABLE_FIRST > snd_rec.max_bytes / TABLE_SHARE ||
            snd_rec.file_end + next_size() > snd_rec.max_bytes);
}

void snd_table_begin_own(void)
{
    if (!snd_table_is_kept_last())
        return;
    __atomic_store_n(&snd_rec.own_names, true, __ATOMIC_RELAXED);
    __atomic_fetch_or(&snd_header->flags, SND_FILE_OWN_NAMES, __ATOMIC_RELAXED);
}

uint32_t snd_table_lose(enum snd_record_type type)
{
    if (type == SND_REC_STRING)
        snd_table_begin_own();
    snd_count(&snd_header->lost_names, 1);
    return type == SND_REC_STRING ? SND_NAME_LOST : 0;
}

static bool is_found(const struct snd_intern_slot *slot)
{
    return slot->id != 0 && !snd_is_late(slot->id);
}

bool snd_table_put(enum snd_record_type type, struct snd_hash hash, uint32_t id)
{
    if (snd_rec.slot_used * 2 >= snd_rec.slot_count && !grow_slots())
        return false;
    struct snd_intern_slot *slot = find_slot(snd_rec.slots, snd_rec.slot_count, hash, type);
    snd_rec.slot_used += slot->id == 0;
    *slot = (struct snd_intern_slot){ hash, id, type };
    return true;
}

uint32_t snd_table_try(enum snd_record_type type, struct snd_hash hash, const void *payload,
                       size_t size)
{
    struct snd_intern_slot *slot = find_slot(snd_rec.slots, snd_rec.slot_count, hash, type);
    uint32_t                id = 0;

    if (is_found(slot))
        return slot->id;
    /* Room first: making it may let go of the lock, and another thread may add the same one. */
    bool is_full = is_name(type) && snd_rec.name_bytes + payload_room(size) > NAMES_MAX;
    if (is_full || is_share_spent(type, payload_room(size)) || !make_room(payload_room(size)))
        return 0;
    slot = find_slot(snd_rec.slots, snd_rec.slot_count, hash, type);
    if (is_found(slot))
        return slot->id;
    if (snd_rec.slot_used * 2 >= snd_rec.slot_count && !grow_slots())
        return 0;
    if (!snd_table_append(type, &id, payload, size) || !snd_table_put(type, hash, id))
        return 0;
    if (is_share_spent(type, TABLE_KEPT)) /* soon: before one finds no room */
        snd_table_begin_own();
    return id;
}

uint32_t snd_table_intern(enum snd_record_type type, struct snd_hash hash, const void *payload,
                          size_t size)
{
    uint32_t id = snd_table_try(type, hash, payload, size);

    return id != 0 ? id : snd_table_lose(type);
}

uint32_t snd_table_text(const char *text, size_t length)
{
    char     payload[4 + SND_TEXT_MAX];
    uint32_t size = (uint32_t)(length < SND_TEXT_MAX ? length : SND_TEXT_MAX);

    if (size < length)
        snd_count(&snd_header->cut_names, 1);
    memcpy(payload, &size, sizeof size);
    memcpy(payload + sizeof size, text, size);
    return snd_table_intern(SND_REC_STRING,
                            snd_record_hash(SND_REC_STRING, payload, sizeof size + size), payload,
                            sizeof size + size);
}

uint32_t snd_table_find(enum snd_record_type type, struct snd_hash hash)
{
    return find_slot(snd_rec.slots, snd_rec.slot_count, hash, type)->id;
}

/* ----------------------------------------------------------------- tallies */

static bool grow_tallies(void)
{
    size_t     room = snd_rec.tally_room ? snd_rec.tally_room * 2 : TALLIES_FIRST;
    uint64_t **tallies = snd_ownpages_new(room * sizeof(*tallies));

    if (!tallies)
        return false;
    if (snd_rec.tally_room)
        memcpy(tallies, snd_rec.tallies, snd_rec.tally_room * sizeof(*tallies));
    snd_ownpages_free(snd_rec.tallies, snd_rec.tally_room * sizeof(*tallies));
    snd_rec.tallies = tallies;
    snd_rec.tally_room = room;
    return true;
}

uint64_t *snd_table_tally(const struct snd_tally_record *tally)
{
    struct {
        struct snd_tally_record head;
        uint64_t                words[SND_TALLY_WORDS_MAX];
    } record = { *tally, { 0 } };
    size_t          size = sizeof record.head + tally->count * sizeof record.words[0];
    struct snd_hash hash = snd_record_hash(SND_REC_TALLY, &record.head, sizeof record.head);

    /* Room first: after it nobody lets go of the lock, and a new id is the last in the table. */
    uint32_t before = 0;
    bool     ready = make_room(payload_room(size));
    if (ready) {
        before = snd_rec.next_id[SND_REC_TALLY];
        ready = before + 1 < snd_rec.tally_room || grow_tallies();
    }
    if (!ready) {
        snd_table_lose(SND_REC_TALLY);
        return NULL;
    }
    uint32_t id = snd_table_intern(SND_REC_TALLY, hash, &record, size);
    if (id == 0)
        return NULL;
    if (id > before) {
        struct snd_chunk *chunk = &snd_rec.chunks[snd_rec.table_chunk];
        chunk->tallied = true;
        snd_rec.tallies[id] = (uint64_t *)((char *)chunk->map + snd_rec.table_used) - tally->count;
    }
    return snd_rec.tallies[id];
}

static void drop_parked(void)
{
    for (size_t i = 0; i < snd_rec.parked_count; i++)
        snd_file_unmap(snd_rec.parked[i].map, snd_rec.parked[i].size);
    snd_rec.parked_count = 0;
}

void snd_tallies_park(void)
{
    drop_parked();
    if (!snd_rec.parked)
        snd_rec.parked = snd_ownpages_new(PARKED_MAX * sizeof(*snd_rec.parked));
    for (uint32_t i = 0; i < snd_rec.chunk_count; i++) {
        struct snd_chunk *chunk = &snd_rec.chunks[i];
        if (!chunk->tallied || !chunk->map)
            continue;
        void *again = snd_file_view(chunk->offset, chunk->size);
        snd_file_park(chunk->map, chunk->size);
        if (snd_rec.parked && snd_rec.parked_count < PARKED_MAX)
            snd_rec.parked[snd_rec.parked_count++] = (struct snd_parked){ chunk->map, chunk->size };
        chunk->map = again; /* NULL: unsealed, but all there */
    }
}

void snd_tallies_release(void)
{
    drop_parked();
    snd_ownpages_free(snd_rec.parked, PARKED_MAX * sizeof(*snd_rec.parked));
    snd_rec.parked = NULL;
}

/* ---------------------------------------------------------- begin and end */

bool snd_table_start(void)
{
    static const char lost[] = "(names lost)";

    memset(snd_rec.next_id, 0, sizeof snd_rec.next_id);
    snd_rec.table_chunk = SND_NO_CHUNK;
    snd_rec.table_bytes = snd_rec.name_bytes = 0;
    snd_rec.slot_used = 0;
    snd_rec.own_names = false;
    if (!grow_slots())
        return false;
    snd_table_text(lost, sizeof lost - 1);
    return snd_rec.next_id[SND_REC_STRING] == SND_NAME_LOST; /* it is there, and has this id */
}

void snd_table_abandon(void)
{
    snd_rec.slots = NULL;
    snd_rec.slot_count = 0;
    snd_rec.tallies = NULL;
    snd_rec.tally_room = 0;
    snd_rec.parked = NULL;
    snd_rec.parked_count = 0;
    snd_rec.table_chunk = SND_NO_CHUNK;
}

void snd_table_stop(void)
{
    snd_ownpages_free(snd_rec.slots, snd_rec.slot_count * sizeof *snd_rec.slots);
    snd_rec.slots = NULL;
    snd_rec.slot_count = 0;
    snd_ownpages_free(snd_rec.tallies, snd_rec.tally_room * sizeof(*snd_rec.tallies));
    snd_rec.tallies = NULL;
    snd_rec.tally_room = 0;
    snd_rec.table_chunk = SND_NO_CHUNK;
}
