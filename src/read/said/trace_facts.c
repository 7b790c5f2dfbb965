/* SPDX-License-Identifier: Apache-2.0 */
#include "read/said/trace_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/text/json_member.h"
#include "format/facts.h"
#include "read/reader.h"
#include "read/said/trace_metadata.h"

/* ------------------------------------------------------------------ the list */

const char *snd_fact_word(uint32_t kind)
{
    switch (kind) {
#define SND_FACT(name, kind, word, text, summary) \
    case kind:                                    \
        return word;
#define SND_FIELD(fact, name, field, type, word, summary)
#include "format/facts.def"
#undef SND_FIELD
#undef SND_FACT
    default:
        return NULL;
    }
}

const char *snd_fact_field_word(uint32_t kind, unsigned field)
{
    for (size_t i = 0; i < SND_FACT_FIELDS; i++)
        if (snd_fact_fields[i].kind == kind && snd_fact_fields[i].field == field)
            return snd_fact_fields[i].word;
    return NULL;
}

/* -------------------------------------------------------------------- making */

/* The fact of this kind, subject and number, made if it is new; NULL: memory is out. */
static struct snd_fact *make_fact(struct snd_process *process, uint32_t kind,
                                  struct sonde_text subject, uint32_t number)
{
    struct snd_tables *t = &process->tables;
    struct snd_key     key = { (uint64_t)(uintptr_t)(subject.length ? subject.bytes : NULL), kind,
                               number };
    uint32_t           place;

    if (snd_map_get(&t->fact_index, key, &place))
        return &t->facts[place];
    place = t->fact_count;
    if (!snd_grow(&t->facts, &t->fact_room, place, sizeof *t->facts) ||
        !snd_map_put(&t->fact_index, key, place))
        return NULL;
    t->facts[place] = (struct snd_fact){ .kind = kind, .number = number, .subject = subject };
    t->fact_count++;
    return &t->facts[place];
}

static bool keep_value(struct snd_fact *fact, const struct snd_fact_value *value)
{
    if (!snd_grow(&fact->values, &fact->room, fact->count, sizeof *fact->values))
        return false;
    fact->values[fact->count++] = *value;
    return true;
}

void snd_facts_release(struct snd_tables *t)
{
    for (uint32_t i = 0; i < t->fact_count; i++)
        free(t->facts[i].values);
    free(t->facts);
    free(t->fact_bytes);
    snd_map_release(&t->fact_index);
}

/* --------------------------------------------------------------- of records */

static struct sonde_text text_of(const struct sonde_trace *trace, const struct snd_process *process,
                                 uint32_t id)
{
    uint32_t name = id ? snd_name_of(process, id) : UINT32_MAX;

    if (name == UINT32_MAX)
        return (struct sonde_text){ "", 0 };
    return (struct sonde_text){ trace->names.items[name].bytes, trace->names.items[name].length };
}

static bool add_member(const struct sonde_trace *trace, const struct snd_process *process,
                       struct snd_fact *fact, const uint8_t *at)
{
    struct snd_fact_member member;
    struct snd_fact_value  value = { .text = { "", 0 } };

    memcpy(&member, at, sizeof member);
    value.field = member.field;
    value.type = member.type;
    if (member.type == SND_FACT_REAL)
        memcpy(&value.real, &member.value, sizeof value.real);
    else
        value.number = (int64_t)member.value;
    if (member.type == SND_FACT_TEXT)
        value.text = text_of(trace, process, member.id);
    else if (member.type == SND_FACT_TENSOR)
        value.shape = member.id;
    return keep_value(fact, &value);
}

