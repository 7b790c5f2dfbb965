/* SPDX-License-Identifier: Apache-2.0 */
/* record/tables/typed_facts.c - sonde_fact(): records with typed members, a long one in parts. */
#include <string.h>

#include "record/tables/intern.h"
#include "record/thread/lane.h"
#include "record/tables/late_table.h"

#define MEMBERS_MAX ((size_t)512) /* of one record */

static_assert(sizeof(struct sonde_fact_member) == sizeof(struct snd_fact_member) &&
                  offsetof(struct sonde_fact_member, id) == offsetof(struct snd_fact_member, id),
              "members are copied as they are");

static bool has_id(const struct sonde_fact_member *member)
{
    return member->type == SND_FACT_TEXT || member->type == SND_FACT_TENSOR;
}

/* False: there is no room. Lock held; it may be let go. */
static bool append(struct snd_fact_record record, const struct sonde_fact_member *members)
{
    struct {
        struct snd_fact_record   head;
        struct sonde_fact_member members[MEMBERS_MAX];
    } payload;
    uint32_t id;

    payload.head = record;
    if (record.count > 0)
        memcpy(payload.members, members, record.count * sizeof *members);
    /* A fact is in the tables: so is what it refers to. */
    payload.head.subject = snd_late_to_tables(record.subject);
    for (uint32_t i = 0; i < record.count; i++)
        if (has_id(&payload.members[i]))
            payload.members[i].id = snd_late_to_tables(payload.members[i].id);
    return snd_table_append(SND_REC_FACT, &id, &payload,
                            sizeof record + record.count * sizeof *members) != NULL;
}

void sonde_fact(uint32_t kind, uint32_t subject, uint32_t number,
                const struct sonde_fact_member *members, size_t count)
{
    size_t at = 0;

    if (sonde_epoch() == 0 || snd_lane_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return;
    snd_lock();
    do {
        size_t                 part = count - at < MEMBERS_MAX ? count - at : MEMBERS_MAX;
        struct snd_fact_record record = { kind, subject, number, (uint32_t)part };
        /* Making room may let go of the lock, and the recording may end meanwhile. */
        if (snd_rec.phase != SND_OPEN || snd_thread_self()->serial != snd_rec.serial)
            break;
        if (!append(record, members + at))
            snd_count(&snd_header->lost_names, 1);
        at += part;
    } while (at < count);
    snd_unlock();
    snd_lane_leave();
}
