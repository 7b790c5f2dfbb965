/* SPDX-License-Identifier: Apache-2.0 */
/* record/tables/frame_symbols.c - sonde_symbol(): what is found out of a frame's address after the run. */
#include <string.h>

#include "record/tables/intern.h"
#include "record/thread/lane.h"
#include "record/tables/late_table.h"

static_assert(sizeof(struct sonde_symbol) == sizeof(struct snd_symbol_entry) &&
                  offsetof(struct sonde_symbol, first_line) ==
                      offsetof(struct snd_symbol_entry, first_line),
              "entries are copied as they are");

/* False: there is no room. Lock held; it may be let go. */
static bool append(uint32_t frame, const struct sonde_symbol *entries, uint32_t count)
{
    struct {
        struct snd_symbol_record head;
        struct sonde_symbol      entries[SND_SYMBOL_ENTRIES_MAX];
    } payload;
    uint32_t id;

    payload.head = (struct snd_symbol_record){ frame, count };
    memcpy(payload.entries, entries, count * sizeof *entries);
    /* It is in the tables: so are the names that it refers to. The frame may be a late one. */
    for (uint32_t i = 0; i < count; i++) {
        payload.entries[i].function = snd_late_to_tables(entries[i].function);
        if (entries[i].file != 0)
            payload.entries[i].file = snd_late_to_tables(entries[i].file);
    }
    return snd_table_append(SND_REC_SYMBOL, &id, &payload,
                            sizeof payload.head + count * sizeof *entries) != NULL;
}

void sonde_symbol(uint32_t frame, const struct sonde_symbol *entries, size_t count)
{
    uint32_t kept = count < SND_SYMBOL_ENTRIES_MAX ? (uint32_t)count : SND_SYMBOL_ENTRIES_MAX;

    if (frame == 0 || count == 0 || sonde_epoch() == 0 ||
        snd_lane_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return;
    snd_lock();
    bool on = snd_rec.phase == SND_OPEN && snd_thread_self()->serial == snd_rec.serial;
    if (on && !append(frame, entries, kept))
        snd_count(&snd_header->lost_names, 1);
    snd_unlock();
    snd_lane_leave();
}
