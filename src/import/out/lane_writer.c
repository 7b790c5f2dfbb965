/* SPDX-License-Identifier: Apache-2.0 */
#include "import/out/lane_writer.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"

#define OPEN_MOST 16384u /* ranges and functions that are open on a thread */

static uint64_t word0(const struct snd_lane_writer *w, uint8_t kind, int64_t ns)
{
    return SND_WORD0(kind, snd_lanes_raw(w, ns) & SND_TIME_MASK);
}

static bool is_range(uint32_t kind)
{
    return kind == SND_ITEM_CALL || kind == SND_ITEM_SPAN || kind == SND_ITEM_API ||
           kind == SND_ITEM_BEGIN || kind == SND_ITEM_ASYNC_BEGIN;
}

/* -------------------------------------------------------------------- ranges */

static void put_attr(struct snd_lane_writer *w, uint8_t key, uint64_t value)
{
    uint64_t words[2] = { SND_WORD0_ATTR(key, value), 0 };

    if (value <= SND_ATTR_SMALL_MAX) {
        snd_trace_event(w->out, words, 1);
        return;
    }
    words[0] = SND_WORD0_ATTR64(key);
    words[1] = value;
    snd_trace_event(w->out, words, 2);
}

/* The event that opens a range; `ticks`: it closes it as well. */
static void put_begin(struct snd_lane_writer *w, const struct snd_lane_open *o, uint32_t ticks)
{
    const struct snd_item *item = &o->item;
    uint64_t               words[3];

    if (snd_trace_room(w->out, 8))
        w->sequence = 0;
    if (item->kind == SND_ITEM_CALL) {
        if (item->b != 0 && item->b != w->sequence) {
            put_attr(w, SND_ATTR_CALLS_SEQUENCE, item->b - 1);
            w->sequence = item->b;
        }
        words[0] = word0(w, SND_EV_CALL, item->start);
        words[1] = SND_PAIR(o->call, ticks);
        snd_trace_event(w->out, words, 2);
        return;
    }
    words[0] = word0(w, item->kind == SND_ITEM_API ? SND_EV_API : SND_EV_SPAN, item->start);
    words[1] = SND_PAIR(item->a, ticks);
    words[2] = item->b;
    snd_trace_event(w->out, words, item->kind == SND_ITEM_API ? 3 : 2);
}

/* The innermost has something inside after all. */
static void put_held(struct snd_lane_writer *w)
{
    if (w->holds)
        put_begin(w, &w->open[w->count - 1], 0);
    w->holds = false;
}

static void put_function(struct snd_lane_writer *w, const struct snd_lane_open *o)
{
    uint64_t words[4] = { word0(w, SND_EV_FUNCTION, o->end), SND_PAIR(o->item.a, 0),
                          (uint64_t)snd_item_duration(&o->item) & SND_TIME_MASK,
                          SND_PAIR(o->item.a >> 32, o->item.b) };

    snd_trace_event(w->out, words, 4);
}

/* Ranges that began after it and are open still. */
static uint32_t count_inside(const struct snd_lane_writer *w, uint64_t serial)
{
    uint32_t inside = 0;

    for (uint32_t i = 0; i < w->count; i++)
        inside += w->open[i].serial > serial && is_range(w->open[i].item.kind);
    return inside;
}

static void put_end(struct snd_lane_writer *w, int64_t ns, uint32_t inside)
{
    uint64_t words[2] = { word0(w, inside == 0 ? SND_EV_END : SND_EV_END_AT, ns), inside };

    snd_trace_event(w->out, words, inside == 0 ? 1 : 2);
}

/* The one whose end is next. */
static void close_next(struct snd_lane_writer *w)
{
    struct snd_lane_open o = w->open[w->count - 1];

    if (o.end != INT64_MAX && o.end > w->last)
        w->last = o.end;
    if (w->holds) {
        int64_t ticks = o.end - o.item.start;
        w->holds = false;
        if (ticks > 0 && ticks <= UINT32_MAX) {
            put_begin(w, &o, (uint32_t)ticks);
            w->count--;
            return;
        }
        put_begin(w, &o, 0);
    }
    w->count--;
    w->crossing -= o.crosses;
    if (o.item.kind == SND_ITEM_FUNCTION)
        put_function(w, &o);
    else
        put_end(w, o.end, w->crossing > 0 ? count_inside(w, o.serial) : 0);
}

static void close_up_to(struct snd_lane_writer *w, int64_t ns)
{
    while (w->count > 0 && w->open[w->count - 1].end <= ns &&
           w->open[w->count - 1].end != INT64_MAX)
        close_next(w);
}

