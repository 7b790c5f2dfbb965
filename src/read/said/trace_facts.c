/* SPDX-License-Identifier: Apache-2.0 */
#include "read/said/trace_facts.h"

#include <stdlib.h>
#include <string.h>

#include "format/facts.h"
#include "read/reader.h"

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

struct snd_fact *snd_fact_make(struct snd_process *process, uint32_t kind,
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

bool snd_fact_add(struct snd_fact *fact, const struct snd_fact_value *value)
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
    return snd_fact_add(fact, &value);
}

static bool read_record(const struct sonde_trace *trace, struct snd_process *process,
                        const struct snd_fact_bytes *bytes)
{
    struct snd_fact_record record;

    memcpy(&record, bytes->bytes, sizeof record);
    struct sonde_text subject = text_of(trace, process, record.subject);
    struct snd_fact  *fact = snd_fact_make(process, record.kind, subject, record.number);
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
