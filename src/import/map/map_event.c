/* SPDX-License-Identifier: Apache-2.0 */
/* import/map/map_event.c - from an event of the file to items of the trace; declared in importer.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/hash.h"
#include "base/text/buf.h"
#include "import/map/importer.h"

#define ASYNC_TID 0xfffffff0u /* the lane of a process's asynchronous ranges */

enum meaning {
    MEANS_NOTHING,
    MEANS_OPERATOR,
    MEANS_USER,
    MEANS_FUNCTION,
    MEANS_RUNTIME,
    MEANS_DRIVER,
    MEANS_KERNEL,
    MEANS_COPY,
    MEANS_FILL,
    MEANS_SYNCHRONIZE,
    MEANS_OVERHEAD,
    MEANS_MEMORY,
    MEANS_WINDOW,
    MEANS_DERIVED,
};

static enum meaning find_meaning(struct snd_span category)
{
    static const struct {
        const char  *text;
        size_t       length;
        enum meaning meaning;
    } known[] = {
#define SND_CATEGORY(text, meaning) { text, sizeof text - 1, MEANS_##meaning },
#include "import/map/categories.def"
#undef SND_CATEGORY
    };
    struct snd_span inside;

    if (!snd_scan_plain(category, &inside))
        return MEANS_NOTHING;
    for (size_t i = 0; i < SND_COUNT_OF(known); i++)
        if (inside.length == known[i].length &&
            memcmp(inside.at, known[i].text, inside.length) == 0)
            return known[i].meaning;
    return MEANS_NOTHING;
}

/* ------------------------------------------------------------------ small parts */

/* An event that has no place in a trace: counted by its phase and category. */
static void count_nowhere(struct snd_importer *im)
{
    struct snd_trace_event *e = &im->event;
    struct snd_span         inside = { "", 0 };
    char                    text[sizeof im->kinds->text];
    uint32_t                i = 0;

    im->unmapped++;
    if (e->category.length > 0)
        snd_scan_plain(e->category, &inside);
    if (!inside.at)
        inside = (struct snd_span){ "", 0 };
    for (size_t k = 0; k < inside.length; k++) /* it is shown in a line */
        if ((unsigned char)inside.at[k] < 0x20 || (unsigned char)inside.at[k] >= 0x7f)
            inside.length = 0;
    snprintf(text, sizeof text, "%c%s%.*s", e->phase >= 0x20 && e->phase < 0x7f ? e->phase : '?',
             inside.length > 0 ? " " : "", (int)(inside.length < 30 ? inside.length : 30),
             inside.at);
    while (i < im->kind_count && strcmp(im->kinds[i].text, text) != 0)
        i++;
    if (i == im->kind_count) {
        if (i == SND_KINDS_MOST)
            return;
        memcpy(im->kinds[i].text, text, sizeof text);
        im->kind_count++;
    }
    im->kinds[i].count++;
}

/* A lane whose thread is not known by a number has its text as name. */
static void name_lane(struct snd_importer *im, uint64_t lane)
{
    struct snd_span tid = im->event.tid;

    if (tid.length == 0 || lane == im->named_lane || snd_map_id(tid) < SND_ID_TEXT)
        return;
    im->named_lane = lane;
    struct snd_item item = { .lane = lane,
                             .start = INT64_MIN + 1, /* after names that the file gives */
                             .rank = SND_RANK_NAME,
                             .a = snd_map_string(im, tid),
                             .kind = SND_ITEM_THREAD_NAME };
    snd_map_add(im, &item);
}

static void note_time(struct snd_importer *im, int64_t start, int64_t end)
{
    if (!im->any_time || start < im->first)
        im->first = start;
    if (!im->any_time || end > im->last)
        im->last = end;
    im->any_time = true;
}

/* ---------------------------------------------------------------------- ranges */

static struct snd_item range_item(struct snd_importer *im, uint64_t lane, int64_t start,
                                  int64_t duration, enum snd_item_kind kind)
{
    if (!im->has_own) {
        im->has_own = true;
        im->own_pid = (uint32_t)(lane >> 32);
    }
    return (struct snd_item){
        .lane = lane, .start = start, .rank = SND_RANK_RANGE(duration), .kind = kind
    };
}

