/* SPDX-License-Identifier: Apache-2.0 */
#include "model/events/event_rows.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/large_pages.h"

#define EVENTS_MAX ((uint32_t)INT32_MAX - 1)
#define RECENT ((uint32_t)1 << 12) /* kinds that are looked for; others are stored again */

/* ----------------------------------------------------------------------- rows */

/* Where the address of each array is kept, and how wide its elements are. */
static const struct {
    size_t at, size;
} arrays[] = {
#define ARRAY(name)                                                                       \
    {                                                                                     \
        offsetof(struct snd_event_rows, name), sizeof *((struct snd_event_rows *)0)->name \
    }
    ARRAY(start_ns), ARRAY(end_ns), ARRAY(self_ns), ARRAY(sequence),
    ARRAY(parent),   ARRAY(thread), ARRAY(kind),    ARRAY(extra),
#undef ARRAY
};
#define ARRAYS SND_COUNT_OF(arrays)

static char *get_array(const struct snd_event_rows *rows, size_t i)
{
    char *array;

    memcpy(&array, (const char *)rows + arrays[i].at, sizeof array);
    return array;
}

/* Rows of nothing; those that there were are the caller's. */
static bool take(struct snd_event_rows *rows, uint32_t room)
{
    *rows = (struct snd_event_rows){ .room = room };
    for (size_t i = 0; i < ARRAYS; i++) {
        void *array = snd_pages_take(room * arrays[i].size);
        if (!array) {
            snd_rows_release(rows);
            return false;
        }
        memcpy((char *)rows + arrays[i].at, &array, sizeof array);
    }
    return true;
}

void snd_rows_release(struct snd_event_rows *rows)
{
    for (size_t i = 0; i < ARRAYS; i++)
        snd_pages_free(get_array(rows, i), rows->room * arrays[i].size);
    *rows = (struct snd_event_rows){ 0 };
}

/* Not for very large files, nor enough for packed ones: these grow. */
bool snd_rows_reserve(struct snd_event_rows *rows, const struct sonde_trace *trace)
{
    const uint64_t smallest = 16, most = 1u << 22; /* bytes of a range as recorded; rows */
    uint64_t       bytes = 0;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++)
        bytes += sonde_trace_process(trace, i)->size_bytes;
    uint64_t room = bytes / smallest + 16;
    return take(rows, (uint32_t)(room < most ? room : most));
}

bool snd_rows_grow(struct snd_event_rows *rows)
{
    struct snd_event_rows more;

    if (rows->room >= EVENTS_MAX ||
        !take(&more, rows->room < EVENTS_MAX / 2 ? 2 * rows->room : EVENTS_MAX))
        return false;
    for (size_t i = 0; i < ARRAYS; i++)
        memcpy(get_array(&more, i), get_array(rows, i), rows->count * arrays[i].size);
    more.count = rows->count;
    snd_rows_release(rows);
    *rows = more;
    return true;
}

static void pick8(void *to, const void *from, const uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[order[i]];
}

static void pick4(void *to, const void *from, const uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[order[i]];
}

bool snd_rows_reorder(struct snd_event_rows *rows, const uint32_t *order, uint32_t count,
                      const uint32_t *places)
{
    struct snd_event_rows sorted;

    if (!take(&sorted, count + 1))
        return false;
    for (size_t i = 0; i < ARRAYS; i++)
        (arrays[i].size == 8 ? pick8 : pick4)(get_array(&sorted, i), get_array(rows, i), order,
                                              count);
    sorted.count = count;
    for (uint32_t i = 0; i < count; i++)
        if (sorted.parent[i] != -1)
            sorted.parent[i] = (int32_t)places[sorted.parent[i]];
    snd_rows_release(rows);
    *rows = sorted;
    return true;
}

/* ---------------------------------------------------------------------- kinds */

static_assert(sizeof(struct snd_row_kind) == 72, "no holes: kinds are compared as bytes");

static uint32_t hash_kind(const struct snd_row_kind *kind)
{
    uint64_t hash = 0, words[sizeof *kind / 8];

    memcpy(words, kind, sizeof words);
    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 40) & (RECENT - 1);
}

uint32_t snd_kind_number(struct sonde_events *e, const struct snd_row_kind *kind)
{
    if (!e->recent)
        e->recent = calloc(RECENT, sizeof *e->recent);
    if (!e->recent)
        return UINT32_MAX;
    uint32_t *recent = &e->recent[hash_kind(kind)];
    /* Bytes, as the hash: two that are equal and differ in bytes (0.0, -0.0) are two kinds, no more. */
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c) */
    if (*recent != 0 && memcmp(&e->kinds[*recent - 1], kind, sizeof *kind) == 0)
        return *recent - 1;
    if (!snd_grow(&e->kinds, &e->kind_room, e->kind_count, sizeof *e->kinds))
        return UINT32_MAX;
    e->kinds[e->kind_count] = *kind;
    *recent = ++e->kind_count;
    return e->kind_count - 1;
}

static const struct sonde_text own_names[SND_OWN_COUNT] = {
    [SND_OWN_STEP] = { "ProfilerStep*", 13 },
    [SND_OWN_MEMORY] = { "[memory]", 8 },
};

void snd_events_number_texts(struct sonde_events *e)
{
    uint32_t count = e->trace->names.count;

    e->empty = UINT32_MAX;
    for (uint32_t k = 0; k < SND_OWN_COUNT; k++)
        e->own[k] = count + k;
    for (uint32_t i = 0; i < count; i++) {
        const struct snd_text *name = &e->trace->names.items[i];
        if (name->length == 0)
            e->empty = i;
        for (uint32_t k = 0; k < SND_OWN_COUNT; k++)
            if (name->length == own_names[k].length &&
                memcmp(name->bytes, own_names[k].bytes, name->length) == 0)
                e->own[k] = i;
    }
}

struct sonde_text snd_events_name(const struct sonde_events *e, uint32_t name)
{
    uint32_t count = e->trace->names.count;

    if (name >= count && name < count + SND_OWN_COUNT)
        return own_names[name - count];
    const struct snd_text *found = name < count ? &e->trace->names.items[name]
                                                : &e->functions.items[name - count - SND_OWN_COUNT];
    return (struct sonde_text){ found->bytes, found->length };
}
