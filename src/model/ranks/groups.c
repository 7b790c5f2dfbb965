/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "base/text/json_member.h"
#include "format/dtypes.h"
#include "read/said/trace_facts.h"

#define TYPE_NAME_MAX 64 /* longer than any: cut, it is none of the list */

#define RANKS_MAX 1000000u /* of a group, as a trace may say */

/* ------------------------------------------------------------------ kinds */

static const struct {
    const char *word;
    int         from, to, per;
} kinds[] = {
#define SND_COLLECTIVE(name, word, from, to, per) { word, from, to, per },
#define SND_CALLED(name, prefix)
#include "model/ranks/collective_kinds.def"
#undef SND_CALLED
#undef SND_COLLECTIVE
};

static const struct {
    const char              *prefix;
    enum snd_collective_kind kind;
} called[] = {
#define SND_COLLECTIVE(name, word, from, to, per)
#define SND_CALLED(name, prefix) { prefix, SND_COLLECTIVE_##name },
#include "model/ranks/collective_kinds.def"
#undef SND_CALLED
#undef SND_COLLECTIVE
};

const char *snd_collective_word(enum snd_collective_kind kind)
{
    return kinds[kind].word;
}

double snd_collective_bus_share(enum snd_collective_kind kind, uint32_t group_size)
{
    double n = group_size, per = kinds[kind].per;

    return n > 0 ? (kinds[kind].from * n + kinds[kind].to) / (per * n + 1 - per) : 0;
}

/* By the name that a backend or an operator has for it. */
static enum snd_collective_kind find_kind(const char *name, size_t length)
{
    while (length > 0 && name[0] == '_') {
        name++;
        length--;
    }
    for (size_t i = 0; i < SND_COUNT_OF(called); i++) {
        size_t n = strlen(called[i].prefix);
        if (length >= n && memcmp(name, called[i].prefix, n) == 0)
            return called[i].kind;
    }
    return SND_COLLECTIVE_OTHER;
}

