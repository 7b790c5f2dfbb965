/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/mark.c - the marks that are not inlined, and the slow half of those that are.
 */
#include <string.h>

#include "record/file.h"
#include "record/intern.h"
#include "record/thread.h"

#define SHAPES_MAX 4096 /* bytes of one tensor list; what does not fit is left off, and counted */

/* ----------------------------------------------------------------- writing */

_Static_assert(SONDE_KIND_FUNCTION_ == SND_EV_FUNCTION && SND_FUNCTION_RESUMED == 1,
               "sonde_function_at_() writes what docs/FORMAT.md says");

static void put(const uint64_t *words, size_t count, enum snd_intent intent)
{
    if (snd_thread_enter(count, intent) == SND_ENTRY_READY) {
        snd_lane_write(&sonde_lane_, words, count);
        snd_thread_leave();
    }
}

/* Between enter and leave only: what a signal handler marks before is older, never younger. */
static uint64_t stamp(enum snd_event_kind kind)
{
    return snd_thread_time() << 8 | (uint64_t)kind;
}

/* The same with the time in word 0. */
static void put_now(enum snd_event_kind kind, uint64_t *words, size_t count, enum snd_intent intent)
{
    if (snd_thread_enter(count, intent) == SND_ENTRY_READY) {
        words[0] = stamp(kind);
        snd_lane_write(&sonde_lane_, words, count);
        snd_thread_leave();
    }
}

/* --------------------------------------------------------------- interning */

/*
 * The id of a payload: from the thread's own cache, else from the tables under the lock.
 * Between enter and leave only.
 */
static uint32_t intern(enum snd_record_type type, const void *payload, size_t size)
{
    struct snd_thread *thread = snd_thread_self();
    struct snd_hash    hash = snd_hash_bytes(payload, size, (uint64_t)type);
    size_t             at = hash.low % SND_CACHE_SLOTS;
    uint32_t           epoch = sonde_lane_.epoch;

    if (thread->cache[at].epoch == epoch && thread->cache[at].hash.low == hash.low &&
        thread->cache[at].hash.high == hash.high)
        return thread->cache[at].id;
    snd_lock();
    uint32_t id = 0;
    bool     on = snd_rec.phase == SND_OPEN && thread->serial == snd_rec.serial;
    if (on)
        id = snd_table_intern(type, hash, payload, size);
    snd_unlock();
    if (on) {
        thread->cache[at].epoch = epoch;
        thread->cache[at].hash = hash;
        thread->cache[at].id = id;
    }
    return id;
}

static uint32_t intern_text(const char *text, size_t length)
{
    char payload[4 + 1024], *large = payload;

    if (length > SND_STRING_MAX) {
        length = SND_STRING_MAX;
        snd_count(&snd_header->cut_names, 1);
    }
    if (length > 1024) { /* rare, so a thread gets its buffer when it first needs one */
        struct snd_thread *thread = snd_thread_self();
        if (!thread->spare)
            thread->spare = snd_pages_new(SND_SPARE_SIZE);
        if (thread->spare)
            large = thread->spare;
        else
            length = 1024;
    }
    uint32_t size = (uint32_t)length;
    memcpy(large, &size, 4);
    memcpy(large + 4, text, length);
    return intern(SND_REC_STRING, large, 4 + length);
}

#define OWN_NAME_MAX 1024 /* longer names are not written into chunks */

static size_t own_parts(size_t length)
{
    return length == 0 ? 1 : (length + SND_NAME_BYTES - 1) / SND_NAME_BYTES;
}

/* Words that an event may need before it for its name. */
static size_t own_room(size_t length)
{
    bool own = __atomic_load_n(&snd_rec.own_names, __ATOMIC_RELAXED);

    return own && length <= OWN_NAME_MAX ? own_parts(length) * 8 : 0;
}

/* Writes a name into the thread's own chunk; its number there. */
static uint32_t write_own_name(struct snd_thread *thread, const char *text, size_t length)
{
    if (thread->own_chunk != sonde_lane_.chunks) {
        thread->own_chunk = sonde_lane_.chunks;
        thread->own_count = 0;
    }
    uint32_t number = thread->own_count++;
    for (size_t part = 0; part < own_parts(length); part++) {
        size_t   at = part * SND_NAME_BYTES;
        size_t   bytes = length - at < SND_NAME_BYTES ? length - at : SND_NAME_BYTES;
        uint64_t words[8] = { stamp(SND_EV_NAME), (uint64_t)length << 32 | number };
        memcpy(&words[2], text + at, bytes);
        snd_lane_write(&sonde_lane_, words, 8);
    }
    return number;
}

