/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/mark.c - the marks that are not inlined, and the slow half of those that are.
 */
#include <string.h>

#include "format/fields.h"
#include "format/references.h"
#include "record/tables/intern.h"
#include "record/given.h"
#include "record/thread/lane.h"
#include "record/tables/naming.h"

/* ----------------------------------------------------------------- writing */

_Static_assert(SONDE_KIND_FUNCTION_ == SND_EV_FUNCTION && SND_FUNCTION_RESUMED == 1,
               "sonde_lane_function() writes what docs/FORMAT.md says");

/*
 * Only between enter and leave, so that a signal handler's event is never younger than the one
 * written after it.
 */
static uint64_t stamp(enum snd_event_kind kind)
{
    return snd_lane_time() << 8 | (uint64_t)kind;
}

/* Writes an event with the time in word 0. */
static void put_now(enum snd_event_kind kind, uint64_t *words, size_t count, enum snd_intent intent)
{
    if (snd_lane_enter(count, intent) == SND_ENTRY_READY) {
        words[0] = stamp(kind);
        snd_lane_write(&sonde_lane_, words, count);
        snd_lane_leave();
    }
}

/* ------------------------------------------------------------------ ranges */

void sonde_begin_slow_(struct sonde_site *site, const char *name)
{
    uint64_t bound = __atomic_load_n(&site->bound, __ATOMIC_ACQUIRE);
    uint32_t id = (uint32_t)bound;

    if (bound >> 32 == sonde_epoch()) {
        if (snd_lane_enter(2, SND_INTENT_BEGIN) != SND_ENTRY_READY)
            return;
        if (bound >> 32 != sonde_lane_.epoch) { /* another recording has begun meanwhile */
            snd_lane_leave();
            sonde_begin_slow_(site, name);
            return;
        }
    } else {
        if (snd_lane_enter_named(2, SND_INTENT_BEGIN, name, &id) != SND_ENTRY_READY)
            return;
        bound = (uint64_t)sonde_lane_.epoch << 32 | id;
        if (!(id & SND_OWN_NAME)) /* after the name's record */
            __atomic_store_n(&site->bound, bound, __ATOMIC_RELEASE);
    }
    sonde_begin_at_(&sonde_lane_, id);
    snd_lane_leave();
}

/* Enters for an event that has an id of the tables or of a late record; `lost` stands for it. */
static bool enter_with(size_t words, enum snd_intent intent, uint32_t *id, uint32_t lost)
{
    if (snd_lane_enter(words + snd_late_room(*id), intent) != SND_ENTRY_READY)
        return false;
    if (!snd_late_define(*id))
        *id = lost;
    return true;
}

void sonde_begin_id_slow_(uint32_t name, uint32_t shapes)
{
    if (enter_with(2 + snd_late_room(shapes), SND_INTENT_BEGIN, &name, SND_NAME_LOST)) {
        if (!snd_late_define(shapes))
            shapes = 0;
        sonde_begin_at_(&sonde_lane_, (uint64_t)shapes << 32 | name);
        snd_lane_leave();
    }
}

uint64_t sonde_begin_api_slow_(uint32_t name, uint64_t call)
{
    if (!enter_with(3, SND_INTENT_BEGIN, &name, SND_NAME_LOST))
        return 0;
    uint64_t began = sonde_begin_api_at_(&sonde_lane_, name, call);
    snd_lane_leave();
    return began;
}

/* Writes the sequence number before each call; the probe's own, faster way writes it once for a row of calls. */
void sonde_begin_call(uint32_t call, uint64_t sequence)
{
    const uint64_t number = sequence << 16 | SND_ATTR_CALLS_SEQUENCE << 8 | SND_EV_ATTR;

    if (!enter_with(3, SND_INTENT_BEGIN, &call, 0))
        return;
    snd_lane_write(&sonde_lane_, &number, 1);
    if (call != 0)
        sonde_lane_begin_call(&sonde_lane_, call, false);
    else
        sonde_begin_at_(&sonde_lane_, SND_NAME_LOST);
    snd_lane_leave();
}

void sonde_begin_text(const char *name)
{
    uint32_t id;

    if (snd_lane_enter_named(2, SND_INTENT_BEGIN, name, &id) == SND_ENTRY_READY) {
        sonde_begin_at_(&sonde_lane_, id);
        snd_lane_leave();
    }
}

