/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tables/naming.h"

#include <string.h>

#include "format/references.h"
#include "record/given.h"
#include "record/tables/intern.h"
#include "record/thread/lane.h"
#include "record/tables/late_table.h"
#include "record/own_pages.h"

#define SHAPES_MAX 4096   /* bytes of one tensor list; what does not fit is left off, and counted */
#define OWN_NAME_MAX 1024 /* longer names are not written into chunks */
#define CLOSURE_MAX 4096u /* late records that one may lead to */
#define EVENT_WORDS 8u    /* as long as an event can be */

/* --------------------------------------------------------------- interning */

typedef uint32_t interner(enum snd_record_type type, struct snd_hash hash, const void *payload,
                          size_t size);

/* The id of a payload: from the thread's own cache, else from `find` under the lock. */
static uint32_t intern(interner *find, enum snd_record_type type, const void *payload, size_t size)
{
    struct snd_thread *thread = snd_thread_self();
    struct snd_hash    hash = snd_record_hash(type, payload, size);
    size_t             at = hash.low % SND_CACHE_SLOTS;
    uint32_t           epoch = sonde_lane_.epoch;

    if (thread->cache[at].epoch == epoch && thread->cache[at].hash.low == hash.low &&
        thread->cache[at].hash.high == hash.high &&
        (find == snd_late_intern || !snd_is_late(thread->cache[at].id)))
        return thread->cache[at].id;
    snd_lock();
    uint32_t id = 0;
    bool     on = snd_rec.phase == SND_OPEN && thread->serial == snd_rec.serial;
    if (on)
        id = find(type, hash, payload, size);
    snd_unlock();
    if (on) {
        thread->cache[at].epoch = epoch;
        thread->cache[at].hash = hash;
        thread->cache[at].id = id;
    }
    return id;
}

static uint32_t intern_text(interner *find, const char *text, size_t length)
{
    char payload[4 + 1024], *large = payload;

    if (length > SND_STRING_MAX) {
        length = SND_STRING_MAX;
        snd_count(&snd_header->cut_names, 1);
    }
    if (length > 1024) { /* rare, so a thread gets its buffer when it first needs one */
        struct snd_thread *thread = snd_thread_self();
        if (!thread->spare)
            thread->spare = snd_ownpages_new(SND_SPARE_SIZE);
        if (thread->spare)
            large = thread->spare;
        else
            length = 1024;
    }
    uint32_t size = (uint32_t)length;
    memcpy(large, &size, 4);
    memcpy(large + 4, text, length);
    return intern(find, SND_REC_STRING, large, 4 + length);
}

uint32_t snd_intern_text(const char *text, size_t length)
{
    return intern_text(snd_table_intern, text, length);
}

/* -------------------------------------------------- names of the chunk's own */

static size_t own_parts(size_t length)
{
    return length == 0 ? 1 : (length + SND_NAME_BYTES - 1) / SND_NAME_BYTES;
}

/* Words that a name needs before its event, if the tables have no room for it. */
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
        uint64_t words[8] = { snd_lane_time() << 8 | SND_EV_NAME, (uint64_t)length << 32 | number };
        memcpy(&words[2], text + at, bytes);
        snd_lane_write(&sonde_lane_, words, 8);
    }
    return number;
}

/* The id of a name, which goes into the chunk unless the tables have it. There is room for it. */
static uint32_t name_in_chunk(const char *text, size_t length)
{
    struct snd_thread *thread = snd_thread_self();
    char               payload[4 + OWN_NAME_MAX];
    uint32_t           size = (uint32_t)length;

    memcpy(payload, &size, 4);
    memcpy(payload + 4, text, length);
    struct snd_hash hash = snd_record_hash(SND_REC_STRING, payload, 4 + length);
    size_t          at = hash.low % SND_OWN_SLOTS;
    if (thread->own[at].chunk == sonde_lane_.chunks && thread->own[at].hash.low == hash.low &&
        thread->own[at].hash.high == hash.high)
        return SND_OWN_NAME | thread->own[at].number;
    snd_lock();
    uint32_t id = snd_rec.phase == SND_OPEN ? snd_table_find(SND_REC_STRING, hash) : 0;
    snd_unlock();
    if (id != 0 && !snd_is_late(id))
        return id;
    thread->own[at].hash = hash;
    thread->own[at].number = write_own_name(thread, text, length);
    thread->own[at].chunk = sonde_lane_.chunks;
    return SND_OWN_NAME | thread->own[at].number;
}

