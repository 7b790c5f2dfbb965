/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/references.h - where records and events refer to records, and of which type those are.
 *
 * Layer: format (no I/O, no state).
 */
#ifndef SND_FORMAT_REFERENCES_H
#define SND_FORMAT_REFERENCES_H

#include <stddef.h>
#include <string.h>

#include "base/count_of.h"
#include "format/layout.h"

struct snd_reference {
    uint8_t  from; /* enum snd_record_type, or the kind of an event */
    uint8_t  to;   /* enum snd_record_type */
    uint16_t at; /* of the u32: byte of the payload; for an event, half of a word from its first */
};

/* Fields of records that are ids. */
static const struct snd_reference snd_record_references[] = {
    { SND_REC_FRAME, SND_REC_STRING, offsetof(struct snd_frame_record, function) },
    { SND_REC_FRAME, SND_REC_STRING, offsetof(struct snd_frame_record, file) },
    { SND_REC_FRAME, SND_REC_STRING, offsetof(struct snd_frame_record, build_id) },
    { SND_REC_STACK, SND_REC_STACK, 0 },
    { SND_REC_STACK, SND_REC_FRAME, 4 },
    { SND_REC_CALL, SND_REC_STRING, offsetof(struct snd_call_record, name) },
    { SND_REC_CALL, SND_REC_SHAPES, offsetof(struct snd_call_record, shapes) },
    { SND_REC_CALL, SND_REC_SHAPES, offsetof(struct snd_call_record, strides) },
    { SND_REC_CALL, SND_REC_STRING, offsetof(struct snd_call_record, arguments) },
    { SND_REC_CALL, SND_REC_STRING, offsetof(struct snd_call_record, overload) },
    { SND_REC_CALL, SND_REC_STACK, offsetof(struct snd_call_record, stack) },
    { SND_REC_CALL, SND_REC_STRING, offsetof(struct snd_call_record, module) },
    { SND_REC_CALL, SND_REC_STRING, offsetof(struct snd_call_record, keywords) },
    { SND_REC_CALL, SND_REC_STRING, offsetof(struct snd_call_record, compiled) },
    { SND_REC_WORK, SND_REC_STRING, offsetof(struct snd_work_record, name) },
};
#define SND_RECORD_REFERENCES SND_COUNT_OF(snd_record_references)

/* Fields of events that are ids. Attributes: attrs.def. */
static const struct snd_reference snd_event_references[] = {
    { SND_EV_BEGIN, SND_REC_STRING, 2 },      { SND_EV_BEGIN, SND_REC_SHAPES, 3 },
    { SND_EV_SPAN, SND_REC_STRING, 2 },       { SND_EV_CALL, SND_REC_CALL, 2 },
    { SND_EV_SAMPLE, SND_REC_STACK, 2 },      { SND_EV_MARK, SND_REC_STACK, 3 },
    { SND_EV_SAMPLE_RUN, SND_REC_STACK, 2 },  { SND_EV_FUNCTION, SND_REC_FRAME, 2 },
    { SND_EV_DEVICE, SND_REC_WORK, 2 },       { SND_EV_DEVICE, SND_REC_QUEUE, 3 },
    { SND_EV_DEVICE_NODE, SND_REC_WORK, 2 },  { SND_EV_DEVICE_NODE, SND_REC_QUEUE, 3 },
    { SND_EV_DEVICE_SHORT, SND_REC_WORK, 2 }, { SND_EV_DEVICE_SHORT, SND_REC_QUEUE, 5 },
    { SND_EV_API, SND_REC_STRING, 2 },
};
#define SND_EVENT_REFERENCES SND_COUNT_OF(snd_event_references)

/* The type of record that an attribute's value is the id of, in its low half; 0: it is a number. */
static inline uint8_t snd_attr_reference(uint8_t key)
{
    enum { COUNT = 0, STRING = SND_REC_STRING, SHAPES = SND_REC_SHAPES, STACK = SND_REC_STACK };
    static const uint8_t types[] = {
#define SND_ATTR(name, number, value, summary) [number] = value,
#include "format/attrs.def"
#undef SND_ATTR
    };

    if (key == SND_ATTR_FRAME) /* with a flag above it */
        return SND_REC_FRAME;
    return key < sizeof types ? types[key] : 0;
}

/* The id at a reference of a payload of `size` bytes; 0 where the record does not have the field. */
static inline uint32_t snd_reference_read(const struct snd_reference *reference,
                                          const void *payload, size_t size)
{
    uint32_t id = 0;

    if (reference->at + sizeof id <= size)
        memcpy(&id, (const char *)payload + reference->at, sizeof id);
    return id;
}

#endif
