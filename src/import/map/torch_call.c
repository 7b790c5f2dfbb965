/* SPDX-License-Identifier: Apache-2.0 */
/* import/map/torch_call.c - operators of torch as call records; declared in importer.h. */
#include <string.h>

#include "base/data/hash.h"
#include "base/text/buf.h"
#include "format/dtypes.h"
#include "import/map/importer.h"

#define WAYS_MOST \
    100000u /* ways of calling with all they have; further ones are known by name alone */
#define LIST_BYTES 4096u /* of a list of tensors */

/* -------------------------------------------------------------- lists of tensors */

static uint8_t find_type(struct snd_span name)
{
    for (unsigned i = 0; i < 64; i++) {
        const struct snd_dtype *type = snd_dtype((uint8_t)i);
        if (type && type->cxx && strlen(type->cxx) == name.length &&
            memcmp(type->cxx, name.at, name.length) == 0)
            return (uint8_t)i;
    }
    return SONDE_DTYPE_UNKNOWN;
}

static void put_item(struct sonde_buffer *to, uint8_t kind, uint8_t type, uint32_t count)
{
    struct snd_shape_item item = { kind, type, 0, count };

    snd_buf_put(to, &item, sizeof item);
}

/* "[16, 10]"; false if it is no list of numbers. */
static bool put_tensor(struct sonde_buffer *to, uint8_t type, struct snd_span dims)
{
    const char     *at = dims.at + 1, *end = dims.at + dims.length;
    struct snd_span value;
    size_t          head = to->length;
    uint32_t        count = 0;
    bool            odd = false;

    put_item(to, SND_SHAPE_TENSOR, type, 0);
    while (at < end && (at = snd_scan_element(at, end, &value, &odd)) && at != SND_SCAN_BAD &&
           value.length > 0) {
        int64_t number;
        if (!snd_scan_int(value, &number))
            return false;
        snd_buf_put(to, &number, sizeof number);
        count++;
    }
    if (to->failed)
        return false;
    memcpy(to->bytes + head + offsetof(struct snd_shape_item, count), &count, sizeof count);
    return true;
}

static bool is_of_lists(struct snd_span list)
{
    const char *at = list.length > 1 ? snd_scan_space(list.at + 1) : list.at;

    return list.length > 2 && *at == '[';
}

/* The tensors of a list argument; how many, UINT32_MAX: it is none. */
static uint32_t put_elements(struct sonde_buffer *to, struct snd_span list)
{
    const char     *at = list.at + 1, *end = list.at + list.length;
    struct snd_span value;
    uint32_t        count = 0;
    bool            odd = false;

    while (at < end && (at = snd_scan_element(at, end, &value, &odd)) && at != SND_SCAN_BAD &&
           value.length > 0) {
        if (value.at[0] != '[' || !put_tensor(to, SONDE_FLOAT32, value))
            return UINT32_MAX;
        count++;
    }
    return count;
}

/* One argument by its dims and type: how many items it took, 0: it is not as expected. */
static uint32_t put_argument(struct sonde_buffer *to, struct snd_span dims, struct snd_span type)
{
    uint8_t found;

    if (snd_span_is(type, "TensorList", 10) || (is_of_lists(dims) && type.length == 0)) {
        size_t head = to->length;
        put_item(to, SND_SHAPE_LIST, SONDE_DTYPE_UNKNOWN, 0);
        uint32_t inside = put_elements(to, dims);
        if (inside == UINT32_MAX || to->failed)
            return 0;
        memcpy(to->bytes + head + offsetof(struct snd_shape_item, count), &inside, sizeof inside);
        return inside + 1;
    }
    found = find_type(type);
    if (found != SONDE_DTYPE_UNKNOWN || (type.length == 0 && dims.length > 2 && !is_of_lists(dims)))
        return put_tensor(to, found, dims) ? 1 : 0;
    if (snd_span_is(type, "Scalar", 6)) {
        put_item(to, SND_SHAPE_SCALAR, SONDE_FLOAT64, 0);
        return 1;
    }
    put_item(to, SND_SHAPE_NONE, SONDE_DTYPE_UNKNOWN, 0);
    return 1;
}

