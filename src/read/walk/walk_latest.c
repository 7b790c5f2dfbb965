/* SPDX-License-Identifier: Apache-2.0 */
/* read/walk/walk_latest.c - when the last event of a file that was not closed happened. */
#include "format/fields.h"
#include "read/walk/deliver.h"

static uint64_t find_latest(struct snd_cursor *c, uint64_t near)
{
    uint64_t latest = 0;

    do {
        while (c->at < c->count && c->words[c->at] != 0) {
            uint64_t word = c->words[c->at];
            unsigned length = SND_KIND_WORDS(SND_EVENT_KIND(word));
            if (length > c->count - c->at)
                break;
            if (snd_event_class[SND_EVENT_KIND(word)] == 1) {
                near = snd_time_extend(SND_EVENT_TIME56(word), near);
                if (snd_closes_in_place(SND_EVENT_KIND(word)))
                    near += SND_SPAN_TICKS(c->words[c->at + 1]);
                latest = near > latest ? near : latest;
            }
            c->at += length;
        }
        if (c->at < c->count && c->words[c->at] == 0)
            break;
    } while (snd_cursor_fill(c));
    return latest;
}

enum sonde_status snd_walk_latest(const struct snd_process *p, uint64_t *latest,
                                  struct sonde_error *err)
{
    struct snd_cursor cursor = { 0 };
    struct snd_codec *codec = NULL;
    enum sonde_status status = SONDE_OK;

    *latest = 0;
    for (uint32_t i = 0; i < p->lane_count && status == SONDE_OK; i++) {
        /* Sealed chunks are older than the one their thread was writing, but for the last. */
        if (p->lanes[i].used != 0 && i + 1 < p->lane_count)
            continue;
        status = snd_cursor_open(&cursor, p, &p->lanes[i], SND_WINDOW_WALK, &codec, err);
        if (status == SONDE_OK) {
            uint64_t found = find_latest(&cursor, p->header.start.raw);
            *latest = found > *latest ? found : *latest;
        }
    }
    snd_cursor_release(&cursor);
    snd_codec_free(codec);
    return status;
}
