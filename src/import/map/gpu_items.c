/* SPDX-License-Identifier: Apache-2.0 */
/* import/map/gpu_items.c - what GPUs did, their memory and what they are; declared in importer.h. */
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "format/known.h"
#include "import/map/importer.h"

#define CUDA 1u /* torch's type of a device */

static uint32_t small(const struct snd_trace_event *e, enum snd_argument argument)
{
    uint64_t number = snd_event_number(e, argument, 0);

    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* "[64, 1, 1]" */
static void read_three(const struct snd_trace_event *e, enum snd_argument argument,
                       uint32_t three[3])
{
    if (!snd_event_has(e, argument) || e->args[argument].at[0] != '[')
        return;
    const char *at = e->args[argument].at + 1,
               *end = e->args[argument].at + e->args[argument].length;
    bool odd = false;
    for (int i = 0; i < 3 && at < end; i++) {
        struct snd_span value;
        uint64_t        number;
        at = snd_scan_element(at, end, &value, &odd);
        if (!at || at == SND_SCAN_BAD || value.length == 0)
            return;
        if (snd_scan_uint(value, &number) && number <= UINT32_MAX)
            three[i] = (uint32_t)number;
    }
}

void snd_map_work(struct snd_importer *im, enum snd_work_kind kind, int64_t start, int64_t duration)
{
    struct snd_trace_event *e = &im->event;
    struct snd_work_record  work = { .kind = (uint32_t)kind,
                                     .registers = small(e, SND_ARG_REGISTERS),
                                     .shared_static = small(e, SND_ARG_SHARED),
                                     .bytes = snd_event_number(e, SND_ARG_MOVED, 0) };
    uint32_t                queue = 0;

    snd_event_is(e, SND_OF_WORK);
    work.name = snd_map_string(im, e->name);
    read_three(e, SND_ARG_GRID, work.grid);
    read_three(e, SND_ARG_BLOCK, work.block);
    if (snd_event_has(e, SND_ARG_STREAM)) {
        struct snd_queue_record record = { .device = SND_DEVICE(CUDA, small(e, SND_ARG_DEVICE)),
                                           .context = small(e, SND_ARG_CONTEXT),
                                           .stream = small(e, SND_ARG_STREAM) };
        queue = snd_trace_intern(&im->out, SND_REC_QUEUE, &record, sizeof record);
    }
    struct snd_item item = { .lane = SND_ITEM_DEVICES,
                             .start = start,
                             .rank = SND_RANK_RANGE(duration),
                             .a = snd_trace_intern(&im->out, SND_REC_WORK, &work, sizeof work) |
                                  (uint64_t)queue << 32,
                             .b = snd_event_number(e, SND_ARG_NODE, 0),
                             .more = (uint32_t)snd_event_number(e, SND_ARG_CORRELATION, 0),
                             .kind = SND_ITEM_WORK };
    snd_map_add(im, &item);
    im->dropped += e->other_count;
}

static void add_counter(struct snd_importer *im, uint64_t lane, int64_t start, const char *prefix,
                        uint64_t device, uint64_t bytes)
{
    char   name[64];
    double value = (double)bytes;
    int    length = snprintf(name, sizeof name, "%s%u", prefix, (unsigned)device);

    struct snd_item item = { .lane = lane,
                             .start = start,
                             .rank = SND_RANK_MOMENT,
                             .a = snd_trace_string(&im->out, name, (size_t)length),
                             .kind = SND_ITEM_COUNTER };
    memcpy(&item.b, &value, sizeof item.b);
    snd_map_add(im, &item);
}

/* Blocks come thread by thread: what a GPU's allocator holds is said again where the thread changes. */
static void note_held(struct snd_importer *im, uint64_t index, uint64_t lane, int64_t start)
{
    uint64_t reserved = snd_event_number(&im->event, SND_ARG_RESERVED, 0);

    if (!im->held[index].any || im->held[index].lane != lane ||
        im->held[index].reserved != reserved)
        add_counter(im, lane, start, snd_known_name(SND_KNOWN_DEVICE_RESERVED), index, reserved);
    im->held[index].lane = lane;
    im->held[index].reserved = reserved;
    if (!im->held[index].any || start < im->held[index].first_ns) {
        im->held[index].first_ns = start;
        im->held[index].first_lane = lane;
        im->held[index].first = snd_event_number(&im->event, SND_ARG_ALLOCATED, 0);
    }
    im->held[index].any = true;
}

void snd_map_memory_end(struct snd_importer *im)
{
    for (uint64_t i = 0; i < SND_COUNT_OF(im->held); i++)
        if (im->held[i].any)
            add_counter(im, im->held[i].first_lane, im->held[i].first_ns,
                        snd_known_name(SND_KNOWN_DEVICE_ALLOCATED), i, im->held[i].first);
}

void snd_map_memory(struct snd_importer *im, uint64_t lane, int64_t start)
{
    struct snd_trace_event *e = &im->event;
    uint64_t                type = snd_event_number(e, SND_ARG_DEVICE_TYPE, 0);
    uint64_t                index = snd_event_number(e, SND_ARG_DEVICE_ID, 0xffff) & 0xffff;
    int64_t                 bytes = (int64_t)snd_event_number(e, SND_ARG_BYTES, 0);

    snd_event_is(e, SND_OF_MEMORY);
    if (type == CUDA && index < SND_COUNT_OF(im->held))
        note_held(im, index, lane, start);
    struct snd_item item = { .lane = lane,
                             .start = start,
                             .rank = SND_RANK_MOMENT,
                             .a = snd_event_number(e, SND_ARG_ADDRESS, 0),
                             .b = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes,
                             .more = SND_DEVICE(type & 0xffff, index),
                             .kind = bytes < 0 ? SND_ITEM_FREE : SND_ITEM_ALLOC };
    snd_map_add(im, &item);
    im->dropped += e->other_count;
}

/* ------------------------------------------------------------------------ what they are */

/* What CUDA's documents say of a capability, and Kineto does not write. */
static void add_limits(uint64_t major, uint64_t minor, struct snd_fact_member *members,
                       uint32_t *count)
{
    uint64_t blocks = major >= 8                 ? (minor == 0 || major > 8 ? 32
                                                    : minor == 9            ? 24
                                                                            : 16)
                      : major == 7 && minor == 5 ? 16
                                                 : 32;

    members[(*count)++] = (struct snd_fact_member){ SND_FIELD_DEVICE_BLOCKS_PER_SM, SND_FACT_NUMBER,
                                                    0, blocks };
    members[(*count)++] = (struct snd_fact_member){ SND_FIELD_DEVICE_SHARED_RESERVED,
                                                    SND_FACT_NUMBER, 0, major >= 8 ? 1024 : 0 };
}

static void add_device(struct snd_importer *im, struct snd_span object)
{
    static const struct {
        const char *key;
        uint16_t    field;
    } numbers[] = {
        { "totalGlobalMem", SND_FIELD_DEVICE_MEMORY_BYTES },
        { "computeMajor", SND_FIELD_DEVICE_CAPABILITY_MAJOR },
        { "computeMinor", SND_FIELD_DEVICE_CAPABILITY_MINOR },
        { "numSms", SND_FIELD_DEVICE_SMS },
        { "warpSize", SND_FIELD_DEVICE_WARP },
        { "maxThreadsPerMultiprocessor", SND_FIELD_DEVICE_THREADS_PER_SM },
        { "maxThreadsPerBlock", SND_FIELD_DEVICE_THREADS_PER_BLOCK },
        { "regsPerMultiprocessor", SND_FIELD_DEVICE_REGISTERS_PER_SM },
        { "regsPerBlock", SND_FIELD_DEVICE_REGISTERS_PER_BLOCK },
        { "sharedMemPerMultiprocessor", SND_FIELD_DEVICE_SHARED_PER_SM },
        { "sharedMemPerBlock", SND_FIELD_DEVICE_SHARED_PER_BLOCK },
        { "sharedMemPerBlockOptin", SND_FIELD_DEVICE_SHARED_PER_BLOCK_OPTIN },
    };
    struct {
        struct snd_fact_record head;
        struct snd_fact_member members[SND_COUNT_OF(numbers) + 3];
    } fact = { .head = { .kind = SND_FACT_OF_DEVICE } };
    const char *at = object.at + 1, *end = object.at + object.length;
    uint64_t    number, major = 0, minor = 0;
    bool        odd = false;

    for (;;) {
        struct snd_span key, value;
        at = snd_scan_member(at, end, &key, &value, &odd);
        if (!at || at == SND_SCAN_BAD || !key.at)
            break;
        if (snd_span_is(key, "name", 4) && fact.head.count == 0)
            fact.members[fact.head.count++] = (struct snd_fact_member){
                SND_FIELD_DEVICE_NAME, SND_FACT_TEXT, snd_map_string(im, value), 0
            };
        if (!snd_scan_uint(value, &number))
            continue;
        if (snd_span_is(key, "id", 2) && number < 0xffff)
            fact.head.number = (uint32_t)number + 1;
        if (snd_span_is(key, "computeMajor", 12))
            major = number;
        if (snd_span_is(key, "computeMinor", 12))
            minor = number;
        for (size_t i = 0; i < SND_COUNT_OF(numbers) && fact.head.count <= SND_COUNT_OF(numbers);
             i++)
            if (snd_span_is(key, numbers[i].key, strlen(numbers[i].key)))
                fact.members[fact.head.count++] =
                    (struct snd_fact_member){ numbers[i].field, SND_FACT_NUMBER, 0, number };
    }
    if (fact.head.number == 0 || fact.head.count < 3)
        return;
    add_limits(major, minor, fact.members, &fact.head.count);
    snd_trace_record(&im->out, SND_REC_FACT, &fact,
                     sizeof fact.head + fact.head.count * sizeof fact.members[0]);
}

void snd_map_properties(struct snd_importer *im, struct snd_span list)
{
    const char *at = list.at + 1, *end = list.at + list.length;
    bool        odd = false;

    while (list.length > 2 && at < end) {
        struct snd_span value;
        at = snd_scan_element(at, end, &value, &odd);
        if (!at || at == SND_SCAN_BAD || value.length == 0)
            return;
        if (value.at[0] == '{')
            add_device(im, value);
    }
}