/* A list of tensors of dims (or strides) and types, both as the file has them; 0: none, or another form. */
static uint32_t make_list(struct snd_importer *im, struct snd_span dims, struct snd_span types)
{
    const char *at = dims.at + 1, *end = dims.at + dims.length;
    const char *type_at = types.at ? types.at + 1 : NULL,
               *type_end = types.at ? types.at + types.length : NULL;
    uint32_t head[2] = { 0, 0 };
    bool     odd = false;

    if (dims.length < 2 || dims.at[0] != '[')
        return 0;
    snd_buf_clear(&im->text);
    snd_buf_put(&im->text, head, sizeof head);
    while (at < end) {
        struct snd_span value, type = { "", 0 }, inside = { "", 0 };
        at = snd_scan_element(at, end, &value, &odd);
        if (!at || at == SND_SCAN_BAD || value.length == 0)
            break;
        if (type_at && type_at != SND_SCAN_BAD && type_at < type_end) {
            type_at = snd_scan_element(type_at, type_end, &type, &odd);
            snd_scan_plain(type, &inside);
        }
        uint32_t items = value.at[0] == '[' ? put_argument(&im->text, value, inside) : 0;
        if (items == 0)
            return 0;
        head[0] += items;
    }
    if (im->text.failed || im->text.length > LIST_BYTES || head[0] == 0)
        return 0;
    memcpy(im->text.bytes, head, sizeof head);
    return snd_trace_intern(&im->out, SND_REC_SHAPES, im->text.bytes, im->text.length);
}

/* ------------------------------------------------------------------ call records */

/* Whether a list of texts has anything but empty ones. */
static bool says_anything(struct snd_span list)
{
    const char     *at = list.at + 1, *end = list.at + list.length;
    struct snd_span value;
    bool            odd = false;

    while (list.at[0] == '[' && at < end) {
        at = snd_scan_element(at, end, &value, &odd);
        if (!at || at == SND_SCAN_BAD || value.length == 0)
            return false;
        if (value.length != 2 || value.at[0] != '"')
            return true;
    }
    return list.at[0] != '[';
}

static uint32_t make_stack(struct snd_importer *im, struct snd_span value)
{
    uint32_t stack = 0;

    snd_buf_clear(&im->text);
    snd_scan_text(value, &im->text);
    /* Innermost first, each with a semicolon after it; a stack's records begin with the outermost. */
    for (size_t end = im->text.length; end > 0 && !im->text.failed;) {
        size_t begin = end;
        while (begin > 0 && im->text.bytes[begin - 1] != ';')
            begin--;
        if (end > begin) {
            uint32_t node[2] = { stack,
                                 snd_calls_frame(&im->calls, im->text.bytes + begin, end - begin) };
            stack = snd_trace_intern(&im->out, SND_REC_STACK, node, sizeof node);
        }
        end = begin > 0 ? begin - 1 : 0;
    }
    return stack;
}

static uint32_t make_call(struct snd_importer *im, bool is_user, bool whole)
{
    struct snd_trace_event *e = &im->event;
    struct snd_call_record call = { .scope = (is_user ? SND_SCOPE_USER : SND_SCOPE_FUNCTION) + 1u };
    bool                   is_collective = snd_span_is(e->name, "\"record_param_comms\"", 20);

    call.name = snd_map_string(im, e->name);
    if (snd_event_has(e, SND_ARG_SEQUENCE))
        call.flags = SND_CALL_SEQUENCE;
    call.fwd_thread = snd_event_number(e, SND_ARG_FWD_THREAD, 0);
    if (whole) {
        struct snd_span dims = snd_event_has(e, SND_ARG_DIMS)       ? e->args[SND_ARG_DIMS]
                               : snd_event_has(e, SND_ARG_DIMS_OLD) ? e->args[SND_ARG_DIMS_OLD]
                                                                    : (struct snd_span){ 0 };
        struct snd_span types = snd_event_has(e, SND_ARG_TYPES) ? e->args[SND_ARG_TYPES]
                                                                : (struct snd_span){ 0 };
        if (dims.at)
            call.shapes = make_list(im, dims, types);
        if (snd_event_has(e, SND_ARG_STRIDES))
            call.strides = make_list(im, e->args[SND_ARG_STRIDES], types);
        if (snd_event_has(e, SND_ARG_CONCRETE) && says_anything(e->args[SND_ARG_CONCRETE])) {
            struct snd_span text = e->args[SND_ARG_CONCRETE];
            call.arguments = snd_trace_string(&im->out, text.at, text.length);
        }
        if (snd_event_has(e, SND_ARG_OVERLOAD))
            call.overload = snd_map_string(im, e->args[SND_ARG_OVERLOAD]);
        if (snd_event_has(e, SND_ARG_MODULE))
            call.module = snd_map_string(im, e->args[SND_ARG_MODULE]);
        if (snd_event_has(e, SND_ARG_CALL_STACK))
            call.stack = make_stack(im, e->args[SND_ARG_CALL_STACK]);
        if (!is_collective)
            call.keywords = snd_map_others(im);
    }
    snd_buf_clear(&im->text);
    snd_scan_text(e->name, &im->text);
    return snd_calls_add(&im->calls, &call, snd_buf_string(&im->text), im->text.length);
}

