/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges in the Chrome trace format, each with its attributes, and the arrows that torch draws from
 * forward operators to backward ones.
 */
#include "base/data/sort.h"
#include "export/chrome/chrome.h"

#include <inttypes.h>
#include <stdlib.h>

#include "export/timeline/shown_attributes.h"
#include "export/timeline/torch_tensors.h"

#define WAITING_MAX 65536 /* waiting ranges of a thread; only a crafted trace has more */

static bool has(const struct snd_span *span, unsigned key)
{
    return span->attr_mask >> key & 1;
}

/* -------------------------------------------------------------- attributes */

/* The members of a JSON object, as members of the one that is open. */
static void put_members(struct snd_chrome *chrome, struct sonde_text object)
{
    if (object.length <= 2 || object.bytes[0] != '{' || object.bytes[object.length - 1] != '}' ||
        !snd_json_is_value(object.bytes, object.length))
        return;
    snd_json_raw(&chrome->json, NULL, object.bytes + 1, object.length - 2);
}

/* An attribute that is an id. */
static void put_id(struct snd_chrome *chrome, uint32_t process, unsigned key, uint32_t id)
{
    struct sonde_text text = sonde_trace_string(chrome->trace, process, id);

    if (snd_attrs_shown[key].form == SND_SHOWN_STACK)
        snd_chrome_stack(chrome, process, id);
    else if (snd_attrs_shown[key].form == SND_SHOWN_MEMBERS)
        put_members(chrome, text);
    else
        snd_json_string(&chrome->json, snd_attrs_shown[key].title, text.bytes, text.length);
}

static void put_attr(struct snd_chrome *chrome, const struct snd_span *span, unsigned key)
{
    struct snd_rendered_key of = { { SND_CHROME_ATTR, key, span->process,
                                     (uint32_t)span->attrs[key] } };

    if (snd_attrs_shown[key].form == SND_SHOWN_COUNT) {
        snd_json_uint(&chrome->json, snd_attrs_shown[key].title, span->attrs[key]);
    } else if (!snd_rendered_members(&chrome->rendered, &of, &chrome->json)) {
        struct snd_out_mark mark = snd_out_mark(chrome->out);
        put_id(chrome, span->process, key, (uint32_t)span->attrs[key]);
        snd_rendered_keep_out(&chrome->rendered, &of, chrome->out, mark);
    }
}

/* ------------------------------------------------------------------ a range */

/* "aten::add.Tensor", where overloads are recorded. */
static struct sonde_text span_name(struct snd_chrome *chrome, const struct snd_span *span)
{
    struct sonde_text name = span->name;

    if (has(span, SND_ATTR_FRAME))
        return snd_chrome_function(chrome, span->process, (uint32_t)span->attrs[SND_ATTR_FRAME]);
    if (!chrome->is_torch[span->process] || !has(span, SND_ATTR_OVERLOAD))
        return name;
    struct sonde_text overload = sonde_trace_string(chrome->trace, span->process,
                                                    (uint32_t)span->attrs[SND_ATTR_OVERLOAD]);
    snd_buf_clear(&chrome->text);
    snd_buf_put(&chrome->text, name.bytes, name.length);
    snd_buf_text(&chrome->text, ".");
    snd_buf_put(&chrome->text, overload.bytes, overload.length);
    return (struct sonde_text){ snd_buf_string(&chrome->text), chrome->text.length };
}

/* Members that torch writes for each of its ranges besides their attributes. */
static void put_torch_args(struct snd_chrome *chrome, const struct snd_span *span)
{
    snd_json_uint(&chrome->json, "Record function id",
                  has(span, SND_ATTR_RECORD_FUNCTION) ? span->attrs[SND_ATTR_RECORD_FUNCTION] : 0);
    if (has(span, SND_ATTR_SEQUENCE) && !has(span, SND_ATTR_FWD_THREAD))
        snd_json_uint(&chrome->json, "Fwd thread id", 0);
    snd_json_uint(&chrome->json, "Ev Idx", span->number);
}

/* The attributes of the range that are shown, as bits. */
static uint32_t keys_shown(const struct snd_chrome *chrome, const struct snd_span *span)
{
    uint32_t keys = span->attr_mask & chrome->attrs_shown;

    if (!chrome->is_torch[span->process])
        return keys;
    if (!has(span, SND_ATTR_SEQUENCE))
        keys &= ~(1u << SND_ATTR_FWD_THREAD);
    return keys & ~(1u << SND_ATTR_OVERLOAD); /* it is in the name */
}

static const char *category_of(const struct snd_span *span)
{
    if (has(span, SND_ATTR_FRAME))
        return "python_function";
    if (has(span, SND_ATTR_SCOPE) && span->attrs[SND_ATTR_SCOPE] == SONDE_SCOPE_USER + 1)
        return "user_annotation";
    return "cpu_op";
}

static uint32_t id_of(const struct snd_span *span, unsigned key)
{
    return has(span, key) ? (uint32_t)span->attrs[key] : 0;
}

static void put_inputs(struct snd_chrome *chrome, const struct snd_span *span)
{
    struct snd_call_ids     ids = { .shapes = span->shapes,
                                    .strides = id_of(span, SND_ATTR_STRIDES),
                                    .arguments = id_of(span, SND_ATTR_ARGUMENTS),
                                    .all = chrome->is_torch[span->process] };
    struct snd_rendered_key key = { { SND_CHROME_INPUTS, (uint64_t)ids.shapes << 32 | ids.strides,
                                      ids.arguments, span->process } };

    if (!(ids.shapes | ids.strides | ids.arguments) ||
        snd_rendered_members(&chrome->rendered, &key, &chrome->json))
        return;
    struct snd_out_mark mark = snd_out_mark(chrome->out);
    snd_tensors_json(&chrome->json, chrome->trace, span->process, &ids, &chrome->text);
    snd_rendered_keep_out(&chrome->rendered, &key, chrome->out, mark);
}

