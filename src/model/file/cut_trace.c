/* SPDX-License-Identifier: Apache-2.0 */
#include "model/file/cut_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "format/fields.h"
#include "read/said/trace_metadata.h"

/* Where a process says that all it counted is one session's: docs/FORMAT.md. */
static const struct {
    enum snd_tally_kind kind;
    enum snd_meta       owner;
} owners[] = {
    { SND_TALLY_CALLS, SND_META_PYTHON_FUNCTIONS_SESSION },
    { SND_TALLY_LINE, SND_META_PYTHON_LINES_SESSION },
    { SND_TALLY_LINE_MEMORY, SND_META_PYTHON_LINE_MEMORY_SESSION },
};

void snd_cut_init(struct snd_cut *cut, const struct sonde_cut *asked,
                  const struct sonde_trace *trace)
{
    struct sonde_text value;

    *cut = (struct snd_cut){ .asked = asked, .trace = trace };
    for (size_t i = 0; i < SND_COUNT_OF(owners); i++)
        if (snd_meta_find(trace, 0, owners[i].owner, &value))
            cut->owners[owners[i].kind] = (uint32_t)strtoul(value.bytes, NULL, 10);
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

/* Of an event of any kind; one without a time belongs to the event before it. */
static bool has_any_event(struct snd_cut *cut, uint32_t thread, const uint64_t *words)
{
    struct snd_cut_thread *t = find_thread(cut, thread);
    uint8_t                kind = SND_EVENT_KIND(words[0]);

    if (!t)
        return false;
    if (kind != SND_EV_ATTR && kind != SND_EV_ATTR64)
        t->latest = is_within(cut->asked, SND_EVENT_TIME56(words[0]));
    return t->latest;
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
    case SND_EV_SAMPLE_RUN: /* by the time that it stands for */
        return asked->samples &&
               is_within(asked, (SND_EVENT_TIME56(words[0]) - words[3]) & SND_TIME_MASK);
    case SND_EV_COUNTER:
        return asked->counters && is_within(asked, SND_EVENT_TIME56(words[0]));
    default:
        return asked->all ? has_any_event(cut, thread, words)
                          : asked->ranges && has_range_event(cut, thread, words);
    }
}

/* ---------------------------------------------------------------------- records */

static void cut_tally(const struct snd_cut *cut, uint64_t *words, size_t count)
{
    struct snd_record_head  head;
    struct snd_tally_record tally;

    if (count * 8 < sizeof head + sizeof tally)
        return;
    memcpy(&tally, words + 1, sizeof tally);
    uint32_t session = tally.kind >> 16, kind = tally.kind & 0xffff;
    bool     counted = kind < SND_COUNT_OF(cut->owners);
    bool     kept = counted ? session == cut->asked->session ||
                              (session == 0 && cut->owners[kind] == cut->asked->session)
                            : cut->asked->samples; /* the sampler's */
    /* Neither calls nor resumptions: of a session that is no more, whose number this one has. */
    const uint64_t *values = words + (sizeof head + sizeof tally) / sizeof *words;
    if (kind == SND_TALLY_CALLS && values + SND_CALLS_RESUMPTIONS < words + count &&
        values[SND_CALLS_CALLS] == 0 && values[SND_CALLS_RESUMPTIONS] == 0)
        kept = false;
    tally.kind = kept ? kind : 0;
    memcpy(words + 1, &tally, sizeof tally);
}

/* Reports of one recording have a subject each; of another's, a fact becomes one of no kind. */
static void cut_fact(const struct snd_cut *cut, uint64_t *words, size_t count)
{
    const char            *report = cut->asked->report;
    struct snd_fact_record fact;

    if (!report || count * 8 < sizeof(struct snd_record_head) + sizeof fact)
        return;
    memcpy(&fact, words + 1, sizeof fact);
    struct sonde_text subject = sonde_trace_string(cut->trace, 0, fact.subject);
    if ((fact.kind == SND_FACT_OF_TENSOR || fact.kind == SND_FACT_OF_LINES) &&
        (subject.length != strlen(report) || memcmp(subject.bytes, report, subject.length) != 0))
        fact.kind = 0;
    memcpy(words + 1, &fact, sizeof fact);
}

void snd_cut_record(const struct snd_cut *cut, uint64_t *words, size_t count)
{
    struct snd_record_head head;

    memcpy(&head, words, sizeof head);
    if (SND_RECORD_TYPE(head) == SND_REC_TALLY)
        cut_tally(cut, words, count);
    else if (SND_RECORD_TYPE(head) == SND_REC_FACT)
        cut_fact(cut, words, count);
}