static void add_attribute(struct snd_importer *im, const struct snd_item *range, unsigned key,
                          uint64_t value)
{
    struct snd_item item = { .lane = range->lane,
                             .start = range->start,
                             .rank = range->rank,
                             .a = key,
                             .b = value,
                             .kind = SND_ITEM_ATTR };

    snd_map_add(im, &item);
}

/* ProfilerStep#N: readers have steps by their marks. */
static void add_step(struct snd_importer *im, const struct snd_item *range)
{
    static const char prefix[] = "\"ProfilerStep#";
    const size_t      length = sizeof prefix - 1;
    struct snd_span   name = im->event.name;
    uint64_t          number;

    if (name.length <= length + 1 || memcmp(name.at, prefix, length) != 0 ||
        !snd_scan_uint((struct snd_span){ name.at + length, name.length - length - 1 }, &number))
        return;
    struct snd_item item = *range;
    item.rank--; /* before the range: it is in the step */
    item.kind = SND_ITEM_STEP;
    item.b = number;
    snd_map_add(im, &item);
}

static void map_call(struct snd_importer *im, uint64_t lane, int64_t start, int64_t duration,
                     bool is_user)
{
    static const struct {
        enum snd_argument argument;
        unsigned          key;
    } counts[] = { { SND_ARG_FLOPS, SND_ATTR_FLOPS },
                   { SND_ARG_MACS, SND_ATTR_MACS },
                   { SND_ARG_BYTES, SND_ATTR_BYTES },
                   { SND_ARG_RECORD_FUNCTION, SND_ATTR_RECORD_FUNCTION } };
    struct snd_trace_event *e = &im->event;
    struct snd_item         item = range_item(im, lane, start, duration, SND_ITEM_CALL);

    snd_event_is(e, SND_OF_CALL);
    im->is_torch = true;
    if (is_user)
        add_step(im, &item);
    item.b = snd_map_sequence(im);
    item.a = snd_map_call(im, is_user);
    if (item.a == 0)
        return;
    snd_map_add(im, &item);
    for (size_t i = 0; i < SND_COUNT_OF(counts); i++) {
        uint64_t value = snd_event_number(e, counts[i].argument, 0);
        if (value != 0)
            add_attribute(im, &item, counts[i].key, value);
    }
    if (snd_scan_plain(e->name, &(struct snd_span){ 0 }) &&
        snd_span_is(e->name, "\"record_param_comms\"", 20)) {
        uint32_t others = snd_map_others(im);
        if (others != 0)
            add_attribute(im, &item, SND_ATTR_COLLECTIVE, others);
    }
}

static void map_api(struct snd_importer *im, uint64_t lane, int64_t start, int64_t duration,
                    bool is_driver)
{
    struct snd_trace_event *e = &im->event;
    struct snd_item         item = range_item(im, lane, start, duration, SND_ITEM_API);

    snd_event_is(e, SND_OF_API);
    item.a = snd_map_string(im, e->name);
    item.b = (snd_event_number(e, SND_ARG_CORRELATION, 0) & UINT32_MAX) |
             (snd_event_number(e, SND_ARG_CBID, 0) & 0x7fff) << 32 | (uint64_t)is_driver << 47;
    snd_map_add(im, &item);
    im->dropped += e->other_count;
}

static void map_function(struct snd_importer *im, uint64_t lane, int64_t start, int64_t duration)
{
    struct snd_trace_event *e = &im->event;
    struct snd_item         item = range_item(im, lane, start, duration, SND_ITEM_FUNCTION);
    struct snd_span         name;

    snd_event_is(e, SND_OF_FUNCTION);
    im->is_torch = true;
    if (!snd_scan_plain(e->name, &name)) {
        snd_buf_clear(&im->text);
        snd_scan_text(e->name, &im->text);
        name = (struct snd_span){ snd_buf_string(&im->text), im->text.length };
    }
    item.a = snd_calls_frame(&im->calls, name.at, name.length) |
             (snd_event_number(e, SND_ARG_PYTHON_ID, 0) & UINT32_MAX) << 32;
    item.b = snd_event_number(e, SND_ARG_PYTHON_PARENT, 0) & UINT32_MAX;
    snd_map_add(im, &item);
    im->dropped += e->other_count;
}