/* A hash of all that a call record has, as the file has it: texts of equal calls are equal. */
static struct snd_key hash_call(const struct snd_trace_event *e, bool is_user)
{
    static const uint8_t parts[] = { SND_ARG_DIMS,       SND_ARG_DIMS_OLD, SND_ARG_TYPES,
                                     SND_ARG_STRIDES,    SND_ARG_CONCRETE, SND_ARG_OVERLOAD,
                                     SND_ARG_CALL_STACK, SND_ARG_MODULE };
    struct snd_hash      h = snd_hash_bytes(e->name.at, e->name.length, 17u + is_user);
    uint64_t             second = h.high;

    for (size_t i = 0; i < sizeof parts; i++)
        if (snd_event_has(e, parts[i])) {
            h = snd_hash_bytes(e->args[parts[i]].at, e->args[parts[i]].length,
                               h.low ^ (parts[i] + 1u));
            second = snd_hash_mix(second ^ h.high, 0x9e3779b97f4a7c15u) + i;
        }
    if (!snd_span_is(e->name, "\"record_param_comms\"", 20))
        for (uint32_t i = 0; i < e->other_count; i++) {
            h = snd_hash_bytes(e->others[i].key.at, e->others[i].key.length, h.low);
            h = snd_hash_bytes(e->others[i].value.at, e->others[i].value.length, h.low);
            second = snd_hash_mix(second ^ h.high, 0x9e3779b97f4a7c15u) + i;
        }
    return (struct snd_key){ h.low, second,
                             (uint64_t)snd_event_has(e, SND_ARG_SEQUENCE) << 62 |
                                 (uint64_t)1 << 63 |
                                 (snd_event_number(e, SND_ARG_FWD_THREAD, 0) & UINT32_MAX) };
}

uint32_t snd_map_call(struct snd_importer *im, bool is_user)
{
    struct snd_key key = hash_call(&im->event, is_user);
    uint32_t       id;

    if (snd_map_get(&im->calls.by_text, key, &id))
        return id;
    bool whole = im->calls.count < WAYS_MOST;
    if (!whole) {
        struct snd_hash h = snd_hash_bytes(im->event.name.at, im->event.name.length, 19u + is_user);
        key = (struct snd_key){ h.low, h.high, key.c };
        im->dropped_texts++;
        if (snd_map_get(&im->calls.by_text, key, &id))
            return id;
    }
    id = make_call(im, is_user, whole);
    if (id == 0 || !snd_map_put(&im->calls.by_text, key, id))
        im->status = im->out.status != SONDE_OK ? im->out.status : SONDE_E_NOMEM;
    return id;
}

/* Remembers which thread has this number: what ran forward and its backward have one sequence number. */
static void match_threads(struct snd_importer *im, uint64_t sequence, uint64_t number)
{
    uint32_t slot = (uint32_t)(sequence % SND_SEEN_SEQUENCES);
    uint32_t tid = 0;

    if (im->seen[slot].sequence != sequence + 1) {
        im->seen[slot].sequence = sequence + 1;
        im->seen[slot].tid = im->seen[slot].number = 0;
    }
    if (number == 0) {
        uint64_t lane = snd_map_lane(im, im->event.pid, im->event.tid);
        im->seen[slot].tid = (uint32_t)lane + (uint32_t)(lane >> 32) + 1;
    } else if (number < SND_NUMBERS_MOST) {
        im->seen[slot].number = (uint32_t)number;
    }
    tid = im->seen[slot].tid;
    if (tid != 0 && im->seen[slot].number != 0)
        im->tids[im->seen[slot].number] = tid;
}

uint64_t snd_map_sequence(struct snd_importer *im)
{
    uint64_t sequence;
    int64_t  with_sign;

    if (!snd_event_has(&im->event, SND_ARG_SEQUENCE) ||
        !snd_scan_int(im->event.args[SND_ARG_SEQUENCE], &with_sign) || with_sign < 0) {
        im->event.has &= ~((uint64_t)1 << SND_ARG_SEQUENCE);
        return 0;
    }
    sequence = (uint64_t)with_sign;
    match_threads(im, sequence, snd_event_number(&im->event, SND_ARG_FWD_THREAD, 0));
    return sequence + 1;
}
