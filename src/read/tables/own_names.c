/* SPDX-License-Identifier: Apache-2.0 */
/* read/tables/own_names.c - names in lane chunks (NAME), for which the tables had no room. */
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "read/file/cursor.h"
#include "read/reader.h"

#define OWN_WINDOW ((size_t)1 << 18)

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
    struct own_name  *own = NULL;
    struct snd_cursor cursor = { 0 };
    enum sonde_status status = SONDE_OK;

    if (!(process->header.flags & SND_FILE_OWN_NAMES))
        return SONDE_OK;
    own = calloc(1, sizeof *own);
    if (!own)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the names of the trace");
    for (uint32_t i = 0; i < process->lane_count && status == SONDE_OK; i++) {
        uint32_t names = process->tables.name_count;
        process->lanes[i].first_own = names ? names : 1; /* 0 is none */
        own->next = 0;
        status = snd_cursor_open(&cursor, process, &process->lanes[i], OWN_WINDOW, codec, err);
        if (status == SONDE_OK && !read_own(trace, process, own, &cursor))
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the names of the trace");
    }
    snd_cursor_release(&cursor);
    free(own);
    return status;
}