/* A range of no kind that is known. */
static void map_plain(struct snd_importer *im, uint64_t lane, int64_t start, int64_t duration)
{
    struct snd_item item = range_item(im, lane, start, duration, SND_ITEM_SPAN);

    snd_event_is(&im->event, 0);
    uint32_t others = snd_map_others(im);
    item.a = snd_map_string(im, im->event.name);
    snd_map_add(im, &item);
    if (others != 0)
        add_attribute(im, &item, SND_ATTR_KEYWORDS, others);
}

static void map_window(struct snd_importer *im, int64_t start, int64_t end)
{
    if (!im->has_window || start < im->window_begin)
        im->window_begin = start;
    if (!im->has_window || end > im->window_end)
        im->window_end = end;
    im->has_window = true;
    im->derived++;
}

/* A complete event. */
static void map_range(struct snd_importer *im, enum meaning meaning, int64_t start)
{
    struct snd_trace_event *e = &im->event;
    int64_t                 duration = 0, end;
    bool                    inexact = false;

    if (e->duration.length > 0 && !snd_scan_us(e->duration, &duration, &inexact))
        e->odd = true;
    if (duration < 0 || duration > INT64_MAX / 4) {
        duration = 0;
        e->odd = true;
    }
    if (__builtin_add_overflow(start, duration, &end)) {
        im->lost++;
        return;
    }
    im->rounded += inexact;
    if (meaning == MEANS_DERIVED) {
        im->derived++;
        return;
    }
    if (meaning == MEANS_WINDOW) {
        map_window(im, start, end);
        return;
    }
    note_time(im, start, end);
    static const uint8_t works[] = { [MEANS_KERNEL] = SND_WORK_KERNEL,
                                     [MEANS_COPY] = SND_WORK_COPY,
                                     [MEANS_FILL] = SND_WORK_FILL,
                                     [MEANS_SYNCHRONIZE] = SND_WORK_SYNCHRONIZE,
                                     [MEANS_OVERHEAD] = SND_WORK_OVERHEAD };
    if (meaning >= MEANS_KERNEL && meaning <= MEANS_OVERHEAD) {
        snd_map_work(im, works[meaning], start, duration);
        return;
    }
    uint64_t lane = snd_map_lane(im, e->pid, e->tid);
    name_lane(im, lane);
    if (meaning == MEANS_OPERATOR || meaning == MEANS_USER)
        map_call(im, lane, start, duration, meaning == MEANS_USER);
    else if (meaning == MEANS_RUNTIME || meaning == MEANS_DRIVER)
        map_api(im, lane, start, duration, meaning == MEANS_DRIVER);
    else if (meaning == MEANS_FUNCTION)
        map_function(im, lane, start, duration);
    else
        map_plain(im, lane, start, duration);
}

/* --------------------------------------------------------------------- others */

/* What an event is known by to others: a number, or the hash of a text. */
static uint64_t find_id(const struct snd_trace_event *e)
{
    struct snd_span value = e->id.length > 0 ? e->id : e->id2;
    uint64_t        number;

    if (snd_scan_uint(value, &number))
        return number;
    return snd_hash_bytes(value.at, value.length, 11).low;
}

static void map_begin(struct snd_importer *im, int64_t start)
{
    struct snd_trace_event *e = &im->event;
    uint64_t                lane = snd_map_lane(im, e->pid, e->tid);
    struct snd_item         item = range_item(im, lane, start, 0, SND_ITEM_BEGIN);

    snd_event_is(e, 0);
    name_lane(im, lane);
    item.rank = SND_RANK_ALONE;
    item.a = snd_map_string(im, e->name);
    uint32_t others = snd_map_others(im);
    snd_map_add(im, &item);
    if (others != 0)
        add_attribute(im, &item, SND_ATTR_KEYWORDS, others);
}

