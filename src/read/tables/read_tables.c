/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/read_tables.c - the tables of a process, from its table chunks and from what lane chunks add.
 */
#include <string.h>

#include "format/fields.h"
#include "read/file/cursor.h"
#include "read/reader.h"
#include "read/said/trace_facts.h"

#define TABLE_WINDOW (SND_RECORD_SIZE_MAX + 65536)

enum step { STEP_ON, STEP_MORE, STEP_END, STEP_NOMEM };

/* One record at the cursor: taken, or why not. */
static enum step parse_record(struct sonde_trace *trace, struct snd_process *process,
                              struct snd_cursor *c)
{
    struct snd_record_head head;

    if (c->at == c->count)
        return STEP_MORE;
    const uint8_t *at = (const uint8_t *)(c->words + c->at);
    memcpy(&head, at, sizeof head);
    if (head.size_type == 0 && !c->has_used)
        return STEP_END;
    size_t size = SND_RECORD_SIZE(head);
    if (size < sizeof head || size % 8 != 0 || size > SND_RECORD_SIZE_MAX) {
        c->damaged = true;
        return STEP_END;
    }
    if (size / 8 > c->count - c->at)
        return STEP_MORE;
    uint8_t type = SND_RECORD_TYPE(head);
    process->damage.records++;
    if (!snd_record_parse(trace, process, type, head.id, at + sizeof head, size - sizeof head))
        return STEP_NOMEM;
    c->at += size / 8;
    return STEP_ON;
}

static enum step parse_chunk(struct sonde_trace *trace, struct snd_process *process,
                             struct snd_cursor *c)
{
    enum step step;

    do {
        while ((step = parse_record(trace, process, c)) == STEP_ON)
            ;
    } while (step == STEP_MORE && snd_cursor_fill(c));
    if (step == STEP_MORE && c->at < c->count)
        c->damaged = true; /* the last record is cut off */
    return step;
}

enum sonde_status snd_tables_read(struct sonde_trace *trace, struct snd_process *process,
                                  struct sonde_error *err)
{
    struct snd_cursor cursor = { 0 };
    struct snd_codec *codec = NULL;
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < process->other_count && status == SONDE_OK; i++) {
        status = snd_cursor_open(&cursor, process, &process->others[i], TABLE_WINDOW, &codec, err);
        if (status == SONDE_OK && parse_chunk(trace, process, &cursor) == STEP_NOMEM)
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the tables of %s",
                              process->shown.path);
        process->damage.chunks += cursor.damaged;
    }
    snd_cursor_release(&cursor);
    if (status == SONDE_OK && process->header.flags & SND_FILE_LATE)
        status = snd_late_read(trace, process, &codec, err);
    if (status == SONDE_OK && process->header.flags & SND_FILE_OWN_NAMES)
        status = snd_own_names_read(trace, process, &codec, err);
    snd_codec_free(codec);
    uint32_t index = (uint32_t)(process - trace->processes);
    bool     has_native = process->tables.frame_count > 1 || process->tables.symbol_count > 0;
    if (status == SONDE_OK &&
        ((has_native && !snd_addresses_name(trace, process)) ||
         !snd_prefixes_read(trace, process) || !snd_facts_read(trace, process) ||
         !snd_facts_read_text(trace, index)))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the tables of %s",
                          process->shown.path);
    return status;
}