static bool read_record(const struct sonde_trace *trace, struct snd_process *process,
                        const struct snd_fact_bytes *bytes)
{
    struct snd_fact_record record;

    memcpy(&record, bytes->bytes, sizeof record);
    struct sonde_text subject = text_of(trace, process, record.subject);
    struct snd_fact  *fact = make_fact(process, record.kind, subject, record.number);
    size_t            members = (bytes->size - sizeof record) / sizeof(struct snd_fact_member);
    if (record.count > members)
        process->damage.bad_ids++;
    for (size_t i = 0; fact && i < record.count && i < members; i++)
        if (!add_member(trace, process, fact,
                        bytes->bytes + sizeof record + i * sizeof(struct snd_fact_member)))
            return false;
    return fact != NULL;
}

bool snd_facts_read(const struct sonde_trace *trace, struct snd_process *process)
{
    for (uint32_t i = 0; i < process->tables.fact_bytes_count; i++)
        if (!read_record(trace, process, &process->tables.fact_bytes[i]))
            return false;
    return true;
}

/* ------------------------------------------------------------------- asking */

const struct snd_fact *snd_fact_next(const struct sonde_trace *trace, uint32_t process,
                                     uint32_t kind, uint32_t *at)
{
    const struct snd_tables *t = &trace->processes[process].tables;

    while (*at < t->fact_count) {
        const struct snd_fact *fact = &t->facts[(*at)++];
        if (kind == 0 || fact->kind == kind)
            return fact;
    }
    return NULL;
}

bool snd_gpus_are_recorded(const struct sonde_trace *trace)
{
    bool are = snd_trace_has_works(trace);

    for (uint32_t p = 0; p < trace->process_count && !are; p++)
        are = snd_fact_next(trace, p, SND_FACT_OF_CUDA, &(uint32_t){ 0 }) != NULL;
    return are;
}

bool snd_gpu_is_light(const struct sonde_trace *trace, uint32_t process)
{
    const struct snd_fact *fact;

    for (uint32_t at = 0; (fact = snd_fact_next(trace, process, SND_FACT_OF_CUDA, &at));)
        if (snd_text_is(snd_fact_text(fact, SND_FIELD_CUDA_LEVEL), "light"))
            return true;
    return false;
}

bool snd_gpus_are_light(const struct sonde_trace *trace)
{
    for (uint32_t p = 0; p < trace->process_count; p++)
        if (snd_gpu_is_light(trace, p))
            return true;
    return false;
}

static const struct snd_fact_value *find(const struct snd_fact *fact, unsigned field,
                                         enum snd_fact_type type)
{
    for (uint32_t i = fact->count; i > 0; i--)
        if (fact->values[i - 1].field == field && fact->values[i - 1].type == type)
            return &fact->values[i - 1];
    return NULL;
}

int64_t snd_fact_number(const struct snd_fact *fact, unsigned field, int64_t otherwise)
{
    const struct snd_fact_value *value = find(fact, field, SND_FACT_NUMBER);

    return value ? value->number : otherwise;
}

double snd_fact_real(const struct snd_fact *fact, unsigned field, double otherwise)
{
    const struct snd_fact_value *value = find(fact, field, SND_FACT_REAL);

    return value ? value->real : otherwise;
}

struct sonde_text snd_fact_text(const struct snd_fact *fact, unsigned field)
{
    const struct snd_fact_value *value = find(fact, field, SND_FACT_TEXT);

    return value ? value->text : (struct sonde_text){ "", 0 };
}

/* -------------------------------------------------- facts as texts had them */

/* Metadata, and the fact whose members it has. */
static const struct {
    enum snd_meta meta;
    uint32_t      kind;
} texts[] = {
#define SND_META_NONE SND_META_COUNT
#define SND_FACT(name, kind, word, text, summary) { SND_META_##text, kind },
#define SND_FIELD(fact, name, field, type, word, summary)
#include "format/facts.def"
#undef SND_FIELD
#undef SND_FACT
};

static const struct snd_field_entry *find_field(uint32_t kind, struct snd_value key)
{
    for (size_t i = 0; i < SND_FACT_FIELDS; i++)
        if (snd_fact_fields[i].kind == kind && key.length == strlen(snd_fact_fields[i].word) + 2 &&
            memcmp(key.bytes + 1, snd_fact_fields[i].word, key.length - 2) == 0)
            return &snd_fact_fields[i];
    return NULL;
}