static void map_end(struct snd_importer *im, int64_t start)
{
    struct snd_item item = { .lane = snd_map_lane(im, im->event.pid, im->event.tid),
                             .start = start,
                             .rank = SND_RANK_ALONE,
                             .kind = SND_ITEM_END };

    snd_event_is(&im->event, 0);
    im->dropped += im->event.other_count;
    snd_map_add(im, &item);
}

/* Ranges of no thread: in a lane of their own, begun and ended by what they are known by. */
static void map_async(struct snd_importer *im, int64_t start, bool begins)
{
    struct snd_trace_event *e = &im->event;
    uint32_t                pid = (uint32_t)(snd_map_lane(im, e->pid, e->tid) >> 32);
    uint64_t                lane = snd_lane_key(pid, ASYNC_TID);
    uint64_t                key = find_id(e);
    struct snd_item         name = {
                .lane = lane, .start = INT64_MIN, .rank = SND_RANK_NAME, .kind = SND_ITEM_THREAD_NAME
    };

    snd_event_is(e, 0);
    if (e->category.length > 0)
        key ^= snd_hash_bytes(e->category.at, e->category.length, 13).low;
    name.a = snd_trace_string(&im->out, "asynchronous", 12);
    if (begins)
        snd_map_add(im, &name);
    struct snd_item item = { .lane = lane,
                             .start = start,
                             .rank = SND_RANK_ALONE,
                             .a = begins ? snd_map_string(im, e->name) : 0,
                             .b = key | 1,
                             .kind = begins ? SND_ITEM_ASYNC_BEGIN : SND_ITEM_ASYNC_END };
    snd_map_add(im, &item);
    im->dropped += e->other_count;
}

static void map_moment(struct snd_importer *im, enum meaning meaning, int64_t start)
{
    struct snd_trace_event *e = &im->event;
    uint64_t                lane = snd_map_lane(im, e->pid, e->tid);
    struct snd_span         name;

    if (meaning == MEANS_MEMORY && snd_event_has(e, SND_ARG_ADDRESS)) {
        note_time(im, start, start);
        snd_map_memory(im, lane, start);
        return;
    }
    if (snd_scan_plain(e->name, &name) &&
        (snd_span_is(name, "Record Window End", 17) ||
         snd_span_is(name, "Iteration Start: PyTorch Profiler", 33))) {
        im->derived++;
        return;
    }
    snd_event_is(e, 0);
    note_time(im, start, start);
    name_lane(im, lane);
    struct snd_item item = { .lane = lane,
                             .start = start,
                             .rank = SND_RANK_MOMENT,
                             .a = snd_map_string(im, e->name),
                             .kind = SND_ITEM_MARK };
    snd_map_add(im, &item);
    im->dropped += e->other_count;
}

/* Each of its arguments is a line of the counter. */
static void map_counter(struct snd_importer *im, int64_t start)
{
    struct snd_trace_event *e = &im->event;
    struct snd_item         item = { .lane = snd_map_lane(im, e->pid, e->tid),
                                     .start = start,
                                     .rank = SND_RANK_MOMENT,
                                     .kind = SND_ITEM_COUNTER };

    snd_event_is(e, 0);
    for (uint32_t i = 0; i < e->other_count; i++) {
        double value;
        if (!snd_scan_real(e->others[i].value, &value)) {
            im->dropped++;
            continue;
        }
        snd_buf_clear(&im->text);
        snd_scan_text(e->name, &im->text);
        if (!snd_span_is(e->others[i].key, "value", 5)) {
            snd_buf_text(&im->text, " ");
            snd_buf_put(&im->text, e->others[i].key.at, e->others[i].key.length);
        }
        item.a = snd_trace_string(&im->out, snd_buf_string(&im->text), im->text.length);
        memcpy(&item.b, &value, sizeof item.b);
        snd_map_add(im, &item);
    }
}

