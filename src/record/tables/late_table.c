/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tables/late_table.h"

#include <string.h>

#include "format/references.h"
#include "record/tables/intern.h"
#include "record/own_pages.h"

#define BYTES_MAX ((size_t)64 << 20) /* as of the tables */
#define BYTES_FIRST ((size_t)1 << 16)
#define ENTRIES_FIRST 1024u

struct entry {
    uint32_t at, size; /* of its payload in `bytes` */
    uint32_t type;
};

static struct entry *entries; /* owned, as `bytes`; by id without SND_LATE_ID */
static uint32_t      count, room;
static char         *bytes;
static size_t        used, bytes_room;

static bool refers_to_late(enum snd_record_type type, const void *payload, size_t size)
{
    for (size_t i = 0; i < SND_RECORD_REFERENCES; i++)
        if (snd_record_references[i].from == type &&
            snd_is_late(snd_reference_read(&snd_record_references[i], payload, size)))
            return true;
    return false;
}

static bool make_place(size_t size)
{
    if (used + size > BYTES_MAX || size > SND_LATE_SIZE_MAX)
        return false;
    if (count == room) {
        uint32_t      wanted = room ? room * 2 : ENTRIES_FIRST;
        struct entry *grown = snd_ownpages_grow(entries, room * sizeof *entries,
                                                wanted * sizeof *entries);
        if (!grown)
            return false;
        entries = grown;
        room = wanted;
    }
    while (used + size > bytes_room) {
        size_t wanted = bytes_room ? bytes_room * 2 : BYTES_FIRST;
        char  *grown = snd_ownpages_grow(bytes, bytes_room, wanted);
        if (!grown)
            return false;
        bytes = grown;
        bytes_room = wanted;
    }
    return true;
}

static uint32_t add(enum snd_record_type type, struct snd_hash hash, const void *payload,
                    size_t size)
{
    uint32_t id = SND_LATE_ID | count;

    if (!make_place(size) || !snd_table_put(type, hash, id))
        return snd_table_lose(type);
    memcpy(bytes + used, payload, size);
    entries[count++] = (struct entry){ (uint32_t)used, (uint32_t)size, (uint32_t)type };
    used += size;
    __atomic_fetch_or(&snd_header->flags, SND_FILE_LATE, __ATOMIC_RELAXED);
    return id;
}

uint32_t snd_late_intern(enum snd_record_type type, struct snd_hash hash, const void *payload,
                         size_t size)
{
    if (!snd_table_is_kept_last())
        return snd_table_intern(type, hash, payload, size);
    uint32_t id = snd_table_find(type, hash);
    if (id == 0 && !refers_to_late(type, payload, size))
        id = snd_table_try(type, hash, payload, size);
    if (id == 0) /* trying may have let go of the lock */
        id = snd_table_find(type, hash);
    return id != 0 ? id : add(type, hash, payload, size);
}

struct snd_late snd_late_find(uint32_t id)
{
    uint32_t        at = id & ~SND_LATE_ID;
    struct snd_late late = { SND_REC_STRING, NULL, 0 };

    if (snd_is_late(id) && at < count)
        late = (struct snd_late){ (enum snd_record_type)entries[at].type, bytes + entries[at].at,
                                  entries[at].size };
    return late;
}

uint32_t snd_late_in_tables(uint32_t frame)
{
    struct snd_late         late = snd_late_find(frame);
    struct snd_frame_record record = { 0 };

    if (!snd_is_late(frame) || late.type != SND_REC_FRAME || late.size > sizeof record)
        return snd_is_late(frame) ? 0 : frame;
    memcpy(&record, late.payload, late.size);
    bool loses_names = snd_is_late(record.function | record.file | record.build_id);
    if (snd_is_late(record.function))
        record.function = SND_NAME_LOST;
    if (snd_is_late(record.file))
        record.file = SND_NAME_LOST;
    if (snd_is_late(record.build_id))
        record.build_id = 0;
    struct snd_hash hash = snd_record_hash(SND_REC_FRAME, &record, late.size);
    uint32_t        id = snd_table_find(SND_REC_FRAME, hash);
    if (id != 0 && !snd_is_late(id))
        return id;
    /* Not within the names' share of the limit: a tally is not either. */
    bool made = snd_table_append(SND_REC_FRAME, &id, &record, late.size) &&
                snd_table_put(SND_REC_FRAME, hash, id);
    if (made && loses_names) /* once, however often its counters are looked up */
        snd_count(&snd_header->lost_names, 1);
    return made ? id : 0;
}

uint32_t snd_late_to_tables(uint32_t id)
{
    struct snd_late late = snd_late_find(id);
    char            payload[SND_LATE_SIZE_MAX]; /* appending may let go of the lock */

    if (!snd_is_late(id))
        return id;
    if (late.size == 0 || (late.type != SND_REC_STRING && late.type != SND_REC_SHAPES))
        return snd_table_lose(SND_REC_STRING);
    memcpy(payload, late.payload, late.size);
    /* Not within the names' share of the limit: a fact is not either. */
    if (!snd_table_append(late.type, &id, payload, late.size) ||
        !snd_table_put(late.type, snd_record_hash(late.type, payload, late.size), id))
        return snd_table_lose(late.type);
    return id;
}

void snd_late_abandon(void)
{
    entries = NULL;
    bytes = NULL;
    count = room = 0;
    used = bytes_room = 0;
}

void snd_late_clear(void)
{
    snd_ownpages_free(entries, room * sizeof *entries);
    snd_ownpages_free(bytes, bytes_room);
    snd_late_abandon();
}