/*
 * A name for the event that comes next on this lane, and for nothing else: an id of the tables, or,
 * once they are full in keep-last mode, a number of the chunk, which is recycled together with it.
 */
static uint32_t name_event(const char *text, size_t length)
{
    struct snd_thread *thread = snd_thread_self();
    char               payload[4 + OWN_NAME_MAX];
    uint32_t           size = (uint32_t)length;

    if (own_room(length) == 0)
        return intern_text(text, length);
    memcpy(payload, &size, 4);
    memcpy(payload + 4, text, length);
    struct snd_hash hash = snd_hash_bytes(payload, 4 + length, (uint64_t)SND_REC_STRING);
    size_t          at = hash.low % SND_OWN_SLOTS;
    if (thread->own[at].chunk == sonde_lane_.chunks && thread->own[at].hash.low == hash.low &&
        thread->own[at].hash.high == hash.high)
        return SND_OWN_NAME | thread->own[at].number;
    snd_lock();
    uint32_t id = snd_rec.phase == SND_OPEN ? snd_table_find(SND_REC_STRING, hash) : 0;
    snd_unlock();
    if (id != 0)
        return id;
    if ((size_t)(sonde_lane_.end - sonde_lane_.cur) < own_room(length) + 3) {
        snd_count(&snd_header->lost_names, 1); /* room was asked for before the tables were full */
        return SND_NAME_LOST;
    }
    thread->own[at].hash = hash;
    thread->own[at].number = write_own_name(thread, text, length);
    thread->own[at].chunk = sonde_lane_.chunks;
    return SND_OWN_NAME | thread->own[at].number;
}

/* Lays a tensor list out as a record; returns its size. */
static size_t encode_shapes(const struct sonde_tensor *tensors, size_t count, char *out)
{
    size_t   at = 8;
    uint32_t items = 0;

    for (size_t i = 0; i < count; i++) {
        bool   has_dims = tensors[i].kind == SONDE_ARG_TENSOR;
        size_t dims = has_dims ? tensors[i].ndim : 0;
        if (at + sizeof(struct snd_shape_item) + dims * 8 > SHAPES_MAX) {
            snd_count(&snd_header->cut_names, 1);
            break;
        }
        struct snd_shape_item item = {
            .kind = (uint8_t)tensors[i].kind,
            .dtype = (uint8_t)tensors[i].dtype,
            .count = tensors[i].kind == SONDE_ARG_LIST || has_dims ? tensors[i].ndim : 0,
        };
        memcpy(out + at, &item, sizeof item);
        at += sizeof item;
        if (dims > 0)
            memcpy(out + at, tensors[i].dims, dims * 8);
        at += dims * 8;
        items++;
    }
    memset(out, 0, 8);
    memcpy(out, &items, 4);
    return at;
}

