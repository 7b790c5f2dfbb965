/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of the report page: ranges in the order in which they end, what GPUs did, links between
 * them; marks, counters, memory.
 *
 * Of one thread and depth, ranges that end one after another also begin so: the page needs no sorting.
 * Those that do not nest are marked, and the page finds them rows of their own.
 */
#include <inttypes.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/compare.h"
#include "base/text/plural.h"
#include "export/page/page.h"
#include "export/timeline/gpu_streams.h"
#include "format/fields.h"
#include "format/known.h"
#include "format/layout.h"
#include "model/ranks/groups.h"
#include "read/said/trace_facts.h"
#include "read/said/trace_metadata.h"
#include "sonde/export.h"

/* ------------------------------------------------ events that are no ranges */

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

static bool on_other_event(const struct sonde_event *event, const struct snd_live_change *change,
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

/* ------------------------------------------------------------------- ranges */

/* Bits beside the depth of a range. */
enum { SPAN_BESIDE = 1, SPAN_UNFINISHED = 2, SPAN_FUNCTION = 4, SPAN_BITS = 3 };

static bool has(const struct snd_span *span, unsigned key)
{
    return span->attr_mask >> key & 1;
}

static void put_times(struct snd_html *page, uint32_t thread, int64_t start_ns, int64_t end_ns)
{
    snd_html_signed(&page->spans, 3, snd_sub(end_ns, page->last_ns[thread]));
    snd_html_value(&page->spans, 4, (uint64_t)snd_sub(end_ns, start_ns));
    page->last_ns[thread] = end_ns;
}

static uint64_t attr_of(const struct snd_span *span, unsigned key)
{
    return has(span, key) ? span->attrs[key] : 0;
}

static void put_links(struct snd_html *page, const struct snd_span *span)
{
    struct snd_arrow_end forward;

    if (page->is_torch[span->process] && snd_arrows_follow(&page->arrows, span, &forward)) {
        snd_html_value(&page->links, 0, page->span_count);
        snd_html_value(&page->links, 1, forward.thread);
        snd_html_signed(&page->links, 2, forward.start_ns);
        snd_html_entry(page, &page->links);
    }
    uint64_t api = attr_of(span, SND_ATTR_API);
    if (api != 0 && SND_API_CORRELATION(api) != 0 && sonde_call_asks(snd_api_function(api))) {
        snd_html_value(&page->calls, 0, page->span_count);
        snd_html_value(&page->calls, 1, span->process);
        snd_html_value(&page->calls, 2, SND_API_CORRELATION(api));
        snd_html_entry(page, &page->calls);
    }
}

static enum snd_html_kind kind_of(const struct snd_span *span)
{
    if (has(span, SND_ATTR_FRAME))
        return SND_HTML_PYTHON;
    if (has(span, SND_ATTR_API))
        return SND_HTML_API;
    if (has(span, SND_ATTR_COLLECTIVE))
        return SND_HTML_COLLECTIVE;
    uint64_t scope =
        attr_of(span, SND_ATTR_SCOPE); /* torch's number plus one; calls have none of operators */
    if (scope == SONDE_SCOPE_BACKWARD + 1)
        return SND_HTML_BACKWARD;
    bool is_operator = scope == SONDE_SCOPE_FUNCTION + 1 || (scope == 0 && span->is_op);
    return is_operator ? SND_HTML_OPERATOR : SND_HTML_RANGE;
}

static void put_place(struct snd_html *page, uint32_t depth, enum snd_html_kind kind, uint64_t bits)
{
    snd_html_value(&page->spans, 1,
                   ((uint64_t)depth << SND_HTML_KIND_BITS | (uint64_t)kind) << SPAN_BITS | bits);
}

static bool on_end(const struct snd_span *span, void *user)
{
    struct snd_html *page = user;
    uint64_t         bits = (span->is_async || span->crosses ? SPAN_BESIDE : 0) |
                    (span->unfinished ? SPAN_UNFINISHED : 0);
    uint32_t frame = (uint32_t)attr_of(span, SND_ATTR_FRAME);

    page->content |= (frame ? SND_HAS_FUNCTIONS : 0) |
                     (has(span, SND_ATTR_MODULE) ? SND_HAS_MODULES : 0);
    put_links(page, span);
    snd_html_value(&page->spans, 0, span->thread);
    put_place(page, span->depth, kind_of(span), bits);
    snd_html_value(&page->spans, 2,
                   frame ? snd_html_id(page, SND_HTML_FUNCTION, span->process, frame)
                         : snd_html_name(page, span->name_number));
    put_times(page, span->thread, span->start_ns, span->end_ns);
    snd_html_value(&page->spans, 5,
                   snd_html_id(page, SND_HTML_SHAPES, span->process, span->shapes));
    snd_html_value(&page->spans, 6,
                   snd_html_id(page, SND_HTML_MODULE, span->process,
                               (uint32_t)attr_of(span, SND_ATTR_MODULE)));
    snd_html_value(&page->spans, 7,
                   snd_html_id(page, SND_HTML_STACK, span->process,
                               (uint32_t)attr_of(span, SND_ATTR_STACK)));
    snd_html_entry(page, &page->spans);
    page->span_count++;
    return !page->failed && !page->out->failed;
}

/* A call of a Python function, recorded when it ends; the page finds its parent calls. */
static void put_function(struct snd_html *page, const struct sonde_event *event)
{
    page->content |= SND_HAS_FUNCTIONS;
    snd_html_value(&page->spans, 0, event->thread);
    put_place(page, 0, SND_HTML_PYTHON, SPAN_FUNCTION);
    snd_html_value(&page->spans, 2,
                   snd_html_id(page, SND_HTML_FUNCTION, event->process, event->function.frame));
    put_times(page, event->thread, snd_sub(event->time_ns, (int64_t)event->function.duration_ns),
              event->time_ns);
    for (uint32_t i = 5; i < page->spans.columns; i++)
        snd_html_value(&page->spans, i, 0);
    snd_html_entry(page, &page->spans);
    page->span_count++;
}

static bool on_event(const struct sonde_event *event, const struct snd_live_change *change,
                     void *user)
{
    struct snd_html *page = user;

    if (event->kind == SONDE_EVENT_FUNCTION && event->thread != SONDE_NONE)
        put_function(page, event);
    else
        on_other_event(event, change, user);
    return !page->failed && !page->out->failed;
}

/* ---------------------------------------------------------------- GPUs' work */

static enum sonde_status put_works(struct snd_html *page, struct sonde_error *err)
{
    const struct snd_devices *devices;
    enum sonde_status         st = snd_trace_devices_by_time(page->trace, &devices, err);

    for (uint32_t i = 0; st == SONDE_OK && devices && i < devices->count; i++) {
        const struct snd_device_item *item = &devices->items[devices->by_time[i]];
        if (!snd_work_counts(snd_device_work(page->trace, item)))
            continue;
        page->content |= SND_HAS_WORK;
        snd_html_value(&page->works, 0, item->process);
        snd_html_value(&page->works, 1, item->queue);
        snd_html_value(&page->works, 2, snd_html_name(page, snd_device_name(page->trace, item)));
        snd_html_signed(&page->works, 3, snd_sub(item->start_ns, page->last_work_ns));
        snd_html_value(&page->works, 4, (uint64_t)item->duration_ns);
        snd_html_value(&page->works, 5, item->correlation);
        snd_html_value(&page->works, 6,
                       snd_device_work(page->trace, item)->kind == SND_WORK_KERNEL ? SND_HTML_KERNEL
                                                                                   : SND_HTML_COPY);
        page->last_work_ns = item->start_ns;
        snd_html_entry(page, &page->works);
    }
    return st;
}

/* --------------------------------------------- what the tables say there is */

/* What a process has counted in place, not as events. */
static unsigned find_counted(const struct sonde_trace *trace, uint32_t process)
{
    struct sonde_tally_row row;
    unsigned               has = 0;

    for (uint32_t n = 0; sonde_trace_tally(trace, process, n, &row); n++)
        has |= row.kind == SND_TALLY_CALLS          ? SND_HAS_FUNCTIONS
               : row.kind == SND_TALLY_LINE         ? SND_HAS_LINES
               : row.kind == SND_TALLY_LINE_MEMORY  ? SND_HAS_LINE_MEMORY
               : row.kind == SND_TALLY_HEAP_PROCESS ? SND_HAS_HEAP
               : row.kind == SND_TALLY_SAMPLER && row.words[SND_TALLY_HOW_OFTEN] > 0
                   ? SND_HAS_FUNCTIONS /* the hot ones */
                   : 0;
    return has;
}

/* What it says of itself, as facts or metadata. */
static unsigned find_said(const struct sonde_trace *trace, uint32_t process)
{
    static const struct {
        uint32_t fact;
        unsigned has;
    } facts[] = {
        { SND_FACT_OF_MODEL, SND_HAS_BENCHMARK },   { SND_FACT_OF_MACHINE, SND_HAS_BENCHMARK },
        { SND_FACT_OF_BATCH, SND_HAS_BENCHMARK },   { SND_FACT_OF_ENERGY, SND_HAS_BENCHMARK },
        { SND_FACT_OF_FAILURE, SND_HAS_BENCHMARK }, { SND_FACT_OF_GRAPH, SND_HAS_GRAPH },
        { SND_FACT_OF_NODE, SND_HAS_GRAPH },        { SND_FACT_OF_LAYERS, SND_HAS_LAYERS },
        { SND_FACT_OF_TENSOR, SND_HAS_TENSORS },    { SND_FACT_OF_LINES, SND_HAS_TENSOR_LINES },
        { SND_FACT_OF_COUNTER, SND_HAS_COUNTERS },
    };
    static const struct {
        enum snd_meta key;
        unsigned      has;
    } metadata[] = { { SND_META_COUNTERS_RANGES, SND_HAS_RANGE_COUNTERS },
                     { SND_META_COUNTERS_FUNCTIONS, SND_HAS_FUNCTION_COUNTERS },
                     { SND_META_LAYERS, SND_HAS_LAYERS } };
    struct sonde_text value;
    unsigned          has = 0;

    for (size_t i = 0; i < SND_COUNT_OF(facts); i++)
        if (snd_fact_next(trace, process, facts[i].fact, &(uint32_t){ 0 }))
            has |= facts[i].has;
    for (size_t i = 0; i < SND_COUNT_OF(metadata); i++)
        if (snd_meta_find(trace, process, metadata[i].key, &value))
            has |= metadata[i].has;
    return has;
}

/* What the page has no walk and no view for if it is not there; events have told the rest. */
static unsigned find_content(const struct sonde_trace *trace)
{
    unsigned has = (trace->process_count > 1 ? SND_HAS_JOB : 0) |
                   (snd_groups_any(trace) ? SND_HAS_COLLECTIVES : 0);

    for (uint32_t i = 0; i < trace->process_count; i++)
        has |= find_counted(trace, i) | find_said(trace, i) |
               (trace->processes[i].shown.rank != SONDE_NONE ? SND_HAS_JOB : 0);
    for (uint32_t i = 0; i < trace->names.count && !(has & SND_HAS_BENCHMARK); i++)
        has |= snd_name_judge(trace->names.items[i]) & SND_NAME_PASS ? SND_HAS_BENCHMARK : 0;
    return has;
}

enum sonde_status snd_html_timeline(struct snd_html *page, struct sonde_error *err)
{
    struct snd_spans_calls calls = {
        .end = on_end, .event = on_event, .user = page, .ahead = true
    };
    struct snd_spans_totals totals;
    enum sonde_status       st = snd_spans_walk(page->trace, &calls, &totals, err);

    page->content |= find_content(page->trace);
    if (page->content & SND_HAS_SAMPLES && page->span_count == 0)
        page->content |= SND_HAS_FUNCTIONS; /* the hot ones */
    if (st == SONDE_OK)
        st = put_works(page, err);
    struct snd_html_block *blocks[] = { &page->spans,    &page->works,  &page->links,
                                        &page->calls,    &page->marks,  &page->steps,
                                        &page->counters, &page->memory, &page->samples,
                                        &page->stacks };
    for (size_t i = 0; i < SND_COUNT_OF(blocks); i++)
        snd_html_flush(page, blocks[i]);
    return st;
}
