/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges as slices of Perfetto's tracks.
 *
 * Slices of a track must nest. A range that ends while others inside it go on, or that waits for others
 * (asynchronous), lies on a track beside its thread's, on the first that is free.
 */
#include <stdlib.h>

#include "base/data/sort.h"
#include "export/timeline/shown_attributes.h"
#include "export/perfetto/perfetto.h"
#include "export/timeline/torch_tensors.h"
#include "model/torch_stacks.h"

#define SLOTS 64u /* tracks beside a thread; further ranges share the last */

static bool has(const struct snd_span *span, unsigned key)
{
    return span->attr_mask >> key & 1;
}

static bool goes_on(const struct snd_perfetto *p)
{
    return !p->failed && !p->text.failed && !p->out->failed;
}

/* ----------------------------------------------------------- the first walk */

static void add_end(struct snd_perfetto *p, uint64_t serial, uint64_t flow, bool arrives)
{
    if (!snd_grow(&p->ends, &p->end_room, p->end_count, sizeof *p->ends))
        p->failed = true;
    else
        p->ends[p->end_count++] = (struct snd_perfetto_end){ serial, flow, arrives };
}

static void put_beside(struct snd_perfetto *p, uint64_t serial)
{
    uint64_t word = serial / 64;

    while (p->beside_count <= word && !p->failed) {
        if (!snd_grow(&p->beside, &p->beside_room, p->beside_count, sizeof *p->beside))
            p->failed = true;
        else
            p->beside[p->beside_count++] = 0;
    }
    if (!p->failed)
        p->beside[word] |= (uint64_t)1 << serial % 64;
}

bool snd_perfetto_find_end(const struct snd_span *span, void *user)
{
    struct snd_perfetto *p = user;
    struct snd_arrow_end forward;

    if (span->is_async || span->crosses)
        put_beside(p, span->serial);
    if (p->is_torch[span->process] && snd_arrows_follow(&p->arrows, span, &forward)) {
        uint64_t flow = (uint64_t)1 << 62 | forward.serial;
        add_end(p, forward.serial, flow, false);
        add_end(p, span->serial, flow, true);
    }
    if (has(span, SND_ATTR_API)) {
        uint64_t api = span->attrs[SND_ATTR_API];
        if (SND_API_CORRELATION(api) != 0 && sonde_call_asks(snd_api_function(api)))
            add_end(p, span->serial, snd_perfetto_launch(span->process, SND_API_CORRELATION(api)),
                    false);
    }
    return goes_on(p);
}

static int compare_ends(const void *x, const void *y)
{
    const struct snd_perfetto_end *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->serial, b->serial), SND_RISING(a->flow, b->flow));
}

void snd_perfetto_sort_ends(struct snd_perfetto *p)
{
    snd_sort(p->ends, p->end_count, sizeof *p->ends, compare_ends);
}

/* ------------------------------------------------------------------- begins */

static bool is_beside(const struct snd_perfetto *p, uint64_t serial)
{
    return serial / 64 < p->beside_count && p->beside[serial / 64] >> serial % 64 & 1;
}

static uint64_t take_slot(struct snd_perfetto *p, uint32_t thread)
{
    uint32_t slot = 0;

    while (slot + 1 < SLOTS && p->slots[thread] >> slot & 1)
        slot++;
    p->slots[thread] |= (uint64_t)1 << slot;
    uint64_t track = snd_perfetto_track(SND_TRACK_BESIDE, thread, slot);
    if (!(p->known_slots[thread] >> slot & 1)) {
        p->known_slots[thread] |= (uint64_t)1 << slot;
        snd_perfetto_describe(p, track, snd_perfetto_track(SND_TRACK_THREAD, thread, 0),
                              (struct sonde_text){ "overlapping", 11 }, false);
    }
    return track;
}

