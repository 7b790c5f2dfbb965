/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/walk_rare.c - delivery of rare events: changes of thread, work of devices, names and records
 * that are in the chunk itself.
 */
#include <string.h>

#include "format/fields.h"
#include "format/references.h"
#include "read/walk/deliver.h"

/* Its time is not its thread's: what the thread did before it may be later. */
static bool deliver_work(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    const struct snd_process *p = place->process;
    uint64_t raw = snd_time_extend(SND_EVENT_TIME56(words[0]), p->header.start.raw);
    int64_t  start = snd_scale_ns(&p->scale, raw);
    int64_t  end = snd_scale_ns(&p->scale, raw + words[2]);

    if (raw > place->limit || end < start || !snd_time_is_sane(start) || !snd_time_is_sane(end))
        return false;
    if (raw < p->valid_from) {
        w->stats.warmup_events++;
        return true;
    }
    const struct snd_device_work work = {
        .start_ns = start,
        .duration_ns = end - start,
        .node = SND_EVENT_KIND(words[0]) == SND_EV_DEVICE_NODE ? words[4] : 0,
        .work = SND_LOW(words[1]),
        .queue = SND_HIGH(words[1]),
        .correlation = SND_LOW(words[3]),
        .thread = place->index,
    };
    w->stats.events++;
    if (w->visitor->device)
        w->visitor->device(w->visitor->user, (uint32_t)(p - w->trace->processes), &work);
    return true;
}

static bool deliver_device(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    if (SND_EVENT_KIND(words[0]) != SND_EV_DEVICE_SHORT)
        return deliver_work(w, place, words);
    const uint64_t whole[4] = { words[0], SND_PAIR(SND_LOW(words[1]), SND_HIGH(words[2])),
                                SND_HIGH(words[1]), SND_LOW(words[2]) };
    return deliver_work(w, place, whole);
}

static inline bool is_device(uint8_t kind)
{
    return kind == SND_EV_DEVICE_SHORT || kind == SND_EV_DEVICE || kind == SND_EV_DEVICE_NODE;
}

/* A STEP that was counted from optimizers, before the program marked its own. */
static bool is_passed_over(const struct snd_place *place, const uint64_t *words)
{
    return SND_EVENT_KIND(words[0]) == SND_EV_STEP && place->thread &&
           snd_time_extend(SND_EVENT_TIME56(words[0]), place->thread->last_raw) <
               place->process->steps_from;
}

static bool deliver(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (is_passed_over(place, words))
        return true;
    if (snd_event_class[kind] == 0) {
        w->stats.unknown_events++;
        return true;
    }
    if (kind == SND_EV_THREAD) {
        snd_place_switch(w, place, SND_LOW(words[1]));
        place->own_at_thread = place->own;
        w->stats.lost_threads += !place->thread;
        return true;
    }
    if (is_device(kind) && place->thread)
        return deliver_device(w, place, words);
    return snd_deliver_known(w, place, words, snd_event_class[kind] == 1);
}

/* The string id of one of the chunk's own names; 0 if the chunk has not defined it. */
static uint32_t find_own(const struct snd_place *place, uint32_t id)
{
    uint32_t number = id & ~SND_OWN_NAME;

    return number < place->own - place->own_at_thread
               ? place->first_own + place->own_at_thread + number
               : 0;
}

static inline bool has_name(uint8_t kind)
{
    return kind == SND_EV_BEGIN || kind == SND_EV_SPAN || kind == SND_EV_API ||
           kind == SND_EV_MARK || kind == SND_EV_COUNTER;
}

/* The event with the tables' ids instead of late ones. */
static void replace_late(const struct snd_tables *t, uint8_t kind, uint64_t *words)
{
    for (size_t i = 0; i < SND_EVENT_FIELDS; i++) {
        const struct snd_event_field *field = &snd_event_fields[i];
        if (field->kind != kind || field->form >= SND_FORM_U32)
            continue;
        uint32_t id = (uint32_t)snd_event_field_read(field, words);
        snd_event_field_replace(field, words, snd_late_replace(t, field->form, id));
    }
    if (kind == SND_EV_ATTR && snd_attr_reference(SND_ATTR_KEY(words[0]))) {
        uint32_t id = (uint32_t)SND_ATTR_VALUE(words[0]);
        uint8_t  type = snd_attr_reference(SND_ATTR_KEY(words[0]));
        words[0] ^= (uint64_t)(id ^ snd_late_replace(t, type, id)) << 16;
    }
}

static bool deliver_late(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    uint8_t  kind = SND_EVENT_KIND(words[0]);
    uint64_t copy[SND_EVENT_WORDS_MAX] = { 0 };

    memcpy(copy, words, SND_KIND_WORDS(kind) * sizeof copy[0]);
    replace_late(&place->process->tables, kind, copy);
    return deliver(w, place, copy);
}

bool snd_deliver_rare(struct snd_walker *w, struct snd_place *place, const uint64_t *words)
{
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (kind == SND_EV_RECORD || kind == SND_EV_RECORD_SHORT)
        return true;
    if (kind == SND_EV_NAME) {
        place->own += SND_LOW(words[1]) == place->own - place->own_at_thread;
        return true;
    }
    if (has_name(kind) && (words[1] & SND_OWN_NAME)) {
        const uint64_t named[3] = { words[0],
                                    (words[1] & ~(uint64_t)UINT32_MAX) |
                                        find_own(place, SND_LOW(words[1])),
                                    SND_KIND_WORDS(kind) > 2 ? words[2] : 0 };
        return deliver(w, place, named);
    }
    if (place->process->tables.late.count > 0)
        return deliver_late(w, place, words);
    return deliver(w, place, words);
}
