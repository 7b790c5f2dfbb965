/* SPDX-License-Identifier: Apache-2.0 */
/* record/thread/thread_naming.c - names of threads: the caller's own, and those that a sampler tells of. */
#include <string.h>

#include "record/thread/lane.h"
#include "record/given.h"
#include "record/tables/naming.h"
#include "record/tables/sampled_threads.h"

void sonde_thread_name(const char *name)
{
    if (snd_lane_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return;
    uint32_t id = snd_intern_text(name, strlen(name));
    snd_lock();
    struct snd_thread *thread = snd_thread_self();
    if (snd_rec.phase == SND_OPEN && thread->back)
        __atomic_store_n(&thread->record->name, id, __ATOMIC_RELAXED);
    snd_unlock();
    snd_lane_leave();
}

uint32_t sonde_thread_of_process(const struct sonde_process_thread *thread, const char *name)
{
    struct sonde_process_thread room;
    uint32_t                    id = 0;

    if (!(thread = SND_GIVEN(thread, &room)) ||
        snd_lane_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return 0;
    uint32_t text = name && *name ? snd_intern_text(name, strlen(name)) : 0;
    snd_lock();
    if (snd_rec.phase == SND_OPEN && snd_thread_self()->serial == snd_rec.serial) {
        struct snd_thread_record *record = snd_sampled_find(thread, &id);
        if (!record)
            id = snd_sampled_add(thread, text);
        else if (text != 0)
            __atomic_store_n(&record->name, text, __ATOMIC_RELAXED);
    }
    snd_unlock();
    snd_lane_leave();
    return id;
}

uint32_t sonde_thread_of(uint32_t tid, const char *name)
{
    struct sonde_process_thread thread = { .struct_size = sizeof thread, .tid = tid };

    return sonde_thread_of_process(&thread, name);
}

void sonde_thread_end(uint32_t thread, uint64_t at)
{
    if (snd_lane_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return;
    snd_lock();
    if (snd_rec.phase == SND_OPEN && snd_thread_self()->serial == snd_rec.serial)
        snd_sampled_end(thread, at ? at : sonde_clock());
    snd_unlock();
    snd_lane_leave();
}
