/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/lookup.c - questions to an open trace: processes, threads, strings, shapes, stacks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "format/dtypes.h"
#include "format/metadata.h"
#include "read/reader.h"

static const struct sonde_text unknown = { "(unknown)", 9 };

uint32_t sonde_trace_process_count(const struct sonde_trace *trace)
{
    return trace->process_count;
}

bool snd_trace_has_works(const struct sonde_trace *trace)
{
    for (uint32_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].tables.work_count > 0)
            return true;
    return false;
}

const struct sonde_process *sonde_trace_process(const struct sonde_trace *trace, uint32_t index)
{
    return index < trace->process_count ? &trace->processes[index].shown : NULL;
}

uint32_t sonde_trace_thread_count(const struct sonde_trace *trace)
{
    return trace->thread_count;
}

const struct sonde_thread *sonde_trace_thread(const struct sonde_trace *trace, uint32_t index)
{
    return index < trace->thread_count ? &trace->threads[index].shown : NULL;
}

struct sonde_text sonde_trace_string(const struct sonde_trace *trace, uint32_t process, uint32_t id)
{
    if (process >= trace->process_count)
        return unknown;
    uint32_t name = snd_name_of(&trace->processes[process], id);
    if (name == UINT32_MAX)
        return unknown;
    return (struct sonde_text){ trace->names.items[name].bytes, trace->names.items[name].length };
}

bool sonde_trace_metadata(const struct sonde_trace *trace, uint32_t process, uint32_t n,
                          struct sonde_text *key, struct sonde_text *value)
{
    if (process >= trace->process_count || n >= trace->processes[process].tables.meta_count)
        return false;
    *key = sonde_trace_string(trace, process, trace->processes[process].tables.metas[n].key);
    *value = sonde_trace_string(trace, process, trace->processes[process].tables.metas[n].value);
    return true;
}

bool sonde_trace_tally(const struct sonde_trace *trace, uint32_t process, uint32_t n,
                       struct sonde_tally_row *row)
{
    static_assert(SND_COUNT_OF(row->words) == SND_TALLY_WORDS_MAX, "copied whole");

    if (process >= trace->process_count || n + 1 >= trace->processes[process].tables.tally_count)
        return false;
    const struct snd_tally *tally = &trace->processes[process].tables.tallies[n + 1];
    *row = (struct sonde_tally_row){ .kind = tally->head.kind,
                                     .key = tally->head.key,
                                     .other = tally->head.other,
                                     .count = tally->head.count };
    memcpy(row->words, tally->words, sizeof row->words);
    return true;
}

/* ------------------------------------------------------------------ shapes */

/* Text that is cut at `size` bytes; its whole length is counted. */
struct writer {
    char  *buffer;
    size_t size, length;
};

static void put(struct writer *w, const char *text)
{
    size_t length = strlen(text);

    if (w->length < w->size) {
        size_t room = w->size - w->length - 1;
        memcpy(w->buffer + w->length, text, length < room ? length : room);
        w->buffer[w->length + (length < room ? length : room)] = '\0';
    }
    w->length += length;
}

struct items {
    const uint8_t *at, *end;
    uint32_t       left;
};

static bool next_item(struct items *items, struct snd_shape_item *item)
{
    if (items->left == 0 || (size_t)(items->end - items->at) < sizeof *item)
        return false;
    memcpy(item, items->at, sizeof *item);
    items->at += sizeof *item;
    items->left--;
    if (item->kind == SND_SHAPE_TENSOR && item->count > (size_t)(items->end - items->at) / 8)
        return false;
    return true;
}

static void put_dims(struct writer *w, struct items *items, uint32_t count)
{
    char text[32];

    put(w, "[");
    for (uint32_t i = 0; i < count; i++, items->at += 8) {
        int64_t dim;
        memcpy(&dim, items->at, sizeof dim);
        snprintf(text, sizeof text, "%s%" PRId64, i ? ", " : "", dim);
        put(w, text);
    }
    put(w, "]");
}

/* A list argument: torch shows one of tensors nested, and one of anything else as []. */
static bool has_tensor(struct items items, uint32_t count)
{
    struct snd_shape_item item;

    for (; count > 0 && next_item(&items, &item); count--) {
        if (item.kind == SND_SHAPE_TENSOR)
            return true;
    }
    return false;
}

