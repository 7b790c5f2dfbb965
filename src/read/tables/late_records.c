/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/late_records.c - records and names in lane chunks (RECORD, NAME), for which the tables had no room.
 *
 * Each chunk has those records that its events use, so one record is met many times; the first counts. It is
 * added to the process's tables with an id of theirs, by which the walk replaces the late one.
 */
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "format/references.h"
#include "read/file/cursor.h"
#include "read/reader.h"

#define LATE_WINDOW ((size_t)1 << 18)

/* A record of which some events have been read. */
struct late_record {
    uint8_t  bytes[SND_LATE_SIZE_MAX + SND_RECORD_BYTES];
    uint32_t id, size, have;
    uint8_t  type;
};

static bool is_late_event(uint8_t kind)
{
    return kind == SND_EV_RECORD || kind == SND_EV_RECORD_SHORT;
}

uint32_t snd_late_replace(const struct snd_tables *t, uint8_t type, uint32_t id)
{
    uint32_t known;

    if (!(id & SND_LATE_ID) || id & SND_OWN_NAME)
        return id;
    return snd_map_get(&t->late, (struct snd_key){ type, id, 0 }, &known) ? known : id;
}

/* The ids in it are those of the tables from here on. What they refer to comes before. */
static void replace_references(const struct snd_tables *t, struct late_record *r)
{
    for (size_t i = 0; i < SND_RECORD_REFERENCES; i++) {
        const struct snd_reference *at = &snd_record_references[i];
        if (at->from != r->type || at->at + sizeof(uint32_t) > r->size)
            continue;
        uint32_t id = snd_late_replace(t, at->to, snd_reference_read(at, r->bytes, r->size));
        memcpy(r->bytes + at->at, &id, sizeof id);
    }
}

/* False when memory is out. */
static bool keep(struct sonde_trace *trace, struct snd_process *process, struct late_record *r)
{
    struct snd_tables *t = &process->tables;
    struct snd_key     key = { r->type, r->id, 0 };
    uint32_t           known;

    if (snd_map_get(&t->late, key, &known))
        return true;
    uint32_t id = snd_table_next_id(t, r->type);
    if (id == 0) {
        process->damage.bad_ids++;
        return true;
    }
    replace_references(t, r);
    return snd_record_parse(trace, process, r->type, id, r->bytes, r->size) &&
           snd_map_put(&t->late, key, id);
}

static bool take(struct sonde_trace *trace, struct snd_process *process, struct late_record *r,
                 const uint64_t *words)
{
    uint32_t id = SND_LOW(words[1]), size = SND_HIGH(words[1]) & 0xffffff;
    uint8_t  type = (uint8_t)(words[1] >> 56);
    size_t   bytes = ((size_t)SND_KIND_WORDS(SND_EVENT_KIND(words[0])) - 2) * 8;

    if (r->have == 0 || r->id != id || r->size != size || r->type != type) {
        r->id = id;
        r->size = size;
        r->type = type;
        r->have = 0;
    }
    if (!(id & SND_LATE_ID) || size == 0 || size > SND_LATE_SIZE_MAX) {
        process->damage.bad_ids++;
        r->have = 0;
        return true;
    }
    memcpy(r->bytes + r->have, &words[2], bytes);
    r->have += (uint32_t)bytes;
    if (r->have < size)
        return true;
    r->have = 0;
    return keep(trace, process, r);
}

static bool read_chunk(struct sonde_trace *trace, struct snd_process *process,
                       struct late_record *record, struct snd_cursor *c)
{
    const uint64_t *words;

    record->have = 0;
    while ((words = snd_cursor_event(c)) != NULL)
        if (is_late_event(SND_EVENT_KIND(words[0])) && !take(trace, process, record, words))
            return false;
    return true;
}

enum sonde_status snd_late_read(struct sonde_trace *trace, struct snd_process *process,
                                struct snd_codec **codec, struct sonde_error *err)
{
    struct late_record *record = calloc(1, sizeof *record);
    struct snd_cursor   cursor = { 0 };
    enum sonde_status   status = SONDE_OK;

    if (!record)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the names of the trace");
    for (uint32_t i = 0; i < process->lane_count && status == SONDE_OK; i++) {
        status = snd_cursor_open(&cursor, process, &process->lanes[i], LATE_WINDOW, codec, err);
        if (status == SONDE_OK && !read_chunk(trace, process, record, &cursor))
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the names of the trace");
    }
    snd_cursor_release(&cursor);
    free(record);
    return status;
}

/* ---------------------------------------------------------------------- names */

/* A name of which some events have been read. */
struct own_name {
    char     text[SND_STRING_MAX + SND_NAME_BYTES];
    size_t   length, have;
    uint32_t next; /* number of the next name, since the last THREAD */
    bool     open;
};

static bool keep_own(struct sonde_trace *trace, struct snd_process *process, struct own_name *own)
{
    uint32_t id;

    if (!own->open)
        return true;
    own->open = false;
    return snd_table_add_string(trace, process, own->text, own->have, &id);
}

static bool take_own(struct sonde_trace *trace, struct snd_process *process, struct own_name *own,
                     const uint64_t *words)
{
    uint32_t number = SND_LOW(words[1]), length = SND_HIGH(words[1]);

    if (number == own->next) {
        if (!keep_own(trace, process, own))
            return false;
        own->next++;
        own->open = true;
        own->have = 0;
        own->length = length < SND_STRING_MAX ? length : SND_STRING_MAX;
    } else if (!own->open || number + 1 != own->next) {
        return true; /* damaged */
    }
    size_t left = own->length - own->have;
    memcpy(own->text + own->have, &words[2], SND_NAME_BYTES);
    own->have += left < SND_NAME_BYTES ? left : SND_NAME_BYTES;
    return true;
}

static bool read_own(struct sonde_trace *trace, struct snd_process *process, struct own_name *own,
                     struct snd_cursor *c)
{
    const uint64_t *words;

    while ((words = snd_cursor_event(c)) != NULL) {
        if (SND_EVENT_KIND(words[0]) == SND_EV_NAME && !take_own(trace, process, own, words))
            return false;
        if (SND_EVENT_KIND(words[0]) == SND_EV_THREAD) {
            if (!keep_own(trace, process, own))
                return false;
            own->next = 0;
        }
    }
    return keep_own(trace, process, own);
}

enum sonde_status snd_own_names_read(struct sonde_trace *trace, struct snd_process *process,
                                     struct snd_codec **codec, struct sonde_error *err)
{
    struct own_name  *own = calloc(1, sizeof *own);
    struct snd_cursor cursor = { 0 };
    enum sonde_status status = SONDE_OK;

    if (!own)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the names of the trace");
    for (uint32_t i = 0; i < process->lane_count && status == SONDE_OK; i++) {
        uint32_t names = process->tables.name_count;
        process->lanes[i].first_own = names ? names : 1; /* 0 is none */
        own->next = 0;
        status = snd_cursor_open(&cursor, process, &process->lanes[i], LATE_WINDOW, codec, err);
        if (status == SONDE_OK && !read_own(trace, process, own, &cursor))
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the names of the trace");
    }
    snd_cursor_release(&cursor);
    free(own);
    return status;
}
