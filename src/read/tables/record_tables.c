/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/record_tables.c - the records of a process: strings, tensor lists, frames, stacks, threads.
 *
 * An id indexes an array, so it may not be what a hostile file likes: one that lies far beyond
 * the records seen so far is refused, which still leaves room for a damaged chunk between.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "format/fields.h"
#include "read/said/trace_facts.h"
#include "read/reader.h"

#define ID_SLACK 65536u

struct parser {
    struct sonde_trace *trace;
    struct snd_process *process;
    struct snd_tables  *tables;
};

/* Room for `id` in an array whose entries up to `*count` exist; new ones are zero. */
static bool make_entry(void *array_of_any, uint32_t *count, uint32_t *room, uint32_t id,
                       size_t item)
{
    void *array;

    if (id < *count)
        return true;
    while (id >= *room)
        if (!snd_grow(array_of_any, room, *room, item))
            return false;
    memcpy(&array, array_of_any, sizeof array);
    memset((char *)array + *count * item, 0, (id + 1 - *count) * item);
    *count = id + 1;
    return true;
}

static bool is_plausible(struct parser *p, uint32_t id, uint32_t count)
{
    bool plausible = id != 0 && id <= (uint64_t)count * 2 + ID_SLACK;

    p->process->damage.bad_ids += !plausible;
    return plausible;
}

/* Parsers of a record: `size` bytes after the head. They return false when memory is out. */

static bool parse_string(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;
    uint32_t           length, name;

    if (size < sizeof length || !is_plausible(p, id, t->name_count))
        return true;
    memcpy(&length, data, sizeof length);
    if (length > size - sizeof length) {
        p->process->damage.bad_ids++;
        return true;
    }
    if (!make_entry(&t->names, &t->name_count, &t->name_room, id, sizeof *t->names) ||
        !snd_texts_add(&p->trace->names, (const char *)data + sizeof length, length, &name))
        return false;
    if (t->names[id] == 0)
        t->names[id] = name + 1;
    if (id >= t->file_names)
        t->file_names = id + 1;
    return true;
}

static bool parse_shapes(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;
    uint32_t           items;

    if (size < 8 || !is_plausible(p, id, t->shape_count))
        return true;
    memcpy(&items, data, sizeof items);
    if (!make_entry(&t->shapes, &t->shape_count, &t->shape_room, id, sizeof *t->shapes))
        return false;
    if (t->shapes[id].bytes)
        return true;
    char *copy = snd_arena_copy(&t->arena, data + 8, size - 8);
    if (!copy)
        return false;
    t->shapes[id] = (struct snd_shape_record){ (const uint8_t *)copy, (uint32_t)(size - 8), items };
    return true;
}

/* Keeps a record as it is; one of an older file may have `least` bytes only: the rest is zero. */
static bool keep(struct parser *p, void *array_of_any, uint32_t *count, uint32_t *room, uint32_t id,
                 size_t least, size_t item, const uint8_t *data, size_t size)
{
    char *array;

    if (size < least || !is_plausible(p, id, *count))
        return true;
    if (!make_entry(array_of_any, count, room, id, item))
        return false;
    memcpy(&array, array_of_any, sizeof array);
    memset(array + id * item, 0, item);
    memcpy(array + id * item, data, size < item ? least : item);
    return true;
}

static bool parse_frame(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;

    return keep(p, &t->frames, &t->frame_count, &t->frame_room, id, SND_FRAME_PLAIN_SIZE,
                sizeof *t->frames, data, size);
}

static bool parse_stack(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;
    uint32_t           pair[2];

    if (size < sizeof pair || !is_plausible(p, id, t->stack_count))
        return true;
    memcpy(pair, data, sizeof pair);
    if (pair[0] >=
        id) { /* a cycle, or a parent that is not defined yet: the recorder writes neither */
        p->process->damage.bad_ids++;
        pair[0] = 0;
    }
    if (!make_entry(&t->stacks, &t->stack_count, &t->stack_room, id, sizeof *t->stacks))
        return false;
    t->stacks[id] = (struct snd_stack_node){ pair[0], pair[1] };
    return true;
}

