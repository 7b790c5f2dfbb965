/* SPDX-License-Identifier: Apache-2.0 */
/* model/python/function_table.c - functions and pairs of caller and callee, each once: counted_functions.h. */
#include "model/python/counted_functions.h"

static uint32_t add_function(struct sonde_functions *f, struct snd_key place,
                             const struct sonde_frame *frame)
{
    if (!snd_grow(&f->rows, &f->room, f->count, sizeof *f->rows) ||
        !snd_map_put(&f->by_place, place, f->count))
        return UINT32_MAX;
    f->rows[f->count] = (struct sonde_function){ .file = frame->file,
                                                 .name = frame->function,
                                                 .line = (uint32_t)place.b };
    return f->count++;
}

/* Texts of a trace are each there once: the same bytes have the same address. */
static struct snd_key place_of(const struct sonde_frame *frame)
{
    return (struct snd_key){ (uint64_t)(uintptr_t)frame->file.bytes,
                             frame->first_line ? frame->first_line : frame->line,
                             (uint64_t)(uintptr_t)frame->function.bytes };
}

uint32_t snd_function_of(struct sonde_functions *f, uint32_t process, uint32_t frame)
{
    struct snd_key     key = { process, frame, 0 };
    struct sonde_frame shown;
    uint32_t           row;

    if (snd_map_get(&f->by_frame, key, &row))
        return row;
    sonde_trace_frame(f->trace, process, frame, &shown); /* one that is not there: "(unknown)" */
    struct snd_key place = place_of(&shown);
    if (!snd_map_get(&f->by_place, place, &row))
        row = add_function(f, place, &shown);
    return row != UINT32_MAX && snd_map_put(&f->by_frame, key, row) ? row : UINT32_MAX;
}

uint32_t snd_call_of(struct sonde_functions *f, uint32_t caller, uint32_t callee)
{
    struct snd_key key = { (uint64_t)caller, callee, 0 };
    uint32_t       call;

    if (snd_map_get(&f->by_pair, key, &call))
        return call;
    if (!snd_grow(&f->calls, &f->call_room, f->call_count, sizeof *f->calls) ||
        !snd_map_put(&f->by_pair, key, f->call_count))
        return UINT32_MAX;
    f->calls[f->call_count] = (struct sonde_call){ .caller = caller, .callee = callee };
    return f->call_count++;
}
