/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tables/sampled_threads.h"

#include "record/tables/intern.h"
#include "record/own_pages.h"

#define FIRST_ROOM 64u

struct sampled {
    uint32_t                  pid, tid, id; /* pid 0: of the process that is recorded */
    struct snd_thread_record *record;       /* in the mapped file */
};

static struct sampled *known; /* owned; those that have no lane of their own */
static size_t          count, room;

struct snd_thread_record *snd_sampled_claim(uint32_t tid, uint32_t *id)
{
    for (size_t i = 0; i < count; i++)
        if (known[i].pid == 0 && known[i].tid == tid) {
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

/* Threads of the process that the file is about have the pid 0. */
static uint32_t find_pid(const struct sonde_process_thread *thread)
{
    return thread->pid == snd_header->pid ? 0 : thread->pid;
}

struct snd_thread_record *snd_sampled_find(const struct sonde_process_thread *thread, uint32_t *id)
{
    uint32_t pid = find_pid(thread);

    for (const struct snd_thread *t = snd_rec.threads; t && pid == 0; t = t->next)
        if (t->record->tid == thread->tid) {
            *id = t->id;
            return t->record;
        }
    for (size_t i = 0; i < count; i++)
        if (known[i].pid == pid && known[i].tid == thread->tid) {
            *id = known[i].id;
            return known[i].record;
        }
    return NULL;
}

void snd_sampled_end(uint32_t id, uint64_t at)
{
    for (size_t i = 0; i < count; i++)
        if (known[i].id == id) {
            known[i].record->end = at;
            known[i] = known[--count];
            return;
        }
}

uint32_t snd_sampled_add(const struct sonde_process_thread *thread, uint32_t name)
{
    uint32_t                 id = 0, pid = find_pid(thread);
    struct snd_thread_record record = {
        .tid = thread->tid,
        .name = name,
        .start = thread->start ? thread->start : sonde_clock(),
        .pid = pid,
        .parent_pid = pid ? thread->parent_pid : 0,
    };

    if (!make_place())
        return 0;
    struct snd_thread_record *at = snd_table_append(SND_REC_THREAD, &id, &record, sizeof record);
    if (!at)
        return 0;
    known[count++] = (struct sampled){ pid, thread->tid, id, at };
    return id;
}