static bool put_list(struct writer *w, struct items *items, uint32_t count, bool nested)
{
    struct snd_shape_item item;
    bool                  shown = nested && has_tensor(*items, count);

    put(w, "[");
    for (uint32_t i = 0; i < count; i++) {
        if (!next_item(items, &item))
            return false;
        if (shown && i > 0)
            put(w, ", ");
        if (item.kind == SND_SHAPE_TENSOR && shown)
            put_dims(w, items, item.count);
        else if (item.kind == SND_SHAPE_TENSOR)
            items->at += (size_t)item.count * 8;
        else if (shown)
            put(w, "[]"); /* lists in lists are not written */
    }
    put(w, "]");
    return true;
}

size_t sonde_trace_shapes(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                          char *buffer, size_t size)
{
    return snd_trace_shapes(trace, process, id, true, buffer, size);
}

/* The arguments that the record `id` lists; false: there is no such record. */
static bool find_items(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                       struct items *items)
{
    if (process >= trace->process_count || id == 0 ||
        id >= trace->processes[process].tables.shape_count)
        return false;
    const struct snd_shape_record *record = &trace->processes[process].tables.shapes[id];
    if (!record->bytes) /* a damaged chunk had it */
        return false;
    *items = (struct items){ record->bytes, record->bytes + record->size, record->items };
    return true;
}

size_t snd_trace_shapes(const struct sonde_trace *trace, uint32_t process, uint32_t id, bool nested,
                        char *buffer, size_t size)
{
    struct writer         w = { buffer, size, 0 };
    struct items          items;
    struct snd_shape_item item;

    if (size > 0)
        buffer[0] = '\0';
    if (!find_items(trace, process, id, &items))
        return 0;
    put(&w, "[");
    for (bool first = true; next_item(&items, &item); first = false) {
        if (!first)
            put(&w, ", ");
        if (item.kind == SND_SHAPE_TENSOR)
            put_dims(&w, &items, item.count);
        else if (item.kind == SND_SHAPE_LIST && !put_list(&w, &items, item.count, nested))
            break;
        else if (item.kind != SND_SHAPE_LIST)
            put(&w, "[]");
    }
    put(&w, "]");
    return w.length;
}

size_t sonde_trace_arguments(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                             struct sonde_argument *arguments, size_t size)
{
    struct items          items;
    struct snd_shape_item item;
    size_t                count = 0;

    if (!find_items(trace, process, id, &items))
        return 0;
    for (; next_item(&items, &item); count++) {
        bool is_tensor = item.kind == SND_SHAPE_TENSOR;
        if (count < size) /* the record is in an arena, aligned to 8 bytes */
            arguments[count] = (struct sonde_argument){
                item.kind, item.dtype, item.count,
                is_tensor ? (const int64_t *)(const void *)items.at : NULL
            };
        if (is_tensor)
            items.at += (size_t)item.count * 8;
    }
    return count;
}

/* The C++ names, which torch prints. */
static const char *dtype_name(uint8_t number)
{
    const struct snd_dtype *dtype = snd_dtype(number);

    return dtype ? dtype->cxx : "";
}

const char *sonde_argument_type(const struct sonde_argument *arguments, size_t count, size_t index)
{
    const struct sonde_argument *a = &arguments[index];

    switch (a->kind) {
    case SND_SHAPE_TENSOR:
        return dtype_name(a->dtype);
    case SND_SHAPE_SCALAR:
        return "Scalar";
    case SND_SHAPE_LIST:
        return a->count > 0 && index + 1 < count && a[1].kind == SND_SHAPE_SCALAR ? "ScalarList"
                                                                                  : "TensorList";
    default:
        return "";
    }
}

/* ------------------------------------------------------------------ stacks */

