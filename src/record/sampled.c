/* SPDX-License-Identifier: Apache-2.0 */
#include "record/sampled.h"

#include "record/intern.h"
#include "record/ownpages.h"

#define FIRST_ROOM 64u

struct sampled {
    uint32_t                  tid, id;
    struct snd_thread_record *record; /* in the mapped file */
};

static struct sampled *known; /* owned; those that have no lane of their own */
static size_t          count, room;

struct snd_thread_record *snd_sampled_claim(uint32_t tid, uint32_t *id)
{
    for (size_t i = 0; i < count; i++)
        if (known[i].tid == tid) {
            struct snd_thread_record *record = known[i].record;
            *id = known[i].id;
            known[i] = known[--count];
            return record;
        }
    return NULL;
}

void snd_sampled_abandon(void)
{
    known = NULL;
    count = room = 0;
}

void snd_sampled_clear(void)
{
    snd_ownpages_free(known, room * sizeof *known);
    known = NULL;
    count = room = 0;
}

static bool make_place(void)
{
    if (count < room)
        return true;
    size_t          wanted = room ? room * 2 : FIRST_ROOM;
    struct sampled *grown = snd_ownpages_grow(known, room * sizeof *known, wanted * sizeof *known);
    if (!grown)
        return false;
    known = grown;
    room = wanted;
    return true;
}

struct snd_thread_record *snd_sampled_find(uint32_t tid, uint32_t *id)
{
    for (const struct snd_thread *t = snd_rec.threads; t; t = t->next)
        if (t->record->tid == tid) {
            *id = t->id;
            return t->record;
        }
    for (size_t i = 0; i < count; i++)
        if (known[i].tid == tid) {
            *id = known[i].id;
            return known[i].record;
        }
    return NULL;
}

uint32_t snd_sampled_add(uint32_t tid, uint32_t name)
{
    struct snd_thread_record record = { .tid = tid, .name = name, .start = sonde_clock() };
    uint32_t                 id = 0;

    if (!make_place())
        return 0;
    struct snd_thread_record *at = snd_table_append(SND_REC_THREAD, &id, &record, sizeof record);
    if (!at)
        return 0;
    known[count++] = (struct sampled){ tid, id, at };
    return id;
}
