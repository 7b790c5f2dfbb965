/* SPDX-License-Identifier: Apache-2.0 */
#include "record/names.h"

#include <string.h>

#include "record/intern.h"
#include "record/lane.h"
#include "record/pages.h"

#define SHAPES_MAX 4096   /* bytes of one tensor list; what does not fit is left off, and counted */
#define OWN_NAME_MAX 1024 /* longer names are not written into chunks */

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

uint32_t snd_intern_text(const char *text, size_t length)
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

static size_t own_parts(size_t length)
{
    return length == 0 ? 1 : (length + SND_NAME_BYTES - 1) / SND_NAME_BYTES;
}

size_t snd_name_room(size_t length)
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
        uint64_t words[8] = { snd_lane_time() << 8 | SND_EV_NAME, (uint64_t)length << 32 | number };
        memcpy(&words[2], text + at, bytes);
        snd_lane_write(&sonde_lane_, words, 8);
    }
    return number;
}

uint32_t snd_name_event(const char *text, size_t length)
{
    struct snd_thread *thread = snd_thread_self();
    char               payload[4 + OWN_NAME_MAX];
    uint32_t           size = (uint32_t)length;

    if (snd_name_room(length) == 0)
        return snd_intern_text(text, length);
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
    if (!snd_lane_has_room(&sonde_lane_, snd_name_room(length) + 3)) {
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

    if (snd_lane_enter(0, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        id = intern(type, payload, size);
        snd_lane_leave();
    }
    return id;
}

uint32_t sonde_intern(const char *text, size_t length)
{
    uint32_t id = 0;

    if (snd_lane_enter(0, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        id = snd_intern_text(text, length);
        snd_lane_leave();
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

uint64_t *sonde_tally(enum sonde_tally_kind kind, uint32_t key, uint32_t other, unsigned count)
{
    struct snd_tally_record record = { (uint32_t)kind, key, other, count };
    uint64_t               *words = NULL;

    if (count > SND_TALLY_WORDS_MAX || snd_lane_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return NULL;
    snd_lock();
    if (snd_rec.phase == SND_OPEN && snd_thread_self()->serial == snd_rec.serial) {
        words = key != 0 || kind != SONDE_TALLY_CALLS ? snd_table_tally(&record) : NULL;
        if (!words && kind == SONDE_TALLY_CALLS)
            words = snd_header->lost_calls; /* the header has its place from the start */
    }
    snd_unlock();
    snd_lane_leave();
    return words;
}
