/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/references.h - where records and events refer to records, and of which type those are;
 * fields of events.
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
    uint8_t  from, to; /* enum snd_record_type */
    uint16_t at;       /* of the u32: byte of the payload */
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

/* Fields of events (events.def). Attributes: attrs.def. */
enum snd_field_form {
    SND_FORM_STRING = SND_REC_STRING,
    SND_FORM_SHAPES = SND_REC_SHAPES,
    SND_FORM_FRAME = SND_REC_FRAME,
    SND_FORM_STACK = SND_REC_STACK,
    SND_FORM_CALL = SND_REC_CALL,
    SND_FORM_QUEUE = SND_REC_QUEUE,
    SND_FORM_WORK = SND_REC_WORK,
    SND_FORM_U32 = SND_REC_TYPES, /* from here on it is no id */
    SND_FORM_U64,
    SND_FORM_F64,
    SND_FORM_FLAG,
};

struct snd_event_field {
    const char *name;
    uint8_t     kind; /* enum snd_event_kind */
    uint8_t     form; /* enum snd_field_form */
    uint8_t     at;   /* half of a word, from the first word on */
};

static const struct snd_event_field snd_event_fields[] = {
#define SND_EVENT_FIELD(event, name, at, form) { #name, SND_EV_##event, SND_FORM_##form, at },
#include "format/events.def"
};
#define SND_EVENT_FIELDS SND_COUNT_OF(snd_event_fields)

/* A field's value: 32 bits, or the 64 of U64 and F64. */
static inline uint64_t snd_event_field_read(const struct snd_event_field *field,
                                            const uint64_t               *words)
{
    uint64_t word = words[field->at / 2];

    if (field->form == SND_FORM_U64 || field->form == SND_FORM_F64)
        return word;
    return (uint32_t)(word >> field->at % 2 * 32);
}

/* Puts another id in the place of the one that the field has. */
static inline void snd_event_field_replace(const struct snd_event_field *field, uint64_t *words,
                                           uint32_t id)
{
    uint64_t old = snd_event_field_read(field, words);

    words[field->at / 2] ^= (old ^ id) << field->at % 2 * 32;
}

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