/* The tables are full: may names be written into chunks from now on? */
static bool may_be_own(size_t length)
{
    snd_lock();
    if (snd_rec.phase == SND_OPEN && snd_thread_self()->serial == snd_rec.serial)
        snd_table_begin_own();
    snd_unlock();
    return own_room(length) > 0;
}

/*
 * The room is asked for before the lane is entered. Another thread may use the tables up in between:
 * then there is none, and the lane is entered again.
 */
enum snd_entry snd_lane_enter_named(size_t words, enum snd_intent intent, const char *text,
                                    uint32_t *id)
{
    size_t length = strlen(text);

    for (;;) {
        size_t         room = own_room(length);
        enum snd_entry entry = snd_lane_enter(words + room, intent);
        if (entry != SND_ENTRY_READY)
            return entry;
        if (room == 0)
            *id = intern_text(snd_table_try, text, length);
        else
            *id = name_in_chunk(text, length);
        if (*id != 0)
            return entry;
        if (!may_be_own(length)) {
            snd_lock();
            *id = snd_table_lose(SND_REC_STRING);
            snd_unlock();
            return entry;
        }
        snd_lane_leave();
    }
}

/* ------------------------------------------------------------- late records */

static uint32_t order[CLOSURE_MAX]; /* under snd_rec.lock */

static bool has_late(const struct snd_thread *thread, uint32_t id, uint32_t chunk)
{
    size_t at = id % SND_LATE_SLOTS;

    return thread->late[at].chunk == chunk && thread->late[at].id == id;
}

static size_t record_words(size_t size)
{
    return size <= SND_RECORD_SHORT_BYTES ? 4
                                          : (size + SND_RECORD_BYTES - 1) / SND_RECORD_BYTES * 8;
}

/*
 * Lists a late record and those that it leads to, but for those that the chunk has; each stands
 * before what it refers to. Returns the words that they need, 0 if there are too many. Lock held.
 */
static size_t list_late(const struct snd_thread *thread, uint32_t id, uint32_t chunk, size_t *count)
{
    size_t words = 0;

    order[0] = id;
    *count = 1;
    for (size_t i = 0; i < *count; i++) {
        struct snd_late late = snd_late_find(order[i]);
        if (late.size == 0)
            return 0;
        words += record_words(late.size);
        for (size_t k = 0; k < SND_RECORD_REFERENCES; k++) {
            if (snd_record_references[k].from != late.type)
                continue;
            uint32_t to = snd_reference_read(&snd_record_references[k], late.payload, late.size);
            if (!snd_is_late(to) || has_late(thread, to, chunk))
                continue;
            if (*count == CLOSURE_MAX)
                return 0;
            order[(*count)++] = to;
        }
    }
    return words;
}

/* Writes a late record into the chunk. Lock held. */
static void write_late(struct snd_thread *thread, uint32_t id)
{
    struct snd_late late = snd_late_find(id);
    bool            is_short = late.size <= SND_RECORD_SHORT_BYTES;
    size_t          each = is_short ? SND_RECORD_SHORT_BYTES : SND_RECORD_BYTES;
    uint64_t        kind = is_short ? SND_EV_RECORD_SHORT : SND_EV_RECORD;

    for (size_t at = 0; at < late.size; at += each) {
        size_t   bytes = late.size - at < each ? late.size - at : each;
        uint64_t words[8] = { snd_lane_time() << 8 | kind,
                              (uint64_t)late.type << 56 | (uint64_t)late.size << 32 | id };
        memcpy(&words[2], late.payload + at, bytes);
        snd_lane_write(&sonde_lane_, words, 2 + each / 8);
    }
    thread->late[id % SND_LATE_SLOTS].chunk = sonde_lane_.chunks;
    thread->late[id % SND_LATE_SLOTS].id = id;
}

size_t snd_late_room(uint32_t id)
{
    const struct snd_thread *thread = snd_thread_self();
    size_t                   count, words = 0;

    if (!snd_is_late(id) || !thread || has_late(thread, id, sonde_lane_.chunks))
        return 0;
    snd_lock();
    words = list_late(thread, id, UINT32_MAX, &count); /* it may be another chunk by then */
    if (words > snd_rec.chunk_bytes / 16)
        words = 0; /* more than half a chunk: only if there is room as it is */
    snd_unlock();
    return words ? words + EVENT_WORDS : 0;
}