bool sonde_trace_frame(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                       struct sonde_frame *frame)
{
    *frame = (struct sonde_frame){ unknown, { "", 0 }, 0, 0 };
    if (process >= trace->process_count)
        return false;
    const struct snd_tables *t = &trace->processes[process].tables;
    if (id == 0 || id >= t->frame_count || t->frames[id].function == 0)
        return false;
    frame->function = sonde_trace_string(trace, process, t->frames[id].function);
    if (t->frames[id].file != 0)
        frame->file = sonde_trace_string(trace, process, t->frames[id].file);
    frame->line = t->frames[id].line;
    frame->first_line = SND_FRAME_FIRST_LINE(t->frames[id].flags);
    return true;
}

/* The `most` innermost frames of a stack, storing `size` of them; returns how many there are. */
static size_t get_frames(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                         struct sonde_frame *frames, size_t size, size_t most)
{
    if (process >= trace->process_count)
        return 0;
    const struct snd_tables *t = &trace->processes[process].tables;
    size_t                   count = 0;
    /* A parent's id is less than its child's, so this ends. */
    for (; id != 0 && id < t->stack_count && count < most; id = t->stacks[id].parent, count++)
        if (count < size)
            sonde_trace_frame(trace, process, t->stacks[id].frame, &frames[count]);
    return count;
}

bool snd_stack_next(const struct sonde_trace *trace, uint32_t process, uint32_t *id,
                    struct sonde_frame *frame)
{
    if (get_frames(trace, process, *id, frame, 1, 1) == 0)
        return false;
    *id = trace->processes[process].tables.stacks[*id].parent;
    return true;
}

size_t sonde_trace_stack(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                         struct sonde_frame *frames, size_t size)
{
    return get_frames(trace, process, id, frames, size, SND_STACK_MAX);
}

/* ------------------------------------------------------------- file names */

static struct sonde_text name_text(const struct sonde_trace *trace, const struct snd_process *p,
                                   uint32_t id)
{
    uint32_t name = snd_name_of(p, id);

    if (name == UINT32_MAX)
        return unknown;
    return (struct sonde_text){ trace->names.items[name].bytes, trace->names.items[name].length };
}

/* One string of a JSON list, its escapes undone; no bytes at the end. False: memory is out. */
static bool next_prefix(struct snd_tables *t, const char **at, struct snd_text *out)
{
    const char *start = strchr(*at, '"'), *end = start;

    *out = (struct snd_text){ NULL, 0 };
    if (!start)
        return true;
    for (end++; *end && *end != '"'; end++)
        end += *end == '\\' && end[1];
    char *copy = snd_arena_copy(&t->arena, start + 1, (size_t)(end - start - 1));
    if (!copy)
        return false;
    size_t n = 0;
    for (const char *c = start + 1; c < end; c++) {
        c += *c == '\\' && c + 1 < end;
        copy[n++] = *c;
    }
    copy[n] = '\0';
    *out = (struct snd_text){ copy, n };
    *at = *end ? end + 1 : end;
    return true;
}

bool snd_prefixes_read(const struct sonde_trace *trace, struct snd_process *process)
{
    const char        *key = snd_meta_key(SND_META_PYTHON_PREFIXES);
    struct snd_tables *t = &process->tables;

    for (uint32_t i = 0; i < t->meta_count; i++) {
        struct sonde_text name = name_text(trace, process, t->metas[i].key);
        if (name.length != strlen(key) || memcmp(name.bytes, key, name.length) != 0)
            continue;
        const char     *at = name_text(trace, process, t->metas[i].value).bytes;
        struct snd_text prefix;
        do {
            if (!next_prefix(t, &at, &prefix) ||
                !snd_grow(&t->prefixes, &t->prefix_room, t->prefix_count, sizeof *t->prefixes))
                return false;
            if (prefix.bytes)
                t->prefixes[t->prefix_count++] = prefix;
        } while (prefix.bytes);
    }
    return true;
}

struct sonde_text snd_file_shown(const struct sonde_trace *trace, uint32_t process,
                                 struct sonde_text file)
{
    const struct snd_tables *t = &trace->processes[process].tables;

    for (uint32_t i = 0; i < t->prefix_count; i++) {
        size_t length = t->prefixes[i].length;
        if (length > 0 && file.length >= length &&
            memcmp(file.bytes, t->prefixes[i].bytes, length) == 0)
            return (struct sonde_text){ file.bytes + length, file.length - length };
    }
    return file;
}
