/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What torch's allocator had in use and held of a GPU when a block was taken or given back. The trace
 * has counters of both: what is held before the block's event, what is in use after it, now and then.
 * A first walk finds what was in use when the recording began.
 */
#include "export/chrome/chrome.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "format/known.h"

static struct snd_chrome_memory *find_memory(struct snd_chrome *chrome, uint32_t process,
                                             uint32_t index)
{
    for (uint32_t i = 0; i < chrome->memory_count; i++)
        if (chrome->memories[i].process == process && chrome->memories[i].index == index)
            return &chrome->memories[i];
    if (!snd_grow(&chrome->memories, &chrome->memory_room, chrome->memory_count,
                  sizeof *chrome->memories)) {
        chrome->text.failed = true;
        return NULL;
    }
    struct snd_chrome_memory *made = &chrome->memories[chrome->memory_count++];
    *made = (struct snd_chrome_memory){ .process = process, .index = index };
    return made;
}

static bool follows(struct sonde_text name, enum snd_known known, uint32_t *number)
{
    const char *prefix = snd_known_name(known);
    size_t      length = strlen(prefix);

    if (name.length <= length || memcmp(name.bytes, prefix, length) != 0)
        return false;
    *number = (uint32_t)strtoul(name.bytes + length, NULL, 10);
    return *number < 0xffff;
}

bool snd_chrome_note_counter(struct snd_chrome *chrome, const struct sonde_event *event)
{
    struct sonde_text name = sonde_trace_string(chrome->trace, event->process, event->counter.name);
    uint32_t          index;
    double            value = event->counter.value;
    bool              reserved = follows(name, SND_KNOWN_DEVICE_RESERVED, &index);

    if (!reserved && !follows(name, SND_KNOWN_DEVICE_ALLOCATED, &index))
        return false;
    struct snd_chrome_memory *m = find_memory(chrome, event->process, index);
    if (!m || !(value >= 0 && value < 0x1p62))
        return true;
    if (reserved)
        m->reserved = (int64_t)value;
    else if (!chrome->measures || !m->has_before)
        m->before = snd_add(snd_sub((int64_t)value, m->total), m->early), m->has_before = true;
    return true;
}

void snd_chrome_note_memory(struct snd_chrome *chrome, const struct sonde_event *event,
                            const struct snd_live_change *change, int64_t *total, int64_t *reserved)
{
    *total = change->total;
    *reserved = 0;
    if (SND_DEVICE_TYPE(event->memory.device) != 1)
        return;
    struct snd_chrome_memory *m = find_memory(chrome, event->process,
                                              SND_DEVICE_INDEX(event->memory.device));
    if (!m)
        return;
    if (event->kind == SONDE_EVENT_FREE && change->held == 0) /* allocated before the recording */
        m->early = snd_add(m->early, (int64_t)event->memory.size_bytes);
    m->total = change->total;
    *total = snd_add(m->total, snd_sub(m->before, m->early));
    *reserved = m->reserved;
}

static bool ignore_end(const struct snd_span *span, void *user)
{
    (void)span, (void)user;
    return true;
}

static bool measure(const struct sonde_event *event, const struct snd_live_change *change,
                    void *user)
{
    struct snd_chrome *chrome = user;
    int64_t            total, reserved;

    if (change)
        snd_chrome_note_memory(chrome, event, change, &total, &reserved);
    else if (event->kind == SONDE_EVENT_COUNTER)
        snd_chrome_note_counter(chrome, event);
    return !chrome->text.failed;
}

static bool has_counters(const struct sonde_trace *trace)
{
    uint32_t index;

    for (uint32_t i = 0; i < trace->names.count; i++)
        if (follows((struct sonde_text){ trace->names.items[i].bytes,
                                         trace->names.items[i].length },
                    SND_KNOWN_DEVICE_ALLOCATED, &index))
            return true;
    return false;
}

enum sonde_status snd_chrome_measure_memory(struct snd_chrome *chrome, struct sonde_error *err)
{
    struct snd_spans_calls  calls = { .end = ignore_end, .event = measure, .user = chrome };
    struct snd_spans_totals totals;

    if (!has_counters(chrome->trace))
        return SONDE_OK;
    chrome->measures = true;
    enum sonde_status status = snd_spans_walk(chrome->trace, &calls, &totals, err);
    chrome->measures = false;
    for (uint32_t i = 0; i < chrome->memory_count; i++)
        chrome->memories[i].total = chrome->memories[i].reserved = chrome->memories[i].early = 0;
    return status;
}