/* Bytes of an element, by c10's name of the type ("Float", "UInt16") or ours ("float32"); 0: not known. */
static uint64_t find_bytes(const char *name)
{
    /* Those that differ from ours in more than capitals. */
    static const struct {
        const char *name;
        uint8_t     dtype;
    } types[] = {
        { "Byte", SONDE_UINT8 },
        { "Char", SONDE_INT8 },
        { "Short", SONDE_INT16 },
        { "Int", SONDE_INT32 },
        { "Long", SONDE_INT64 },
        { "Half", SONDE_FLOAT16 },
        { "Float", SONDE_FLOAT32 },
        { "Double", SONDE_FLOAT64 },
        { "ComplexHalf", SONDE_COMPLEX32 },
        { "ComplexFloat", SONDE_COMPLEX64 },
        { "ComplexDouble", SONDE_COMPLEX128 },
    };
    char small[TYPE_NAME_MAX];

    for (size_t i = 0; i < SND_COUNT_OF(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return snd_dtype(types[i].dtype)->bytes;
    snprintf(small, sizeof small, "%s", name);
    for (char *c = small; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c += 'a' - 'A';
    const struct snd_dtype *known = snd_dtype(snd_dtype_find(small));
    return known ? known->bytes : 0;
}

/* ----------------------------------------------------------------- groups */

void snd_groups_begin(struct snd_groups *g, struct sonde_trace *trace)
{
    static const char gloo[] = "gloo:";

    *g = (struct snd_groups){ .trace = trace };
    for (uint32_t i = 0; i < trace->names.count && !g->has_async; i++)
        g->has_async = trace->names.items[i].length >= sizeof gloo - 1 &&
                       memcmp(trace->names.items[i].bytes, gloo, sizeof gloo - 1) == 0;
}

bool snd_groups_any(const struct sonde_trace *trace)
{
    static const char described[] = "\"Collective name\"";

    for (uint32_t i = 0; i < trace->names.count; i++)
        if (memmem(trace->names.items[i].bytes, trace->names.items[i].length, described,
                   sizeof described - 1))
            return true;
    return false;
}

void snd_groups_release(struct snd_groups *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        free(g->groups[i].ranks);
    free(g->groups);
    free(g->specs);
    snd_map_release(&g->index);
    snd_texts_release(&g->keys);
}

uint32_t snd_group_rank(const struct snd_group *group, uint32_t own)
{
    return group->ranks && own < group->size ? group->ranks[own] : SONDE_NONE;
}

/* A member of the call's text as a text that lives as long as the trace; empty: it has none. */
static bool keep_member(struct snd_groups *g, struct sonde_text json, const char *key,
                        struct sonde_text *out)
{
    struct sonde_buffer text = { 0 };
    struct snd_value    value;
    uint32_t            number;
    bool                good = true;

    *out = (struct sonde_text){ "", 0 };
    if (snd_member_find(json.bytes, json.length, key, &value) && snd_value_text(value, &text) &&
        text.length > 0) {
        good = snd_texts_add(&g->trace->names, text.bytes, text.length, &number);
        if (good)
            *out = (struct sonde_text){ g->trace->names.items[number].bytes, text.length };
    }
    good &= !text.failed;
    sonde_buffer_release(&text);
    return good;
}

static const struct snd_fact *find_fact(const struct snd_groups *g, uint32_t process,
                                        struct sonde_text name)
{
    const struct snd_fact *fact;
    uint32_t               at = 0;

    while ((fact = snd_fact_next(g->trace, process, SND_FACT_OF_GROUP, &at)))
        if (fact->subject.length == name.length &&
            memcmp(fact->subject.bytes, name.bytes, name.length) == 0)
            return fact;
    return NULL;
}

static struct sonde_text find_job(const struct snd_groups *g, uint32_t process)
{
    uint32_t               at = 0;
    const struct snd_fact *fact = snd_fact_next(g->trace, process, SND_FACT_OF_RANK, &at);

    return fact ? snd_fact_text(fact, SND_FIELD_RANK_JOB) : (struct sonde_text){ "", 0 };
}

/* Ranks as numbers of a list; false: memory is out. */
static bool add_rank(uint32_t **ranks, uint32_t *room, uint32_t *count, int64_t rank)
{
    if (rank < 0 || rank >= SONDE_NONE || *count >= RANKS_MAX)
        return true;
    if (!snd_grow(ranks, room, *count, sizeof **ranks))
        return false;
    (*ranks)[(*count)++] = (uint32_t)rank;
    return true;
}

/* Who is in the group: as the fact says, or the call's own text; else all from 0 on, if it is the group of all. */
static bool find_ranks(struct snd_groups *g, uint32_t process, const struct snd_fact *fact,
                       struct sonde_text json, struct snd_group *group)
{
    uint32_t         count = 0, room = 0, world = g->trace->processes[process].shown.world_size;
    struct snd_value list, one;
    bool             good = true;

    for (uint32_t i = 0; fact && i < fact->count && good; i++)
        if (fact->values[i].field == SND_FIELD_GROUP_RANK)
            good = add_rank(&group->ranks, &room, &count, fact->values[i].number);
    if (count == 0 && snd_member_find(json.bytes, json.length, "Process Group Ranks", &list) &&
        list.length > 0 && list.bytes[0] == '[')
        for (size_t at = 0; good && snd_value_next(list, &at, NULL, &one);)
            good = add_rank(&group->ranks, &room, &count, strtoll(one.bytes, NULL, 10));
    bool is_all = snd_text_is(group->description, "default_pg") || group->size == world;
    for (uint32_t i = 0; count == 0 && good && is_all && i < group->size; i++) {
        uint32_t made = i;
        good = add_rank(&group->ranks, &room, &made, i);
    }
    if (count > 0 && group->size == 0)
        group->size = count;
    if (count > 0 && count != group->size) { /* a list that was cut */
        free(group->ranks);
        group->ranks = NULL;
    }
    return good;
}

/* The number of a group of which this is the description; takes its ranks. SONDE_NONE: memory is out. */
static uint32_t number_group(struct snd_groups *g, struct snd_group *group)
{
    struct sonde_buffer key = { 0 };
    uint32_t            number = SONDE_NONE;

    snd_buf_put(&key, group->job.bytes, group->job.length);
    snd_buf_put(&key, "", 1);
    snd_buf_put(&key, group->name.bytes, group->name.length);
    snd_buf_put(&key, "", 1);
    if (group->ranks)
        snd_buf_put(&key, group->ranks, group->size * sizeof *group->ranks);
    if (key.failed || !snd_texts_add(&g->keys, key.bytes, key.length, &number)) {
        number = SONDE_NONE;
    } else if (number == g->count) {
        if (snd_grow(&g->groups, &g->room, g->count, sizeof *g->groups)) {
            g->groups[g->count++] = *group;
            group->ranks = NULL;
        } else {
            number = SONDE_NONE;
        }
    }
    free(group->ranks);
    sonde_buffer_release(&key);
    return number;
}

static uint32_t find_group(struct snd_groups *g, uint32_t process, struct sonde_text json)
{
    struct snd_group group = { .job = find_job(g, process) };

    if (!keep_member(g, json, "Process Group Name", &group.name) ||
        !keep_member(g, json, "Process Group Description", &group.description))
        return SONDE_NONE;
    const struct snd_fact *fact = find_fact(g, process, group.name);
    int64_t                size = snd_member_number(json.bytes, json.length, "Group size", 0);
    if (fact)
        size = snd_fact_number(fact, SND_FIELD_GROUP_SIZE, size);
    group.size = size > 0 && size <= RANKS_MAX ? (uint32_t)size : 0;
    struct sonde_text backend = fact ? snd_fact_text(fact, SND_FIELD_GROUP_BACKEND)
                                     : (struct sonde_text){ "", 0 };
    group.is_async = g->has_async && !snd_text_is(backend, "nccl");
    if (!find_ranks(g, process, fact, json, &group)) {
        free(group.ranks);
        return SONDE_NONE;
    }
    return number_group(g, &group);
}

/* ------------------------------------------------------------------ calls */

static uint32_t find_number(struct sonde_text json, const char *key)
{
    int64_t number = snd_member_number(json.bytes, json.length, key, -1);

    return number >= 0 && number < SONDE_NONE ? (uint32_t)number : SONDE_NONE;
}

static bool read_spec(struct snd_groups *g, uint32_t process, struct sonde_text json,
                      struct snd_collective_spec *spec)
{
    struct sonde_text name;

    *spec = (struct snd_collective_spec){ .group = find_group(g, process, json) };
    if (spec->group == SONDE_NONE || !keep_member(g, json, "Collective name", &name) ||
        !keep_member(g, json, "dtype", &spec->dtype))
        return false;
    int64_t  in = snd_member_number(json.bytes, json.length, "In msg nelems", 0);
    int64_t  out = snd_member_number(json.bytes, json.length, "Out msg nelems", 0);
    uint64_t most = (uint64_t)(in > out ? in : out);
    spec->kind = find_kind(name.bytes, name.length);
    spec->size_bytes = in < 0 || out < 0 || most > UINT64_MAX / 32
                           ? 0
                           : most * find_bytes(spec->dtype.bytes);
    spec->own = find_number(json, "Rank");
    spec->peer = find_number(json, spec->kind == SND_COLLECTIVE_SEND ? "Dst Rank" : "Src Rank");
    spec->sequence = snd_member_number(json.bytes, json.length, "Seq", -1);
    return true;
}

uint32_t snd_groups_spec(struct snd_groups *g, uint32_t process, uint32_t id)
{
    struct snd_key key = { process, id, 0 };
    uint32_t       at, name = snd_name_of(&g->trace->processes[process], id);

    if (snd_map_get(&g->index, key, &at))
        return at;
    at = g->spec_count;
    struct sonde_text json = { "", 0 };
    if (name != UINT32_MAX)
        json = (struct sonde_text){ g->trace->names.items[name].bytes,
                                    g->trace->names.items[name].length };
    if (!snd_grow(&g->specs, &g->spec_room, at, sizeof *g->specs) ||
        !read_spec(g, process, json, &g->specs[at]) || !snd_map_put(&g->index, key, at))
        return SONDE_NONE;
    g->spec_count++;
    return at;
}