/* Begins come in the order of their serials. */
static void put_arrows(struct snd_perfetto *p, uint64_t serial)
{
    while (p->next_end < p->end_count && p->ends[p->next_end].serial < serial)
        p->next_end++;
    for (; p->next_end < p->end_count && p->ends[p->next_end].serial == serial; p->next_end++)
        snd_pb_fixed64(&p->packet,
                       p->ends[p->next_end].arrives ? SND_EVENT_LAST_FLOW : SND_EVENT_FLOW,
                       p->ends[p->next_end].flow);
}

/* `number` keeps the track for the end. */
bool snd_perfetto_on_begin(struct snd_span *span, void *user)
{
    struct snd_perfetto *p = user;

    span->number = is_beside(p, span->serial)
                       ? take_slot(p, span->thread)
                       : snd_perfetto_track(SND_TRACK_THREAD, span->thread, 0);
    struct snd_perfetto_opened opened = snd_perfetto_named(p, span->start_ns, SND_SLICE_BEGIN,
                                                           span->number, span->name_number);
    put_arrows(p, span->serial);
    snd_perfetto_put_event(p, opened);
    return goes_on(p);
}

/* --------------------------------------------------------------------- ends */

#define OF_SHAPES SND_SPAN_ATTRS /* after the attributes */

/* An annotation of what has an id, which many ranges share. */
static void note_id(struct snd_perfetto *p, unsigned what, uint32_t process, uint32_t id)
{
    const char *title = what == OF_SHAPES ? "Input Dims" : snd_attrs_shown[what].title;

    snd_buf_clear(&p->text);
    if (what == OF_SHAPES) {
        if (!snd_tensors_text(p->trace, process, id, &p->text))
            return;
    } else if (snd_attrs_shown[what].form == SND_SHOWN_STACK) {
        if (snd_stack_text(p->trace, process, id, SIZE_MAX, ';', &p->text) == 0)
            return;
    } else {
        snd_perfetto_note_text(p, *title ? title : "Keyword arguments",
                               sonde_trace_string(p->trace, process, id));
        return;
    }
    snd_perfetto_note_text(p, title, (struct sonde_text){ p->text.bytes, p->text.length });
}

static void note_again(struct snd_perfetto *p, unsigned what, uint32_t process, uint32_t id)
{
    struct snd_rendered_key  key = { { what, process, id } };
    const struct sonde_text *kept = snd_rendered_find(&p->notes, &key);
    size_t                   from = p->packet.length;

    if (kept) {
        snd_buf_put(&p->packet, kept->bytes, kept->length);
        return;
    }
    note_id(p, what, process, id);
    if (!p->packet.failed && !p->text.failed)
        snd_rendered_keep(&p->notes, &key, p->packet.bytes + from, p->packet.length - from);
}

static void note_attr(struct snd_perfetto *p, const struct snd_span *span, unsigned key)
{
    if (snd_attrs_shown[key].form == SND_SHOWN_COUNT)
        snd_perfetto_note_uint(p, snd_attrs_shown[key].title, span->attrs[key]);
    else
        note_again(p, key, span->process, (uint32_t)span->attrs[key]);
}

static void note_range(struct snd_perfetto *p, const struct snd_span *span)
{
    for (uint32_t keys = span->attr_mask & p->attrs_shown; keys != 0; keys &= keys - 1)
        note_attr(p, span, (unsigned)__builtin_ctz(keys));
    if (span->shapes != 0)
        note_again(p, OF_SHAPES, span->process, span->shapes);
    if (span->unfinished)
        snd_perfetto_note_true(p, "Unfinished");
    if (span->is_async)
        snd_perfetto_note_true(p, "Async");
}

bool snd_perfetto_on_end(const struct snd_span *span, void *user)
{
    struct snd_perfetto       *p = user;
    struct snd_perfetto_opened opened = snd_perfetto_event(p, span->end_ns, SND_SLICE_END,
                                                           span->number);

    note_range(p, span);
    snd_perfetto_put_event(p, opened);
    if (is_beside(p, span->serial))
        p->slots[span->thread] &= ~((uint64_t)1 << (span->number & (SLOTS - 1)));
    return goes_on(p);
}
