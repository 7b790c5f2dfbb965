/* SPDX-License-Identifier: Apache-2.0 */
#include "import/out/call_records.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/hash.h"

void snd_calls_release(struct snd_calls *calls)
{
    free(calls->ways);
    free(calls->is_code);
    snd_map_release(&calls->by_text);
    snd_map_release(&calls->variants);
}

static uint32_t hash_name(const char *name, size_t length)
{
    return (uint32_t)snd_hash_bytes(name, length, 1).low | 1;
}

static uint32_t add(struct snd_calls *calls, const struct snd_way *way)
{
    if (!snd_grow(&calls->ways, &calls->room, calls->count + 1, sizeof *calls->ways)) {
        calls->failed = true;
        return 0;
    }
    uint32_t id = snd_trace_record(calls->out, SND_REC_CALL, &way->record, SND_CALL_PLAIN);
    if (id == 0)
        return 0;
    calls->ways[id] = *way;
    calls->count = id;
    return id;
}

uint32_t snd_calls_add(struct snd_calls *calls, const struct snd_call_record *record,
                       const char *name, size_t length)
{
    static const char engine[] = "autograd::engine::evaluate_function: ";
    const size_t      prefix = sizeof engine - 1;
    struct snd_way    way = { .record = *record, .name_hash = hash_name(name, length) };

    if (length > prefix && memcmp(name, engine, prefix) == 0)
        way.runs_hash = hash_name(name + prefix, length - prefix);
    return add(calls, &way);
}

bool snd_calls_runs(const struct snd_calls *calls, uint32_t outer, uint32_t inner)
{
    return calls->ways[outer].runs_hash != 0 &&
           calls->ways[outer].runs_hash == calls->ways[inner].name_hash;
}

uint32_t snd_calls_variant(struct snd_calls *calls, uint32_t call, uint32_t stack, bool backward)
{
    struct snd_key key = { call, stack, backward };
    uint32_t       id;

    if (calls->ways[call].record.scope == SND_SCOPE_USER + 1)
        stack = 0;
    if ((stack == 0 && !backward) || snd_map_get(&calls->variants, key, &id))
        return stack == 0 && !backward ? call : id;
    struct snd_way way = calls->ways[call];
    way.record.stack = stack;
    if (backward)
        way.record.scope = SND_SCOPE_BACKWARD + 1;
    id = add(calls, &way);
    if (id == 0 || !snd_map_put(&calls->variants, key, id)) {
        calls->failed = true;
        return call;
    }
    return id;
}

/* -------------------------------------------------------------------- frames */

/* "file.py(123): name": where its parts are. */
static bool take_apart(const char *name, size_t length, size_t *file, uint32_t *line,
                       size_t *function)
{
    for (size_t i = length; i-- > 2;) {
        if (name[i] != ' ' || name[i - 1] != ':' || name[i - 2] != ')')
            continue;
        size_t   digits = i - 2;
        uint64_t number = 0, place = 1;
        while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9' &&
               place < 1000000000) {
            number += (uint64_t)(name[--digits] - '0') * place;
            place *= 10;
        }
        if (digits == 0 || digits == i - 2 || name[digits - 1] != '(' || digits == 1)
            continue;
        *file = digits - 1;
        *line = (uint32_t)number;
        *function = i + 1;
        return true;
    }
    return false;
}

uint32_t snd_calls_frame(struct snd_calls *calls, const char *name, size_t length)
{
    struct snd_hash         h = snd_hash_bytes(name, length, SND_REC_FRAME);
    struct snd_key          key = { h.low, h.high, SND_REC_FRAME };
    struct snd_frame_record frame = { 0 };
    size_t                  file, function = 0;
    uint32_t                id;

    if (snd_map_get(&calls->by_text, key, &id))
        return id;
    bool is_code = take_apart(name, length, &file, &frame.line, &function) && function < length;
    if (is_code) {
        frame.file = snd_trace_string(calls->out, name, file);
        frame.flags = SND_FRAME_FLAGS(frame.line);
    } else {
        function = 0;
        frame.line = 0;
    }
    frame.function = snd_trace_string(calls->out, name + function, length - function);
    id = snd_trace_record(calls->out, SND_REC_FRAME, &frame, SND_FRAME_PLAIN_SIZE);
    if (!snd_map_put(&calls->by_text, key, id) ||
        !snd_grow(&calls->is_code, &calls->frame_room, id, sizeof *calls->is_code)) {
        calls->failed = true;
        return 0;
    }
    calls->is_code[id] = is_code;
    calls->frame_count = id + 1;
    return id;
}

bool snd_calls_is_code(const struct snd_calls *calls, uint32_t frame)
{
    return frame < calls->frame_count && calls->is_code[frame];
}