static bool parse_thread(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;

    return keep(p, &t->threads, &t->thread_count, &t->thread_room, id, sizeof *t->threads,
                sizeof *t->threads, data, size);
}

static bool parse_clock(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_clock_pair pair;

    (void)id;
    if (size >= sizeof pair) {
        memcpy(&pair, data, sizeof pair);
        snd_baseline_add(&p->process->baseline, &pair);
    }
    return true;
}

static bool parse_meta(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;
    uint32_t           pair[2];

    (void)id;
    if (size < sizeof pair)
        return true;
    memcpy(pair, data, sizeof pair);
    uint32_t       i;
    struct snd_key key = { pair[0], 0, 0 };
    /* A later one of the key replaces. Each module of a network has one; a file cannot have more
     * than it has bytes for. */
    if (!snd_map_get(&t->meta_index, key, &i)) {
        i = t->meta_count;
        if (!snd_grow(&t->metas, &t->meta_room, i, sizeof *t->metas) ||
            !snd_map_put(&t->meta_index, key, i))
            return false;
        t->meta_count++;
    }
    t->metas[i].key = pair[0];
    t->metas[i].value = pair[1];
    return true;
}

static bool parse_tally(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;
    struct snd_tally   tally = { 0 };

    if (size < sizeof tally.head || !is_plausible(p, id, t->tally_count))
        return true;
    memcpy(&tally.head, data, sizeof tally.head);
    if (tally.head.count > SND_TALLY_WORDS_MAX)
        tally.head.count = SND_TALLY_WORDS_MAX; /* a later version's: the first ones are known */
    if (tally.head.count > (size - sizeof tally.head) / 8) {
        p->process->damage.bad_ids++;
        return true;
    }
    memcpy(tally.words, data + sizeof tally.head, tally.head.count * sizeof tally.words[0]);
    if (!make_entry(&t->tallies, &t->tally_count, &t->tally_room, id, sizeof *t->tallies))
        return false;
    t->tallies[id] = tally;
    return true;
}

size_t snd_call_attrs(const struct snd_call_record *call,
                      struct snd_call_attr          attrs[SND_CALL_ATTRS])
{
    const struct snd_call_attr all[SND_CALL_ATTRS] = {
        { SND_ATTR_STRIDES, call->strides },
        { SND_ATTR_ARGUMENTS, call->arguments },
        { SND_ATTR_SCOPE, call->scope },
        { SND_ATTR_FWD_THREAD, call->fwd_thread },
        { SND_ATTR_OVERLOAD, call->overload },
        { SND_ATTR_STACK, call->stack },
        { SND_ATTR_MODULE, call->module },
        { SND_ATTR_KEYWORDS, call->keywords },
        { SND_ATTR_COMPILED, call->compiled },
        { SND_ATTR_ASYNC, (call->flags & SND_CALL_ASYNC) != 0 },
    };
    size_t count = 0;

    for (size_t i = 0; i < SND_CALL_ATTRS; i++)
        if (all[i].value != 0)
            attrs[count++] = all[i];
    return count;
}

static bool parse_call(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables    *t = p->tables;
    struct snd_table_call call = { 0 };
    struct snd_call_attr  attrs[SND_CALL_ATTRS];

    if (size < SND_CALL_PLAIN || !is_plausible(p, id, t->call_count))
        return true;
    if (!make_entry(&t->calls, &t->call_count, &t->call_room, id, sizeof *t->calls))
        return false;
    memcpy(&call.record, data, size < sizeof call.record ? SND_CALL_PLAIN : sizeof call.record);
    for (size_t i = snd_call_attrs(&call.record, attrs); i-- > 0;)
        call.attr_mask |= 1u << attrs[i].key;
    t->calls[id] = call;
    return true;
}

static bool parse_queue(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;

    return keep(p, &t->queues, &t->queue_count, &t->queue_room, id, sizeof *t->queues,
                sizeof *t->queues, data, size);
}

static bool parse_work(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;

    return keep(p, &t->works, &t->work_count, &t->work_room, id, sizeof *t->works, sizeof *t->works,
                data, size);
}