static struct snd_lane_open *add_open(struct snd_lane_writer *w, const struct snd_item *item,
                                      int64_t end)
{
    if (w->count >= OPEN_MOST) {
        w->too_deep++;
        return NULL;
    }
    if (!snd_grow(&w->open, &w->room, w->count, sizeof *w->open)) {
        w->failed = true;
        return NULL;
    }
    uint32_t at = w->count;
    while (at > 0 && w->open[at - 1].end < end)
        at--;
    memmove(&w->open[at + 1], &w->open[at], (w->count - at) * sizeof *w->open);
    w->open[at] = (struct snd_lane_open){
        .end = end, .serial = ++w->serials, .item = *item, .crosses = at < w->count
    };
    w->crossing += at < w->count;
    w->count++;
    return &w->open[at];
}

/* The range that a new one lies in; NULL: none. */
static const struct snd_lane_open *find_parent(const struct snd_lane_writer *w)
{
    const struct snd_lane_open *found = NULL;

    for (uint32_t i = w->count; i-- > 0 && (!found || w->crossing > 0);)
        if (is_range(w->open[i].item.kind) && (!found || w->open[i].serial > found->serial))
            found = &w->open[i];
    return found;
}

/* The stack of Python functions that last at least until `end`. */
static uint32_t find_stack(const struct snd_lane_writer *w, int64_t end)
{
    for (uint32_t i = w->count; i-- > 0;)
        if (w->open[i].item.kind == SND_ITEM_FUNCTION && w->open[i].end >= end)
            return w->open[i].call;
    return 0;
}

static int64_t end_of(const struct snd_item *item)
{
    int64_t end;

    return __builtin_add_overflow(item->start, snd_item_duration(item), &end) || end == INT64_MAX
               ? INT64_MAX - 1
               : end;
}

static void open_range(struct snd_lane_writer *w, const struct snd_item *item)
{
    int64_t  end = end_of(item);
    uint32_t call = 0;

    put_held(w);
    if (item->kind == SND_ITEM_CALL) {
        const struct snd_lane_open *parent = find_parent(w);
        bool                        backward = parent && parent->item.kind == SND_ITEM_CALL &&
                        snd_calls_runs(w->calls, parent->call, (uint32_t)item->a);
        call = snd_calls_variant(w->calls, (uint32_t)item->a, find_stack(w, end), backward);
    }
    struct snd_lane_open *o = add_open(w, item, end);
    if (!o)
        return;
    o->call = call;
    if (o->crosses)
        put_begin(w, o, 0);
    else
        w->holds = true;
}

static void open_function(struct snd_lane_writer *w, const struct snd_item *item)
{
    int64_t  end = end_of(item);
    uint32_t stack = find_stack(w, end), frame = (uint32_t)item->a;

    put_held(w);
    if (snd_calls_is_code(w->calls, frame)) {
        uint32_t node[2] = { stack, frame };
        stack = snd_trace_intern(w->out, SND_REC_STACK, node, sizeof node);
    }
    struct snd_lane_open *o = add_open(w, item, end);
    if (o)
        o->call = stack;
}

/* ------------------------------------------------------ ends that come by themselves */

static void open_begin(struct snd_lane_writer *w, const struct snd_item *item)
{
    put_held(w);
    struct snd_lane_open *o = add_open(w, item, INT64_MAX);
    if (!o)
        return;
    w->begins++;
    put_begin(w, o, 0);
    if (item->kind == SND_ITEM_ASYNC_BEGIN) {
        put_attr(w, SND_ATTR_KEY, item->b);
        put_attr(w, SND_ATTR_ASYNC, 1);
    }
}

static void remove_begin(struct snd_lane_writer *w, uint32_t at)
{
    w->crossing -= w->open[at].crosses;
    memmove(&w->open[at], &w->open[at + 1], (w->count - at - 1) * sizeof *w->open);
    w->count--;
    w->begins--;
}

static void close_begin(struct snd_lane_writer *w, const struct snd_item *item)
{
    put_held(w);
    if (w->begins == 0) {
        put_end(w, item->start, UINT32_MAX); /* readers count an end that has no begin */
        return;
    }
    uint64_t serial = w->open[w->begins - 1].serial;
    remove_begin(w, w->begins - 1);
    put_end(w, item->start, count_inside(w, serial));
}

static void close_async(struct snd_lane_writer *w, const struct snd_item *item)
{
    uint64_t words[2] = { word0(w, SND_EV_END_KEY, item->start), item->b };

    for (uint32_t i = w->begins; i-- > 0;)
        if (w->open[i].item.b == item->b) {
            remove_begin(w, i);
            break;
        }
    snd_trace_event(w->out, words, 2);
}

/* ------------------------------------------------------------------- moments */