/* A text, kept for as long as the trace is open. */
static bool keep_text(struct sonde_trace *trace, const char *bytes, size_t length,
                      struct sonde_text *out)
{
    uint32_t number;

    if (!snd_texts_add(&trace->names, bytes ? bytes : "", length, &number))
        return false;
    *out = (struct sonde_text){ trace->names.items[number].bytes, length };
    return true;
}

/* One value; one that is not of the field's type is left out. */
static bool add_value(struct sonde_trace *trace, struct snd_fact *fact,
                      const struct snd_field_entry *field, struct snd_value json)
{
    struct snd_fact_value value = { .field = field->field, .type = field->type, .text = { "", 0 } };
    struct sonde_buffer   text = { 0 };
    char                 *end = NULL;
    bool                  good = true;

    if (field->type == SND_FACT_TEXT) {
        bool is_text = snd_value_text(json, &text);
        good = !text.failed && (!is_text || keep_text(trace, text.bytes, text.length, &value.text));
        sonde_buffer_release(&text);
        return good && (!is_text || keep_value(fact, &value));
    }
    if (field->type == SND_FACT_NUMBER)
        value.number = strtoll(json.bytes, &end, 10);
    else
        value.real = strtod(json.bytes, &end);
    return end != json.bytes + json.length || keep_value(fact, &value);
}

static bool has_field(const struct snd_fact *fact, unsigned field)
{
    for (uint32_t i = 0; i < fact->count; i++)
        if (fact->values[i].field == field)
            return true;
    return false;
}

static bool add_members(struct sonde_trace *trace, struct snd_fact *fact, struct sonde_text json)
{
    struct snd_value whole = { json.bytes, json.length }, key, value, one;

    if (!snd_json_is_value(json.bytes, json.length))
        return true;
    for (size_t at = 0; snd_value_next(whole, &at, &key, &value);) {
        const struct snd_field_entry *field = find_field(fact->kind, key);
        bool                          is_list = value.length > 0 && value.bytes[0] == '[';
        if (field && has_field(fact, field->field)) /* the first of a name counts */
            continue;
        if (field && !is_list && !add_value(trace, fact, field, value))
            return false;
        for (size_t n = 0; field && is_list && snd_value_next(value, &n, NULL, &one);)
            if (!add_value(trace, fact, field, one))
                return false;
    }
    return true;
}

static bool read_one(struct sonde_trace *trace, uint32_t process, uint32_t kind,
                     struct sonde_text rest, struct sonde_text value)
{
    bool              is_numbered = kind == SND_FACT_OF_NODE;
    struct sonde_text none = { "", 0 }, subject = none;
    uint32_t          number = 0;
    char             *end;

    if (is_numbered) {
        unsigned long long told = strtoull(rest.bytes, &end, 10);
        if (*end != '\0' || told >= UINT32_MAX)
            return true;
        number = (uint32_t)told;
    } else if (rest.length > 0 && !keep_text(trace, rest.bytes, rest.length, &subject)) {
        return false;
    }
    struct snd_fact *fact = make_fact(&trace->processes[process], kind, subject, number);
    if (!fact)
        return false;
    if (fact->count > 0)
        return true;
    fact->is_from_text = true;
    return add_members(trace, fact, value);
}

/* Metadata that is one field whole. */
static bool read_whole(struct sonde_trace *trace, uint32_t process, enum snd_meta meta,
                       uint32_t kind, uint16_t field)
{
    struct snd_fact_value value = { .field = field, .type = SND_FACT_TEXT };
    struct snd_fact      *fact;

    if (!snd_meta_find(trace, process, meta, &value.text))
        return true;
    fact = make_fact(&trace->processes[process], kind, (struct sonde_text){ "", 0 }, 0);
    if (fact && fact->count > 0)
        return true;
    if (fact)
        fact->is_from_text = true;
    return fact && keep_value(fact, &value);
}