void sonde_end_slow_(uint64_t now)
{
    if (snd_lane_enter(1, SND_INTENT_END) == SND_ENTRY_READY) {
        sonde_lane_end(&sonde_lane_, now ? now : snd_lane_time());
        snd_lane_leave();
    }
}

/*
 * Closes `count` ranges of the lane that were left by a jump: one gap, in which no event was lost.
 * Those that were dropped when they began are dropped once more, one by one.
 */
static void close_left(uint32_t count)
{
    while (count > 0) {
        enum snd_entry entry = snd_lane_enter(2, SND_INTENT_END);
        if (entry == SND_ENTRY_OFF)
            return;
        if (entry == SND_ENTRY_READY) {
            const uint64_t words[2] = { stamp(SND_EV_GAP), (uint64_t)count << 32 };
            snd_lane_write(&sonde_lane_, words, 2);
            sonde_lane_.depth -= count;
            snd_lane_leave();
            return;
        }
        count--;
    }
}

void sonde_scope_end_slow_(struct sonde_scope_ scope)
{
    struct sonde_lane *lane = &sonde_lane_;
    int32_t            above = (int32_t)(lane->depth - scope.depth);

    if (lane->busy) { /* in a signal handler inside the recorder: refused, and counted */
        sonde_end_slow_(0);
        return;
    }
    /*
     * A recording or a pause began while it was open and has closed it; or it was never recorded.
     */
    if (scope.epoch != sonde_epoch() || scope.epoch != lane->epoch)
        return;
    if (above >= (int32_t)SONDE_DEPTH_BREAK / 2 || above <= -(int32_t)SONDE_DEPTH_BREAK / 2)
        above = 0; /* ranges ended out of order meanwhile: which are open is not known here */
    if (above < 0)
        return; /* its range has been ended already */
    close_left((uint32_t)above);
    sonde_end_slow_(0);
}

/* From here on the depth is not valid for the scopes that are open. */
static void break_depth(void)
{
    if (!sonde_lane_.busy)
        sonde_lane_.depth += SONDE_DEPTH_BREAK;
}

void sonde_end_at(uint32_t inner)
{
    if (inner == 0) {
        sonde_end();
        return;
    }
    if (snd_lane_enter(2, SND_INTENT_END) == SND_ENTRY_READY) {
        const uint64_t words[2] = { stamp(SND_EV_END_AT), inner };
        snd_lane_write(&sonde_lane_, words, 2);
        sonde_lane_.depth--;
        snd_lane_leave();
    }
    break_depth();
}

void sonde_end_key(uint64_t key)
{
    uint64_t words[2] = { 0, key };

    put_now(SND_EV_END_KEY, words, 2, SND_INTENT_OTHER);
}

void sonde_attr(enum sonde_attr key, uint64_t value)
{
    const uint64_t small = value << 16 | (uint64_t)key << 8 | SND_EV_ATTR;
    const uint64_t large[2] = { (uint64_t)key << 8 | SND_EV_ATTR64, value };
    bool           is_small = value <= SND_ATTR_SMALL_MAX;
    uint32_t       id = snd_attr_reference((uint8_t)key) ? (uint32_t)value : 0;

    if (key == SONDE_ATTR_KEY) /* another thread may end the range */
        break_depth();
    if (!enter_with(2, SND_INTENT_OTHER, &id, UINT32_MAX))
        return;
    if (id != UINT32_MAX)
        snd_lane_write(&sonde_lane_, is_small ? &small : large, is_small ? 1 : 2);
    snd_lane_leave();
}

void sonde_range_shapes(const struct sonde_tensor *tensors, size_t count)
{
    uint32_t id = sonde_intern_shapes(tensors, count);

    if (id != 0)
        sonde_attr(SONDE_ATTR_SHAPES, id);
}

void sonde_flops(double count)
{
    if (count >= 0 && count < 18446744073709549568.0)
        sonde_attr(SONDE_ATTR_FLOPS, (uint64_t)(count + 0.5));
}

/* -------------------------------------------------------- events of any kind */