static void put_moment(struct snd_lane_writer *w, const struct snd_item *item)
{
    uint64_t words[4] = { 0 };

    put_held(w);
    switch (item->kind) {
    case SND_ITEM_MARK:
        words[0] = word0(w, SND_EV_MARK, item->start);
        words[1] = SND_PAIR(item->a, 0);
        snd_trace_event(w->out, words, 2);
        return;
    case SND_ITEM_STEP:
        words[0] = word0(w, SND_EV_STEP, item->start);
        words[1] = item->b;
        snd_trace_event(w->out, words, 2);
        return;
    case SND_ITEM_COUNTER:
        words[0] = word0(w, SND_EV_COUNTER, item->start);
        words[1] = SND_PAIR(item->a, 0);
        words[2] = item->b;
        snd_trace_event(w->out, words, 3);
        return;
    case SND_ITEM_LINK:
        words[0] = word0(w, SND_EV_LINK, item->start);
        words[1] = item->a;
        words[2] = item->b;
        snd_trace_event(w->out, words, 3);
        return;
    case SND_ITEM_ALLOC:
    case SND_ITEM_FREE:
        words[0] = word0(w, item->kind == SND_ITEM_ALLOC ? SND_EV_ALLOC : SND_EV_FREE, item->start);
        words[1] = SND_PAIR(item->more, 0);
        words[2] = item->a;
        words[3] = item->b;
        snd_trace_event(w->out, words, 4);
        return;
    default:
        return;
    }
}

static void put_work(struct snd_lane_writer *w, const struct snd_item *item)
{
    int64_t  ticks = snd_item_duration(item), end = end_of(item);
    uint64_t words[5] = { word0(w, SND_EV_DEVICE, item->start), item->a, (uint64_t)ticks,
                          item->more, item->b };

    if (end > w->last)
        w->last = end;
    if (item->b != 0) {
        words[0] = word0(w, SND_EV_DEVICE_NODE, item->start);
        snd_trace_event(w->out, words, 5);
    } else if (ticks <= UINT32_MAX) {
        words[0] = word0(w, SND_EV_DEVICE_SHORT, item->start);
        words[1] = SND_PAIR(item->a, ticks);
        words[2] = SND_PAIR(item->more, item->a >> 32);
        snd_trace_event(w->out, words, 3);
    } else {
        snd_trace_event(w->out, words, 4);
    }
}

/* --------------------------------------------------------------------- lanes */

static uint32_t add_thread(struct snd_lane_writer *w, uint32_t pid, uint32_t tid, uint32_t name)
{
    struct snd_thread_record record = { .tid = tid, .name = name, .pid = pid == w->pid ? 0 : pid };

    return snd_trace_record(w->out, SND_REC_THREAD, &record, sizeof record);
}

static void begin_lane(struct snd_lane_writer *w)
{
    uint32_t pid = (uint32_t)(w->lane >> 32), tid = (uint32_t)w->lane + pid;

    if (w->lane == SND_ITEM_DEVICES) {
        if (w->own_thread == 0)
            w->own_thread = add_thread(w, w->pid, w->pid, 0);
        w->thread = w->own_thread;
    } else {
        w->thread = add_thread(w, pid, tid, w->name);
        if (w->own_thread == 0 && pid == w->pid)
            w->own_thread = w->thread;
        if (pid == w->pid && w->own_tid_count < SND_OWN_TIDS)
            w->own_tids[w->own_tid_count++] = tid;
    }
    snd_trace_lane(w->out, w->thread);
    w->in_lane = true;
    w->sequence = 0;
}

static void end_lane(struct snd_lane_writer *w)
{
    close_up_to(w, INT64_MAX - 1);
    w->count = w->begins = w->crossing = 0; /* the rest has no end in the file: readers say so */
    w->holds = w->in_lane = false;
    w->name = 0;
}

void snd_lanes_take(void *writer, const struct snd_item *item)
{
    struct snd_lane_writer *w = writer;

    if (item->lane != w->lane) {
        end_lane(w);
        w->lane = item->lane;
    }
    if (item->kind == SND_ITEM_THREAD_NAME) {
        if (w->name == 0)
            w->name = (uint32_t)item->a;
        return;
    }
    if (!w->in_lane)
        begin_lane(w);
    if (item->start > w->last)
        w->last = item->start;
    if (item->kind == SND_ITEM_ATTR) {
        put_held(w);
        put_attr(w, (uint8_t)item->a, item->b);
        return;
    }
    if (item->kind == SND_ITEM_WORK) {
        put_work(w, item);
        return;
    }
    close_up_to(w, item->start);
    switch (item->kind) {
    case SND_ITEM_CALL:
    case SND_ITEM_SPAN:
    case SND_ITEM_API:
        open_range(w, item);
        return;
    case SND_ITEM_FUNCTION:
        open_function(w, item);
        return;
    case SND_ITEM_BEGIN:
    case SND_ITEM_ASYNC_BEGIN:
        open_begin(w, item);
        return;
    case SND_ITEM_END:
        close_begin(w, item);
        return;
    case SND_ITEM_ASYNC_END:
        close_async(w, item);
        return;
    default:
        put_moment(w, item);
        return;
    }
}

void snd_lanes_end(struct snd_lane_writer *writer)
{
    end_lane(writer);
}

void snd_lanes_release(struct snd_lane_writer *writer)
{
    free(writer->open);
}
