/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/kinds.h"

#include <stdlib.h>

#include "format/fields.h"
#include "read/file/cursor.h"

static void look_at(struct snd_kinds *kinds, struct snd_cursor *c)
{
    do {
        while (c->at < c->count && c->words[c->at] != 0) {
            uint64_t word = c->words[c->at];
            uint8_t  kind = SND_EVENT_KIND(word);
            if (SND_KIND_WORDS(kind) > c->count - c->at)
                break;
            kinds->events[kind] = true;
            if (kind == SND_EV_ATTR || kind == SND_EV_ATTR64)
                kinds->attrs[SND_ATTR_KEY(word)] = true;
            c->at += SND_KIND_WORDS(kind);
        }
        if (c->at < c->count && c->words[c->at] == 0)
            return;
    } while (snd_cursor_fill(c));
}

static enum sonde_status look_at_all(const struct sonde_trace *trace, struct snd_kinds *kinds,
                                     struct sonde_error *err)
{
    struct snd_cursor cursor = { 0 };
    struct snd_codec *codec = NULL;
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        for (uint32_t k = 0; k < p->lane_count && status == SONDE_OK; k++) {
            status = snd_cursor_open(&cursor, p, &p->lanes[k], SND_WINDOW_WALK, &codec, err);
            if (status == SONDE_OK)
                look_at(kinds, &cursor);
        }
    }
    snd_cursor_release(&cursor);
    snd_codec_free(codec);
    return status;
}

enum sonde_status snd_trace_kinds(struct sonde_trace *trace, const struct snd_kinds **out,
                                  struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    *out = NULL;
    if (!trace->kinds) {
        struct snd_kinds *kinds = calloc(1, sizeof *kinds);
        if (!kinds)
            return snd_fail(err, SONDE_E_NOMEM, "out of memory for the kinds of events");
        status = look_at_all(trace, kinds, err);
        if (status != SONDE_OK) {
            free(kinds);
            return status;
        }
        trace->kinds = kinds;
    }
    *out = trace->kinds;
    return SONDE_OK;
}