static void put_span(struct snd_chrome *chrome, const struct snd_span *span)
{
    if (has(span, SND_ATTR_API)) {
        snd_chrome_put_call(chrome, span);
        return;
    }
    const char *category = category_of(span);
    if (snd_chrome_hides(chrome, category))
        return;
    snd_chrome_open(chrome, "X", category, span_name(chrome, span), span->process, span->thread);
    snd_json_us(&chrome->json, "ts", span->start_ns);
    snd_json_us(&chrome->json, "dur", snd_sub(span->end_ns, span->start_ns));
    snd_json_object(&chrome->json, "args");
    snd_json_uint(&chrome->json, "External id", span->serial);
    for (uint32_t keys = keys_shown(chrome, span); keys != 0; keys &= keys - 1)
        put_attr(chrome, span, (unsigned)__builtin_ctz(keys));
    if (chrome->is_torch[span->process] && !has(span, SND_ATTR_FRAME))
        put_torch_args(chrome, span);
    put_inputs(chrome, span);
    if (span->unfinished)
        snd_json_bool(&chrome->json, "Unfinished", true);
    if (span->is_async)
        snd_json_bool(&chrome->json, "Async", true);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

/* -------------------------------------------------- from forward to backward */

static void put_arrow(struct snd_chrome *chrome, bool arrives, uint32_t process, uint32_t thread,
                      int64_t ns)
{
    snd_chrome_open(chrome, arrives ? "f" : "s", "fwdbwd", snd_chrome_text("fwdbwd"), process,
                    thread);
    snd_json_us(&chrome->json, "ts", ns);
    snd_json_uint(&chrome->json, "id", chrome->arrow_count);
    if (arrives)
        snd_json_text(&chrome->json, "bp", "e");
    snd_json_end(&chrome->json);
}

static void follow_sequence(struct snd_chrome *chrome, const struct snd_span *span)
{
    struct snd_arrow_end forward;

    if (!snd_arrows_follow(&chrome->arrows, span, &forward) || snd_chrome_hides(chrome, "cpu_op"))
        return;
    chrome->arrow_count++;
    put_arrow(chrome, false, span->process, forward.thread, forward.start_ns);
    put_arrow(chrome, true, span->process, span->thread, span->start_ns);
}

/* --------------------------------------------------- in the order of begins */

bool snd_chrome_on_begin(struct snd_span *span, void *user)
{
    struct snd_chrome *chrome = user;

    span->mark = chrome->waiting[span->thread].count;
    span->number = chrome->numbers++;
    return true;
}

static bool wait_for_parent(struct snd_chrome_waiting *waiting, const struct snd_span *span)
{
    if (waiting->count == waiting->capacity) {
        uint32_t capacity = waiting->capacity ? waiting->capacity * 2 : 16;
        void    *items = capacity > WAITING_MAX
                             ? NULL
                             : realloc(waiting->items, capacity * sizeof *waiting->items);
        if (!items)
            return false;
        waiting->items = items;
        waiting->capacity = capacity;
    }
    struct snd_chrome_ended *ended = &waiting->items[waiting->count++];
    ended->span = *span;
    memcpy(ended->attrs, span->attrs, sizeof ended->attrs);
    return true;
}

static int compare_serials(const void *left, const void *right)
{
    const struct snd_chrome_ended *x = left, *y = right;

    return SND_RISING(x->span.serial, y->span.serial);
}

bool snd_chrome_on_end(const struct snd_span *span, void *user)
{
    struct snd_chrome         *chrome = user;
    struct snd_chrome_waiting *waiting = &chrome->waiting[span->thread];

    if (chrome->is_torch[span->process])
        follow_sequence(chrome, span);
    if (span->starts_with_parent && wait_for_parent(waiting, span))
        return true;
    put_span(chrome, span);
    /* They came in the order of their ends. */
    if (span->mark < waiting->count)
        snd_sort(waiting->items + span->mark, waiting->count - span->mark, sizeof *waiting->items,
                 compare_serials);
    for (uint32_t i = span->mark; i < waiting->count; i++) {
        waiting->items[i].span.attrs = waiting->items[i].attrs; /* they were moved */
        put_span(chrome, &waiting->items[i].span);
    }
    if (span->mark < waiting->count)
        waiting->count = span->mark;
    return !chrome->text.failed && !chrome->out->failed;
}

/* -------------------------------------------------------------------- life */

bool snd_chrome_ranges_init(struct snd_chrome *chrome)
{
    uint32_t threads = sonde_trace_thread_count(chrome->trace);

    chrome->attrs_shown = snd_attrs_mask();
    chrome->waiting = calloc((size_t)threads + 1, sizeof *chrome->waiting);
    return chrome->waiting && snd_arrows_init(&chrome->arrows, chrome->trace);
}

void snd_chrome_ranges_release(struct snd_chrome *chrome)
{
    uint32_t threads = sonde_trace_thread_count(chrome->trace);

    for (uint32_t i = 0; chrome->waiting && i < threads; i++)
        free(chrome->waiting[i].items);
    free(chrome->waiting);
    snd_arrows_release(&chrome->arrows);
}