/* ---------------------------------------------------------------- the machine */

static const struct snd_field_entry *field_of(uint32_t kind, uint16_t field)
{
    const struct snd_field_entry *entry = snd_fact_fields;

    while (entry->kind != kind || entry->field != field)
        entry++;
    return entry;
}

/* A member of a part of the description, as a field. */
static bool add_part(struct sonde_trace *trace, struct snd_fact *fact, struct snd_value part,
                     const char *member, uint16_t field)
{
    struct snd_value value;

    return !snd_member_find(part.bytes, part.length, member, &value) ||
           add_value(trace, fact, field_of(fact->kind, field), value);
}

static bool add_gpus(struct sonde_trace *trace, struct snd_fact *fact, struct sonde_text json)
{
    struct snd_value gpus, gpu;
    size_t           at = 0;

    if (!snd_member_find(json.bytes, json.length, "gpus", &gpus))
        return true;
    while (snd_value_next(gpus, &at, NULL, &gpu))
        if (!add_part(trace, fact, gpu, "name", SND_FIELD_MACHINE_GPU) ||
            !add_part(trace, fact, gpu, "memory", SND_FIELD_MACHINE_GPU_BYTES))
            return false;
    return true;
}

/* Older traces describe the machine as one JSON text. */
static bool read_machine(struct sonde_trace *trace, uint32_t process)
{
    static const struct {
        const char *part, *member;
        uint16_t    field;
    } members[] = {
        { "system", "system", SND_FIELD_MACHINE_SYSTEM },
        { "system", "node", SND_FIELD_MACHINE_NODE },
        { "system", "release", SND_FIELD_MACHINE_RELEASE },
        { "cpu", "model", SND_FIELD_MACHINE_CPU },
        { "cpu", "architecture", SND_FIELD_MACHINE_ARCHITECTURE },
        { "cpu", "physical", SND_FIELD_MACHINE_CORES },
        { "cpu", "total", SND_FIELD_MACHINE_CPUS },
        { "cpu", "hertz", SND_FIELD_MACHINE_HERTZ },
        { "memory", "total", SND_FIELD_MACHINE_MEMORY_BYTES },
        { "memory", "used", SND_FIELD_MACHINE_USED_BYTES },
        { "memory", "available", SND_FIELD_MACHINE_AVAILABLE_BYTES },
    };
    uint32_t         at = 0;
    struct snd_fact *fact = (struct snd_fact *)snd_fact_next(trace, process, SND_FACT_OF_MACHINE,
                                                             &at);
    struct snd_value part;

    if (!fact || !has_field(fact, SND_FIELD_MACHINE_DESCRIPTION))
        return true;
    struct sonde_text json = snd_fact_text(fact, SND_FIELD_MACHINE_DESCRIPTION);
    if (!snd_json_is_value(json.bytes, json.length))
        return true;
    for (size_t i = 0; i < SND_COUNT_OF(members); i++)
        if (snd_member_find(json.bytes, json.length, members[i].part, &part) &&
            !add_part(trace, fact, part, members[i].member, members[i].field))
            return false;
    return add_gpus(trace, fact, json);
}

bool snd_facts_read_text(struct sonde_trace *trace, uint32_t process)
{
    struct sonde_text rest, value;

    for (size_t i = 0; i < SND_COUNT_OF(texts); i++)
        for (uint32_t n = 0; texts[i].meta != SND_META_NONE &&
                             snd_meta_next(trace, process, texts[i].meta, &n, &rest, &value);)
            if (!read_one(trace, process, texts[i].kind, rest, value))
                return false;
    return read_whole(trace, process, SND_META_MODEL_MACHINE, SND_FACT_OF_MACHINE,
                      SND_FIELD_MACHINE_DESCRIPTION) &&
           read_whole(trace, process, SND_META_MODEL_FAILURE, SND_FACT_OF_FAILURE,
                      SND_FIELD_FAILURE_REASON) &&
           read_machine(trace, process);
}
