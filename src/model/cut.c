/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "format/fields.h"

/* Where a process says that all it counted is one session's: docs/FORMAT.md. */
static const char *const keys[] = {
    [SND_TALLY_CALLS] = "python.functions.session",
    [SND_TALLY_LINE] = "python.lines.session",
    [SND_TALLY_LINE_MEMORY] = "python.line_memory.session",
};

void snd_cut_init(struct snd_cut *cut, const struct sonde_cut *asked,
                  const struct sonde_trace *trace)
{
    struct sonde_text key, value;

    *cut = (struct snd_cut){ .asked = asked };
    for (uint32_t n = 0; sonde_trace_metadata(trace, 0, n, &key, &value); n++)
        for (size_t kind = 1; kind < sizeof keys / sizeof keys[0]; kind++)
            if (strlen(keys[kind]) == key.length && memcmp(key.bytes, keys[kind], key.length) == 0)
                cut->owners[kind] = (uint32_t)strtoul(value.bytes, NULL, 10);
}

void snd_cut_release(struct snd_cut *cut)
{
    for (uint32_t i = 0; i < cut->thread_count; i++)
        free(cut->threads[i].kept);
    free(cut->threads);
}

static bool is_within(const struct sonde_cut *asked, uint64_t time)
{
    for (size_t i = 0; i < asked->span_count; i++) {
        const struct sonde_span *span = &asked->spans[i];
        if (((time - span->begin) & SND_TIME_MASK) <= span->end - span->begin)
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------------- ranges */

static struct snd_cut_thread *find_thread(struct snd_cut *cut, uint32_t thread)
{
    for (uint32_t i = 0; i < cut->thread_count; i++)
        if (cut->threads[i].thread == thread)
            return &cut->threads[i];
    if (!snd_grow(&cut->threads, &cut->thread_room, cut->thread_count, sizeof *cut->threads)) {
        cut->failed = true;
        return NULL;
    }
    cut->threads[cut->thread_count] = (struct snd_cut_thread){ .thread = thread };
    return &cut->threads[cut->thread_count++];
}

/* A range is the session's if it began while the session was on; its end and attributes follow. */
static bool has_range_event(struct snd_cut *cut, uint32_t thread, const uint64_t *words)
{
    struct snd_cut_thread *t = find_thread(cut, thread);
    bool                   kept = is_within(cut->asked, SND_EVENT_TIME56(words[0]));

    if (!t)
        return false;
    switch (SND_EVENT_KIND(words[0])) {
    case SND_EV_ATTR:
    case SND_EV_ATTR64:
        return t->depth > 0 && t->kept[t->depth - 1];
    case SND_EV_END:
        return t->depth > 0 && t->kept[--t->depth];
    case SND_EV_BEGIN:
    case SND_EV_SPAN:
        if (snd_event_weight(words) == 2)
            return kept;
        if (!snd_grow(&t->kept, &t->room, t->depth, sizeof *t->kept)) {
            cut->failed = true;
            return false;
        }
        t->kept[t->depth++] = kept;
        return kept;
    default: /* another probe's */
        return false;
    }
}

bool snd_cut_has_event(struct snd_cut *cut, uint32_t thread, const uint64_t *words)
{
    const struct sonde_cut *asked = cut->asked;

    switch (SND_EVENT_KIND(words[0])) {
    case SND_EV_THREAD:
    case SND_EV_GAP:
        return true;
    case SND_EV_SAMPLE:
        return asked->samples && is_within(asked, SND_EVENT_TIME56(words[0]));
    case SND_EV_COUNTER:
        return asked->counters && is_within(asked, SND_EVENT_TIME56(words[0]));
    default:
        return asked->ranges && has_range_event(cut, thread, words);
    }
}

void snd_cut_record(const struct snd_cut *cut, uint64_t *words, size_t count)
{
    struct snd_record_head  head;
    struct snd_tally_record tally;

    memcpy(&head, words, sizeof head);
    if (SND_RECORD_TYPE(head) != SND_REC_TALLY || count * 8 < sizeof head + sizeof tally)
        return;
    memcpy(&tally, words + 1, sizeof tally);
    uint32_t session = tally.kind >> 16, kind = tally.kind & 0xffff;
    bool     counted = kind < sizeof keys / sizeof keys[0];
    bool     kept = counted ? session == cut->asked->session ||
                              (session == 0 && cut->owners[kind] == cut->asked->session)
                            : cut->asked->samples; /* the sampler's */
    /* Neither calls nor resumptions: of a session that is no more, whose number this one has. */
    if (kind == SND_TALLY_CALLS && count > 7 && words[3] == 0 && words[7] == 0)
        kept = false;
    tally.kind = kept ? kind : 0;
    memcpy(words + 1, &tally, sizeof tally);
}
