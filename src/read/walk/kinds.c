/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/kinds.h"

#include <stdlib.h>

#include "format/fields.h"
#include "read/file/cursor.h"

struct look {
    struct snd_kinds *kinds;
    struct snd_map    keys; /* (process, key) of ranges that an END_KEY may end: their thread */
    uint32_t          process, thread;
    bool              failed; /* memory ran out */
};

/* Kinds of which more is noted than their presence. */
static const bool has_more[256] = {
    [SND_EV_ATTR] = true,    [SND_EV_ATTR64] = true, [SND_EV_FREE] = true,
    [SND_EV_END_KEY] = true, [SND_EV_THREAD] = true,
};

static void note_attr(struct look *look, uint8_t key, uint64_t value)
{
    look->kinds->attrs[key] = true;
    if (key == SND_ATTR_KEY && !look->kinds->crossing_end)
        look->failed |= !snd_map_put(&look->keys, (struct snd_key){ look->process, value, 0 },
                                     look->thread);
}

static void note_more(struct look *look, const uint64_t *words)
{
    uint32_t begun;

    switch (SND_EVENT_KIND(words[0])) {
    case SND_EV_FREE:
        look->kinds->unsized_free |= words[3] == 0 && words[2] != 0;
        break;
    case SND_EV_THREAD:
        look->thread = SND_LOW(words[1]);
        break;
    case SND_EV_END_KEY:
        look->kinds->crossing_end |=
            !snd_map_take(&look->keys, (struct snd_key){ look->process, words[1], 0 }, &begun) ||
            begun != look->thread;
        break;
    case SND_EV_ATTR:
        note_attr(look, SND_ATTR_KEY(words[0]), SND_ATTR_VALUE(words[0]));
        break;
    default:
        note_attr(look, SND_ATTR_KEY(words[0]), words[1]);
    }
}

/* Notes the event at `words`; returns where the next one is. */
static inline const uint64_t *note(struct look *look, const uint64_t *words)
{
    uint8_t kind = SND_EVENT_KIND(*words);

    look->kinds->events[kind] = true;
    if (has_more[kind])
        note_more(look, words);
    return words + SND_KIND_WORDS(kind);
}

/* Every event of the trace comes here, so that as little as can be is done with most of them. */
static void look_at(struct look *look, struct snd_cursor *c)
{
    do {
        const uint64_t *at = c->words + c->at, *end = c->words + c->count;
        if (c->count > SND_EVENT_WORDS_MAX)
            for (const uint64_t *whole = end - SND_EVENT_WORDS_MAX; at < whole && *at != 0;)
                at = note(look, at);
        while (at < end && *at != 0 && SND_KIND_WORDS(SND_EVENT_KIND(*at)) <= (size_t)(end - at))
            at = note(look, at);
        c->at = (size_t)(at - c->words);
        if (at < end && *at == 0)
            return;
    } while (snd_cursor_fill(c)); /* the event that the window's end cuts is the next one's first */
}

static enum sonde_status look_at_all(const struct sonde_trace *trace, struct snd_kinds *kinds,
                                     struct sonde_error *err)
{
    struct look       look = { .kinds = kinds };
    struct snd_cursor cursor = { 0 };
    struct snd_codec *codec = NULL;
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        for (uint32_t k = 0; k < p->lane_count && status == SONDE_OK; k++) {
            status = snd_cursor_open(&cursor, p, &p->lanes[k], SND_WINDOW_WALK, &codec, err);
            look.process = i;
            look.thread = p->lanes[k].thread;
            if (status == SONDE_OK)
                look_at(&look, &cursor);
        }
    }
    snd_cursor_release(&cursor);
    snd_codec_free(codec);
    snd_map_release(&look.keys);
    if (status == SONDE_OK && look.failed)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the kinds of events");
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