static void map_link(struct snd_importer *im, int64_t start)
{
    struct snd_trace_event *e = &im->event;
    struct snd_item         item = { .lane = snd_map_lane(im, e->pid, e->tid),
                                     .start = start,
                                     .rank = SND_RANK_MOMENT,
                                     .a = SND_LINK_FLOW | (uint64_t)(e->phase == 'f') << 32,
                                     .b = find_id(e),
                                     .kind = SND_ITEM_LINK };

    snd_map_add(im, &item);
}

/* ------------------------------------------------------------------- metadata */

/* "thread 523 (python)": the name that the system has. */
static struct snd_span shorten(struct snd_span name)
{
    const char *open = name.length > 9 && memcmp(name.at, "\"thread ", 8) == 0
                           ? memchr(name.at, '(', name.length)
                           : NULL;

    if (!open || name.at[name.length - 2] != ')')
        return name;
    return (struct snd_span){ open + 1, (size_t)(name.at + name.length - 2 - (open + 1)) };
}

static void note_process(struct snd_importer *im, uint32_t pid, struct snd_span name)
{
    uint32_t i = 0;

    while (i < im->pid_count && im->pids[i].pid != pid)
        i++;
    if (i < im->pid_count || i == SND_PIDS_MOST)
        return;
    snd_buf_clear(&im->text);
    snd_scan_text(name, &im->text);
    im->pids[i].pid = pid;
    snprintf(im->pids[i].name, sizeof im->pids->name, "%s", snd_buf_string(&im->text));
    im->pid_count++;
}

static void map_names(struct snd_importer *im)
{
    struct snd_trace_event *e = &im->event;
    struct snd_span         what, name = e->args[SND_ARG_NAME];

    if (!snd_scan_plain(e->name, &what) || !snd_event_has(e, SND_ARG_NAME)) {
        im->derived++; /* labels, and where viewers are to show something */
        return;
    }
    uint64_t lane = snd_map_lane(im, e->pid, e->tid);
    if (snd_span_is(what, "process_name", 12))
        note_process(im, (uint32_t)(lane >> 32), name);
    if (!snd_span_is(what, "thread_name", 11))
        return;
    struct snd_item item = {
        .lane = lane, .start = INT64_MIN, .rank = SND_RANK_NAME, .kind = SND_ITEM_THREAD_NAME
    };
    struct snd_span shown = shorten(name);
    item.a = shown.at == name.at ? snd_map_string(im, name)
                                 : snd_trace_string(&im->out, shown.at, shown.length);
    snd_map_add(im, &item);
}

void snd_map_event(struct snd_importer *im)
{
    struct snd_trace_event *e = &im->event;
    enum meaning            meaning = find_meaning(e->category);
    int64_t                 start;
    bool                    inexact = false;

    im->events++;
    im->dropped += e->dropped;
    if (e->phase == 'M') {
        map_names(im);
        return;
    }
    if (e->phase == 0 || !snd_scan_us(e->ts, &start, &inexact)) {
        im->lost++;
        return;
    }
    im->rounded += inexact;
    if (e->phase == 'X') {
        map_range(im, meaning, start);
        im->repaired += e->odd;
        return;
    }
    im->repaired += e->odd;
    if (meaning == MEANS_DERIVED) {
        im->derived++;
        return;
    }
    switch (e->phase) {
    case 'B':
        note_time(im, start, start);
        map_begin(im, start);
        return;
    case 'E':
        note_time(im, start, start);
        map_end(im, start);
        return;
    case 'i':
    case 'I':
    case 'R':
    case 'n':
        map_moment(im, meaning, start);
        return;
    case 'C':
        note_time(im, start, start);
        map_counter(im, start);
        return;
    case 's':
    case 'f':
        note_time(im, start, start);
        map_link(im, start);
        return;
    case 'b':
    case 'S':
    case 'e':
    case 'F':
        note_time(im, start, start);
        map_async(im, start, e->phase == 'b' || e->phase == 'S');
        return;
    default:
        count_nowhere(im);
        return;
    }
}