static bool parse_symbol(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables       *t = p->tables;
    struct snd_symbol_record head;

    (void)id;
    if (size < sizeof head)
        return true;
    memcpy(&head, data, sizeof head);
    size_t bytes = (size_t)head.count * sizeof(struct snd_symbol_entry);
    if (head.count == 0 || head.count > SND_SYMBOL_ENTRIES_MAX || bytes > size - sizeof head) {
        p->process->damage.bad_ids++;
        return true;
    }
    const void *copy = snd_arena_copy(&t->arena, data + sizeof head, bytes);
    if (!copy || !snd_grow(&t->symbols, &t->symbol_room, t->symbol_count, sizeof *t->symbols))
        return false;
    t->symbols[t->symbol_count++] = (struct snd_symbol){ head.frame, head.count, copy };
    return true;
}

static bool parse_fact(struct parser *p, uint32_t id, const uint8_t *data, size_t size)
{
    struct snd_tables *t = p->tables;

    (void)id;
    if (size < sizeof(struct snd_fact_record))
        return true;
    char *copy = snd_arena_copy(&t->arena, data, size);
    if (!copy ||
        !snd_grow(&t->fact_bytes, &t->fact_bytes_room, t->fact_bytes_count, sizeof *t->fact_bytes))
        return false;
    t->fact_bytes[t->fact_bytes_count++] = (struct snd_fact_bytes){ (const uint8_t *)copy, size };
    return true;
}

static bool (*const parsers[])(struct parser *, uint32_t, const uint8_t *, size_t) = {
    [SND_REC_STRING] = parse_string, [SND_REC_SHAPES] = parse_shapes, [SND_REC_FRAME] = parse_frame,
    [SND_REC_STACK] = parse_stack,   [SND_REC_THREAD] = parse_thread, [SND_REC_CLOCK] = parse_clock,
    [SND_REC_META] = parse_meta,     [SND_REC_TALLY] = parse_tally,   [SND_REC_CALL] = parse_call,
    [SND_REC_FACT] = parse_fact,     [SND_REC_QUEUE] = parse_queue,   [SND_REC_WORK] = parse_work,
    [SND_REC_SYMBOL] = parse_symbol,
};

bool snd_record_parse(struct sonde_trace *trace, struct snd_process *process, uint8_t type,
                      uint32_t id, const uint8_t *payload, size_t size)
{
    struct parser p = { trace, process, &process->tables };

    if (type < SND_COUNT_OF(parsers) && parsers[type])
        return parsers[type](&p, id, payload, size);
    process->damage.unknown_records++;
    return true;
}

bool snd_table_add_string(struct sonde_trace *trace, struct snd_process *process, const char *text,
                          size_t length, uint32_t *id)
{
    struct snd_tables *t = &process->tables;
    uint32_t           name;

    *id = t->name_count ? t->name_count : 1; /* 0 is none */
    if (!make_entry(&t->names, &t->name_count, &t->name_room, *id, sizeof *t->names) ||
        !snd_texts_add(&trace->names, text, length, &name))
        return false;
    t->names[*id] = name + 1;
    return true;
}

uint32_t snd_table_next_id(const struct snd_tables *t, uint8_t type)
{
    const struct {
        uint8_t  type;
        uint32_t count;
    } counts[] = {
        { SND_REC_STRING, t->name_count }, { SND_REC_SHAPES, t->shape_count },
        { SND_REC_FRAME, t->frame_count }, { SND_REC_STACK, t->stack_count },
        { SND_REC_CALL, t->call_count },   { SND_REC_QUEUE, t->queue_count },
        { SND_REC_WORK, t->work_count },
    };

    for (size_t i = 0; i < SND_COUNT_OF(counts); i++)
        if (counts[i].type == type)
            return counts[i].count ? counts[i].count : 1; /* 0 is none */
    return 0;
}

void snd_tables_release(struct snd_tables *t)
{
    snd_facts_release(t);
    free(t->names);
    free(t->shapes);
    free(t->frames);
    free(t->stacks);
    free(t->threads);
    free(t->metas);
    free(t->tallies);
    free(t->calls);
    free(t->queues);
    free(t->works);
    free(t->symbols);
    snd_map_release(&t->meta_index);
    snd_map_release(&t->late);
    free(t->prefixes);
    snd_arena_release(&t->arena);
}