/* Kinds that change what other events mean, or how deep the lane is: each has a call of its own. */
static const bool is_own[256] = {
    [SND_EV_BEGIN] = true,  [SND_EV_SPAN] = true,         [SND_EV_CALL] = true,
    [SND_EV_API] = true,    [SND_EV_END] = true,          [SND_EV_GAP] = true,
    [SND_EV_END_AT] = true, [SND_EV_THREAD] = true,       [SND_EV_RECORD] = true,
    [SND_EV_NAME] = true,   [SND_EV_RECORD_SHORT] = true,
};
static const bool is_timed[256] = {
#define SND_EVENT(name, code, words, timed, summary) [SND_KIND(code, words)] = timed,
#include "format/events.def"
};

static size_t find_late_room(uint8_t kind, const uint64_t *words)
{
    size_t room = 0;

    for (size_t i = 0; i < SND_EVENT_FIELDS; i++)
        if (snd_event_fields[i].kind == kind && snd_event_fields[i].form < SND_FORM_U32)
            room += snd_late_room((uint32_t)snd_event_field_read(&snd_event_fields[i], words));
    return room;
}

static void define_late(uint8_t kind, uint64_t *words)
{
    for (size_t i = 0; i < SND_EVENT_FIELDS; i++) {
        const struct snd_event_field *field = &snd_event_fields[i];
        if (field->kind == kind && field->form < SND_FORM_U32 &&
            !snd_late_define((uint32_t)snd_event_field_read(field, words)))
            snd_event_field_replace(field, words, 0);
    }
}

bool sonde_put(uint8_t kind, const uint64_t *fields, size_t count)
{
    uint64_t words[SND_EVENT_WORDS_MAX] = { 0 };

    if (!is_timed[kind] || is_own[kind] || count + 1 != SND_KIND_WORDS(kind))
        return false;
    if (sonde_epoch() == 0)
        return true;
    memcpy(&words[1], fields, count * sizeof words[0]);
    if (snd_lane_enter(count + 1 + find_late_room(kind, words), SND_INTENT_OTHER) ==
        SND_ENTRY_READY) {
        define_late(kind, words);
        words[0] = stamp(kind);
        snd_lane_write(&sonde_lane_, words, count + 1);
        snd_lane_leave();
    }
    return true;
}

/* ------------------------------------------- memory, counters, marks, links */

static void put_memory(enum snd_event_kind kind, struct sonde_device device, const void *address,
                       uint64_t size)
{
    if (sonde_epoch() == 0)
        return;
    uint64_t words[4] = { 0, SND_DEVICE(device.type, device.index), (uint64_t)(uintptr_t)address,
                          size };
    put_now(kind, words, 4, SND_INTENT_OTHER);
}

void sonde_alloc(struct sonde_device device, const void *address, uint64_t size)
{
    put_memory(SND_EV_ALLOC, device, address, size);
}

void sonde_free(struct sonde_device device, const void *address, uint64_t size)
{
    put_memory(SND_EV_FREE, device, address, size);
}

void sonde_counter(const char *name, double value)
{
    uint32_t id;
    uint64_t words[3];

    if (snd_lane_enter_named(3, SND_INTENT_OTHER, name, &id) != SND_ENTRY_READY)
        return;
    words[0] = stamp(SND_EV_COUNTER);
    words[1] = id;
    memcpy(&words[2], &value, sizeof value);
    snd_lane_write(&sonde_lane_, words, 3);
    snd_lane_leave();
}

void sonde_mark(const char *name)
{
    uint32_t id;

    if (snd_lane_enter_named(2, SND_INTENT_OTHER, name, &id) != SND_ENTRY_READY)
        return;
    const uint64_t words[2] = { stamp(SND_EV_MARK), id };
    snd_lane_write(&sonde_lane_, words, 2);
    snd_lane_leave();
}

void sonde_link(uint32_t kind, bool arrives, uint64_t id)
{
    if (sonde_epoch() == 0)
        return;
    uint64_t words[3] = { 0, (uint64_t)arrives << 32 | kind, id };
    put_now(SND_EV_LINK, words, 3, SND_INTENT_OTHER);
}