bool snd_late_define(uint32_t id)
{
    struct snd_thread *thread = snd_thread_self();
    size_t             count;

    if (!snd_is_late(id) || has_late(thread, id, sonde_lane_.chunks))
        return true;
    snd_lock();
    bool   on = snd_rec.phase == SND_OPEN && thread->serial == snd_rec.serial;
    size_t words = on ? list_late(thread, id, sonde_lane_.chunks, &count) : 0;
    bool   fits = words != 0 && snd_lane_has_room(&sonde_lane_, words + EVENT_WORDS);
    while (fits && count > 0)
        if (!has_late(thread, order[--count], sonde_lane_.chunks))
            write_late(thread, order[count]);
    snd_unlock();
    if (!fits)
        snd_count(&snd_header->lost_names, 1);
    return fits;
}

/* -------------------------------------------------------------- for probes */

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
        id = intern(snd_late_intern, type, payload, size);
        snd_lane_leave();
    }
    return id;
}

uint32_t sonde_intern(const char *text, size_t length)
{
    uint32_t id = 0;

    if (snd_lane_enter(0, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        id = intern_text(snd_late_intern, text, length);
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
    struct snd_frame_record record = { function, file, line, SND_FRAME_FLAGS(first_line), 0, 0, 0 };

    return intern_alone(SND_REC_FRAME, &record, SND_FRAME_PLAIN_SIZE);
}

uint32_t sonde_intern_frame(uint32_t function, uint32_t file, uint32_t line)
{
    return sonde_intern_frame_in(function, 0, file, line);
}

uint32_t sonde_intern_native(uint32_t function, uint32_t file)
{
    struct snd_frame_record record = { function, file, 0, SND_FRAME_NATIVE, 0, 0, 0 };

    return intern_alone(SND_REC_FRAME, &record, SND_FRAME_PLAIN_SIZE);
}

uint32_t sonde_intern_address(uint32_t file, uint32_t build_id, uint64_t address)
{
    struct snd_frame_record record = { 0, file, 0, SND_FRAME_NATIVE, address, build_id, 0 };

    return intern_alone(SND_REC_FRAME, &record, sizeof record);
}

uint32_t sonde_intern_stack(uint32_t parent, uint32_t frame)
{
    uint32_t record[2] = { parent, frame };

    return intern_alone(SND_REC_STACK, record, sizeof record);
}

uint32_t sonde_intern_call(const struct sonde_op_call *call)
{
    struct sonde_op_call room;

    if (!(call = SND_GIVEN(call, &room)))
        return 0;
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
        .compiled = call->compiled,
    };

    return intern_alone(SND_REC_CALL, &record, call->compiled ? sizeof record : SND_CALL_PLAIN);
}

uint32_t sonde_intern_queue(const struct sonde_queue *queue)
{
    struct sonde_queue room;

    if (!(queue = SND_GIVEN(queue, &room)))
        return 0;
    struct snd_queue_record record = { queue->device, queue->context, queue->stream, queue->flags };

    return intern_alone(SND_REC_QUEUE, &record, sizeof record);
}

uint32_t sonde_intern_work(const struct sonde_work *work)
{
    struct sonde_work room;

    if (!(work = SND_GIVEN(work, &room)))
        return 0;
    struct snd_work_record record = {
        .name = work->name,
        .kind = work->kind,
        .grid = { work->grid[0], work->grid[1], work->grid[2] },
        .block = { work->block[0], work->block[1], work->block[2] },
        .registers = work->registers,
        .shared_static = work->shared_static,
        .shared_dynamic = work->shared_dynamic,
        .copy_kind = work->copy_kind,
        .source_kind = work->source_kind,
        .target_kind = work->target_kind,
        .bytes = work->bytes,
    };

    return intern_alone(SND_REC_WORK, &record, sizeof record);
}

uint64_t *sonde_tally(enum sonde_tally_kind kind, uint32_t key, uint32_t other, unsigned count)
{
    uint64_t *words = NULL;

    if (count > SND_TALLY_WORDS_MAX || snd_lane_enter(0, SND_INTENT_OTHER) != SND_ENTRY_READY)
        return NULL;
    snd_lock();
    if (snd_rec.phase == SND_OPEN && snd_thread_self()->serial == snd_rec.serial) {
        bool                    has_key = key != 0 || kind != SONDE_TALLY_CALLS;
        struct snd_tally_record record = { (uint32_t)kind, snd_late_in_tables(key),
                                           snd_late_in_tables(other), count };
        if (has_key && (record.key != 0 || key == 0))
            words = snd_table_tally(&record);
        if (!words && kind == SONDE_TALLY_CALLS)
            words = snd_header->lost_calls; /* the header has its place from the start */
    }
    snd_unlock();
    snd_lane_leave();
    return words;
}