/* Runs an interning function for probes, attached but without writing an event. */
static uint32_t intern_alone(enum snd_record_type type, const void *payload, size_t size)
{
    uint32_t id = 0;

    if (snd_thread_enter(0, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        id = intern(type, payload, size);
        snd_thread_leave();
    }
    return id;
}

uint32_t sonde_intern(const char *text, size_t length)
{
    uint32_t id = 0;

    if (snd_thread_enter(0, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        id = intern_text(text, length);
        snd_thread_leave();
    }
    return id;
}

uint32_t sonde_intern_shapes(const struct sonde_tensor *tensors, size_t count)
{
    char payload[SHAPES_MAX];

    return sonde_epoch()
               ? intern_alone(SND_REC_SHAPES, payload, encode_shapes(tensors, count, payload))
               : 0;
}

uint32_t sonde_intern_frame_in(uint32_t function, uint32_t first_line, uint32_t file, uint32_t line)
{
    struct snd_frame_record record = { function, file, line, SND_FRAME_FLAGS(first_line) };

    return intern_alone(SND_REC_FRAME, &record, sizeof record);
}

uint32_t sonde_intern_frame(uint32_t function, uint32_t file, uint32_t line)
{
    return sonde_intern_frame_in(function, 0, file, line);
}

uint32_t sonde_intern_native(uint32_t function, uint32_t file)
{
    struct snd_frame_record record = { function, file, 0, SND_FRAME_NATIVE };

    return intern_alone(SND_REC_FRAME, &record, sizeof record);
}

uint32_t sonde_intern_stack(uint32_t parent, uint32_t frame)
{
    uint32_t record[2] = { parent, frame };

    return intern_alone(SND_REC_STACK, record, sizeof record);
}

uint64_t *sonde_tally(enum sonde_tally_kind kind, uint32_t key, uint32_t other, unsigned count)
{
    struct snd_tally_record record = { (uint32_t)kind, key, other, count };
    uint64_t               *words = NULL;

    if (count > SND_TALLY_WORDS_MAX || snd_thread_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return NULL;
    snd_lock();
    if (snd_rec.phase == SND_OPEN && snd_thread_self()->serial == snd_rec.serial) {
        words = key != 0 || kind != SONDE_TALLY_CALLS ? snd_table_tally(&record) : NULL;
        if (!words && kind == SONDE_TALLY_CALLS)
            words = snd_header->lost_calls; /* the header has its place from the start */
    }
    snd_unlock();
    snd_thread_leave();
    return words;
}

/* ------------------------------------------------------------------ ranges */

void sonde_begin_slow_(struct sonde_site *site, const char *name)
{
    size_t length = strlen(name);
    if (snd_thread_enter(3 + own_room(length), SND_INTENT_BEGIN) != SND_ENTRY_READY)
        return;
    uint64_t bound = __atomic_load_n(&site->bound, __ATOMIC_RELAXED);
    if (bound >> 32 != sonde_lane_.epoch) {
        uint32_t id = name_event(name, length);
        bound = (uint64_t)sonde_lane_.epoch << 32 | id;
        if (!(id & SND_OWN_NAME)) /* after the name's record */
            __atomic_store_n(&site->bound, bound, __ATOMIC_RELEASE);
    }
    sonde_begin_at_(&sonde_lane_, (uint32_t)bound);
    snd_thread_leave();
}

void sonde_begin_id_slow_(uint32_t name, uint32_t shapes)
{
    if (snd_thread_enter(2, SND_INTENT_BEGIN) == SND_ENTRY_READY) {
        sonde_begin_at_(&sonde_lane_, (uint64_t)shapes << 32 | name);
        snd_thread_leave();
    }
}

uint32_t sonde_intern_call(const struct sonde_op_call *call)
{
    struct snd_call_record record = {
        .name = call->name,
        .shapes = call->shapes,
        .strides = call->strides,
        .arguments = call->arguments,
        .overload = call->overload,
        .stack = call->stack,
        .module = call->module,
        .scope = call->scope,
        .flags = (call->has_sequence ? SND_CALL_SEQUENCE : 0u) |
                 (call->is_async ? SND_CALL_ASYNC : 0u),
        .keywords = call->keywords,
        .fwd_thread = call->fwd_thread,
    };

    return intern_alone(SND_REC_CALL, &record, sizeof record);
}

/* The number goes before the call, each time: this is the slow way, the probe's own is not. */
void sonde_begin_call(uint32_t call, uint64_t sequence)
{
    const uint64_t number = sequence << 16 | SND_ATTR_CALLS_SEQUENCE << 8 | SND_EV_ATTR;

    if (snd_thread_enter(3, SND_INTENT_BEGIN) == SND_ENTRY_READY) {
        snd_lane_write(&sonde_lane_, &number, 1);
        sonde_begin_call_at_(&sonde_lane_, call);
        snd_thread_leave();
    }
}

void sonde_begin_text(const char *name)
{
    size_t length = strlen(name);
    if (snd_thread_enter(3 + own_room(length), SND_INTENT_BEGIN) != SND_ENTRY_READY)
        return;
    sonde_begin_at_(&sonde_lane_, name_event(name, length));
    snd_thread_leave();
}

void sonde_end_slow_(uint64_t now)
{
    if (snd_thread_enter(1, SND_INTENT_END) == SND_ENTRY_READY) {
        sonde_end_at_(&sonde_lane_, now ? now : snd_thread_time());
        snd_thread_leave();
    }
}

/*
 * Closes `count` ranges of the lane that were left by a jump: one gap, in which no event was lost.
 * Those that were dropped when they began are dropped once more, one by one.
 */
static void close_left(uint32_t count)
{
    while (count > 0) {
        enum snd_entry entry = snd_thread_enter(2, SND_INTENT_END);
        if (entry == SND_ENTRY_OFF)
            return;
        if (entry == SND_ENTRY_READY) {
            const uint64_t words[2] = { stamp(SND_EV_GAP), (uint64_t)count << 32 };
            snd_lane_write(&sonde_lane_, words, 2);
            sonde_lane_.depth -= count;
            snd_thread_leave();
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
    /* Where it was open a recording or a pause began, which has closed it; or it was not recorded. */
    if (scope.epoch != sonde_epoch() || scope.epoch != lane->epoch)
        return;
    if (above >= (int32_t)SONDE_DEPTH_BREAK_ / 2 || above <= -(int32_t)SONDE_DEPTH_BREAK_ / 2)
        above = 0; /* ranges ended out of order meanwhile: which are open is not known here */
    if (above < 0)
        return; /* its range has been ended already */
    close_left((uint32_t)above);
    sonde_end_slow_(0);
}

/* From here on the depth tells nothing to the scopes that are open. */
static void break_depth(void)
{
    if (!sonde_lane_.busy)
        sonde_lane_.depth += SONDE_DEPTH_BREAK_;
}

void sonde_end_at(uint32_t inner)
{
    if (inner == 0) {
        sonde_end();
        return;
    }
    if (snd_thread_enter(2, SND_INTENT_END) == SND_ENTRY_READY) {
        const uint64_t words[2] = { stamp(SND_EV_END_AT), inner };
        snd_lane_write(&sonde_lane_, words, 2);
        sonde_lane_.depth--;
        snd_thread_leave();
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
    if (key == SONDE_ATTR_KEY) /* another thread may end the range */
        break_depth();
    if (value <= SND_ATTR_SMALL_MAX) {
        const uint64_t word = value << 16 | (uint64_t)key << 8 | SND_EV_ATTR;
        put(&word, 1, SND_INTENT_OTHER);
    } else {
        const uint64_t words[2] = { (uint64_t)key << 8 | SND_EV_ATTR64, value };
        put(words, 2, SND_INTENT_OTHER);
    }
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
    size_t length = strlen(name);
    if (snd_thread_enter(3 + own_room(length), SND_INTENT_OTHER) != SND_ENTRY_READY)
        return;
    uint64_t words[3] = { 0, name_event(name, length), 0 };
    words[0] = stamp(SND_EV_COUNTER);
    memcpy(&words[2], &value, sizeof value);
    snd_lane_write(&sonde_lane_, words, 3);
    snd_thread_leave();
}

void sonde_mark(const char *name)
{
    size_t length = strlen(name);
    if (snd_thread_enter(3 + own_room(length), SND_INTENT_OTHER) != SND_ENTRY_READY)
        return;
    uint32_t       id = name_event(name, length);
    const uint64_t words[2] = { stamp(SND_EV_MARK), id };
    snd_lane_write(&sonde_lane_, words, 2);
    snd_thread_leave();
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
    uint32_t samples = sample->samples < SND_SAMPLE_COUNT_MAX ? sample->samples
                                                              : SND_SAMPLE_COUNT_MAX;
    uint64_t left = sample->covered_ns;

    if (sonde_epoch() == 0)
        return;
    /* What is longer than the field holds is several events; the samples are told of once. */
    do {
        uint64_t covered = left < UINT32_MAX ? left : UINT32_MAX;
        uint64_t words[3] = {
            sample->at << 8 | SND_EV_SAMPLE,
            (uint64_t)(sample->state & 0xff) << 32 | (uint64_t)samples << 40 | sample->stack,
            covered << 32 | sample->thread,
        };
        if (sample->at)
            put(words, 3, SND_INTENT_OTHER);
        else
            put_now(SND_EV_SAMPLE, words, 3, SND_INTENT_OTHER);
        left -= covered;
    } while (left > 0);
}

void sonde_function_called(const struct sonde_function_call *call)
{
    if (sonde_epoch() != 0 && snd_thread_enter(4, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        sonde_function_at_(&sonde_lane_, call);
        snd_thread_leave();
    }
}

void sonde_link_from(uint64_t id)
{
    sonde_link(SND_LINK_FLOW, false, id);
}

void sonde_link_to(uint64_t id)
{
    sonde_link(SND_LINK_FLOW, true, id);
}

void sonde_thread_name(const char *name)
{
    if (snd_thread_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return;
    uint32_t id = intern_text(name, strlen(name));
    snd_lock();
    struct snd_thread *thread = snd_thread_self();
    if (snd_rec.phase == SND_OPEN && thread->back)
        __atomic_store_n(&thread->record->name, id, __ATOMIC_RELAXED);
    snd_unlock();
    snd_thread_leave();
}