void sonde_sample(const struct sonde_sample *sample)
{
    struct sonde_sample room;

    if (sonde_epoch() == 0 || !(sample = SND_GIVEN(sample, &room)))
        return;
    uint32_t samples = sample->samples < SND_SAMPLE_COUNT_MAX ? sample->samples
                                                              : SND_SAMPLE_COUNT_MAX;
    uint64_t left = sample->covered_ns;
    uint32_t stack = sample->stack;
    /* A duration that does not fit the field takes several events, each of which counts as one sample at least. */
    uint64_t later = left > 0 ? (left - 1) / UINT32_MAX : 0;
    samples = samples > later ? samples - (uint32_t)later : 1;
    do {
        uint64_t covered = left < UINT32_MAX ? left : UINT32_MAX;
        if (!enter_with(3, SND_INTENT_OTHER, &stack, 0))
            return;
        uint64_t at = sample->at ? sample->at : snd_lane_time();
        uint64_t words[3] = {
            at << 8 | SND_EV_SAMPLE,
            (uint64_t)(sample->state & 0xff) << 32 | (uint64_t)samples << 40 | stack,
            covered << 32 | sample->thread,
        };
        snd_lane_write(&sonde_lane_, words, 3);
        snd_lane_leave();
        left -= covered;
        samples = 1;
    } while (left > 0);
}

void sonde_sample_run(const struct sonde_sample_run *run)
{
    struct sonde_sample_run room;

    if (sonde_epoch() == 0 || !(run = SND_GIVEN(run, &room)))
        return;
    uint64_t samples = run->samples < SND_SAMPLE_COUNT_MAX ? run->samples : SND_SAMPLE_COUNT_MAX;
    uint64_t from = run->begin < run->end ? run->begin : run->end;
    uint32_t stack = run->stack;
    /* A duration that does not fit the field takes several events; samples are counted once. */
    do {
        uint64_t ticks = run->end - from < UINT32_MAX ? run->end - from : UINT32_MAX;
        if (!enter_with(5, SND_INTENT_OTHER, &stack, 0))
            return;
        uint64_t words[5] = {
            stamp(SND_EV_SAMPLE_RUN),
            (uint64_t)(run->state & 0xff) << 32 | samples << 40 | stack,
            ticks << 32 | run->thread,
            0,
            0,
        };
        uint64_t now = words[0] >> 8;
        words[3] = (now - from - ticks) & SND_TIME_MASK;
        words[4] = (now - run->read) & SND_TIME_MASK;
        snd_lane_write(&sonde_lane_, words, 5);
        snd_lane_leave();
        from += ticks;
        samples = 0;
    } while (from < run->end);
}

void sonde_function_call(const struct sonde_function_call *call)
{
    struct sonde_function_call room, it;

    if (sonde_epoch() == 0 || !(call = SND_GIVEN(call, &room)))
        return;
    it = *call;
    if (enter_with(4, SND_INTENT_OTHER, &it.frame, 0)) {
        sonde_lane_function(&sonde_lane_, &it);
        snd_lane_leave();
    }
}

/* Stamped with when it began, which was some time ago: readers do not expect these in order. */
void sonde_device_run(const struct sonde_device_run *run)
{
    struct sonde_device_run room;

    if (sonde_epoch() == 0 || !(run = SND_GIVEN(run, &room)))
        return;
    uint32_t work = run->work, queue = run->queue;
    bool     is_short = run->node == 0 && run->duration <= UINT32_MAX;
    uint8_t  kind = is_short         ? SND_EV_DEVICE_SHORT
                    : run->node != 0 ? SND_EV_DEVICE_NODE
                                     : SND_EV_DEVICE;
    size_t   count = SND_KIND_WORDS(kind);

    if (!enter_with(count + snd_late_room(queue), SND_INTENT_OTHER, &work, 0))
        return;
    if (!snd_late_define(queue))
        queue = 0;
    const uint64_t small[3] = { SND_WORD0(kind, run->start), SND_PAIR(work, run->duration),
                                SND_PAIR(run->correlation, queue) };
    const uint64_t whole[5] = { small[0], SND_PAIR(work, queue), run->duration, run->correlation,
                                run->node };
    snd_lane_write(&sonde_lane_, is_short ? small : whole, count);
    snd_lane_leave();
}

void sonde_link_from(uint64_t id)
{
    sonde_link(SND_LINK_FLOW, false, id);
}

void sonde_link_to(uint64_t id)
{
    sonde_link(SND_LINK_FLOW, true, id);
}
