/* SPDX-License-Identifier: Apache-2.0 */
/* What is not a range on the report page's timeline: marks, steps, losses, counters, memory. */
#include <inttypes.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/compare.h"
#include "base/text/plural.h"
#include "export/page/page.h"
#include "format/fields.h"
#include "format/known.h"
#include "format/layout.h"

/* What a mark is. */
enum { MARK_PERSON, MARK_LOST };

static void put_mark(struct snd_html *page, const struct sonde_event *event, uint32_t name,
                     unsigned what)
{
    snd_html_value(&page->marks, 0, event->thread == SONDE_NONE ? 0 : (uint64_t)event->thread + 1);
    snd_html_value(&page->marks, 1, name);
    snd_html_signed(&page->marks, 2, snd_sub(event->time_ns, page->last_mark_ns));
    snd_html_value(&page->marks, 3, what);
    page->last_mark_ns = event->time_ns;
    snd_html_entry(page, &page->marks);
}

static void on_mark(struct snd_html *page, const struct sonde_event *event)
{
    put_mark(page, event,
             snd_html_text(page, sonde_trace_string(page->trace, event->process, event->mark.name)),
             MARK_PERSON);
}

static void on_gap(struct snd_html *page, const struct sonde_event *event)
{
    if (event->gap.events == 0)
        return;
    snd_buf_clear(&page->text);
    snd_buf_format(&page->text, "%" PRIu32 " event%s lost", event->gap.events,
                   snd_plural(event->gap.events));
    put_mark(page, event,
             snd_html_text(page, (struct sonde_text){ page->text.bytes, page->text.length }),
             MARK_LOST);
}

static void on_step(struct snd_html *page, const struct sonde_event *event)
{
    snd_html_value(&page->steps, 0, event->process);
    snd_html_value(&page->steps, 1, event->step.number);
    snd_html_signed(&page->steps, 2, event->time_ns);
    snd_html_entry(page, &page->steps);
}

/* ------------------------------------------------------------------ counters */

/* Of counters; BYTES: one of bytes that sonde itself records. Memory: the sum of ALLOC and FREE. */
enum { TRACK_COUNTER, TRACK_MEMORY, TRACK_BYTES };

static bool is_of_bytes(struct sonde_text name)
{
    static const enum snd_known known[] = { SND_KNOWN_RSS, SND_KNOWN_DEVICE_RESERVED,
                                            SND_KNOWN_DEVICE_ALLOCATED, SND_KNOWN_HEAP_LIVE };

    for (size_t i = 0; i < SND_COUNT_OF(known); i++) {
        const char *text = snd_known_name(known[i]);
        if (snd_begins_with_at(name.bytes, name.length, text))
            return true;
    }
    return false;
}

static struct sonde_text track_name(struct snd_html *page, const struct sonde_event *event,
                                    unsigned kind)
{
    if (kind == TRACK_COUNTER)
        return sonde_trace_string(page->trace, event->process, event->counter.name);
    snd_buf_clear(&page->text);
    if (SND_DEVICE_TYPE(event->memory.device) == 0)
        snd_buf_text(&page->text, "Memory");
    else
        snd_buf_format(&page->text, "Memory of %s:%u",
                       SND_DEVICE_TYPE(event->memory.device) == 1 ? "cuda" : "device",
                       SND_DEVICE_INDEX(event->memory.device));
    return (struct sonde_text){ page->text.bytes, page->text.length };
}

/* The number of a counter, which is described when it is first met: its process, kind and name. */
static uint32_t find_track(struct snd_html *page, const struct sonde_event *event, unsigned kind,
                           uint32_t id)
{
    struct snd_key key = { kind, event->process, id };
    uint32_t       number;

    if (snd_map_get(&page->tracks, key, &number))
        return number;
    number = (uint32_t)page->tracks.count;
    if (!snd_map_put(&page->tracks, key, number))
        page->failed = true;
    struct sonde_text text = track_name(page, event, kind);
    uint32_t          name = snd_html_text(page, text);
    if (kind == TRACK_COUNTER && is_of_bytes(text))
        kind = TRACK_BYTES;
    snd_buf_format(&page->counter_names, "%s[%" PRIu32 ",%u,%" PRIu32 "]", number ? "," : "",
                   event->process, kind, name);
    return number;
}

static void on_counter(struct snd_html *page, const struct sonde_event *event)
{
    uint32_t track = find_track(page, event, TRACK_COUNTER, event->counter.name);

    snd_html_value(&page->counters, 0, track);
    snd_html_signed(&page->counters, 1, snd_sub(event->time_ns, page->last_counter_ns));
    snd_html_raw(&page->counters, 2, &event->counter.value, sizeof event->counter.value);
    page->last_counter_ns = event->time_ns;
    snd_html_entry(page, &page->counters);
}

static void on_memory(struct snd_html *page, const struct sonde_event *event,
                      const struct snd_live_change *change)
{
    uint32_t track = find_track(page, event, TRACK_MEMORY, event->memory.device);

    snd_html_value(&page->memory, 0, track);
    snd_html_signed(&page->memory, 1, snd_sub(event->time_ns, page->last_memory_ns));
    snd_html_signed(&page->memory, 2, change->total);
    int64_t older = snd_sub(change->held, change->counted); /* freed of what was there before */
    snd_html_value(&page->memory, 3, change->known && older > 0 ? (uint64_t)older : 0);
    page->last_memory_ns = event->time_ns;
    snd_html_entry(page, &page->memory);
    snd_html_block_event(page, event, track);
}

bool snd_html_on_event(const struct sonde_event *event, const struct snd_live_change *change,
                       void *user)
{
    static void (*const puts[])(struct snd_html *, const struct sonde_event *) = {
        [SONDE_EVENT_MARK] = on_mark,           [SONDE_EVENT_STEP] = on_step,
        [SONDE_EVENT_COUNTER] = on_counter,     [SONDE_EVENT_GAP] = on_gap,
        [SONDE_EVENT_SAMPLE] = snd_html_sample,
    };
    struct snd_html *page = user;

    page->content |= change                              ? SND_HAS_MEMORY
                     : event->kind == SONDE_EVENT_SAMPLE ? SND_HAS_SAMPLES
                     : event->kind == SONDE_EVENT_STEP   ? SND_HAS_STEPS
                                                         : 0;
    if (change)
        on_memory(page, event, change);
    else if ((size_t)event->kind < SND_COUNT_OF(puts) && puts[event->kind])
        puts[event->kind](page, event);
    return !page->failed && !page->text.failed;
}
