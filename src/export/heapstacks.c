/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of allocations as folded text and for speedscope: a line, or a sample, for each stack that has bytes
 * of the kind that was asked for. Memory that a process mapped itself is apart from malloc's.
 */
#include "export/heapstacks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "export/exporter.h"
#include "export/speedscope.h"
#include "read/reader.h"
#include "read/scale.h"

enum sonde_status snd_heap_stacks_open(struct snd_heap_stacks *stacks, struct sonde_trace *trace,
                                       struct sonde_error *err)
{
    *stacks = (struct snd_heap_stacks){ .mixed = { .trace = trace } };
    enum sonde_status st = snd_heaps_new(trace, false, &stacks->heaps, err);
    if (st != SONDE_OK)
        return st;
    if (!snd_heaps_heap(stacks->heaps, 0))
        return snd_fail(err, SONDE_E_STATE,
                        "the trace has no allocations; record them with sonde run --heap");
    stacks->frames = calloc(SND_HEAP_FRAMES_MAX, sizeof *stacks->frames);
    return stacks->frames ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
}

void snd_heap_stacks_rewind(struct snd_heap_stacks *stacks)
{
    stacks->heap_number = stacks->row_number = 0;
}

bool snd_heap_stacks_next(struct snd_heap_stacks *stacks)
{
    static const struct snd_mixed_frame unknown = {
        .frame = { .function = { "(not known)", 11 }, .file = { "", 0 } },
        .is_native = true,
    };

    while ((stacks->heap = snd_heaps_heap(stacks->heaps, stacks->heap_number)) != NULL &&
           stacks->row_number == stacks->heap->count) {
        stacks->heap_number++;
        stacks->row_number = 0;
    }
    if (!stacks->heap)
        return false;
    stacks->row = snd_heaps_row(stacks->heaps, stacks->heap->first + stacks->row_number++);
    stacks->count = snd_mixed_frames(&stacks->mixed, stacks->heap->process, stacks->row->stack, 0,
                                     stacks->frames, SND_HEAP_FRAMES_MAX);
    if (stacks->count > SND_HEAP_FRAMES_MAX)
        stacks->count = SND_HEAP_FRAMES_MAX;
    if (stacks->count == 0)
        stacks->frames[stacks->count++] = unknown;
    return true;
}

void snd_heap_stacks_release(struct snd_heap_stacks *stacks)
{
    snd_heaps_free(stacks->heaps);
    free(stacks->frames);
}

uint64_t snd_heap_stacks_bytes(const struct snd_heap_stacks *stacks, enum sonde_heap_bytes which)
{
    const struct snd_heap_sums *sums = &stacks->row->sums;

    if (which == SONDE_HEAP_ALLOCATED)
        return sums->bytes;
    return which == SONDE_HEAP_LEAKED ? sums->live_bytes : sums->peak_bytes;
}

/* "program 4242", "program 4242 (mapped)". */
static void name_heap(const struct snd_heap_stacks *stacks, struct sonde_buffer *name)
{
    const struct sonde_process *p = sonde_trace_process(stacks->mixed.trace, stacks->heap->process);

    snd_buf_clear(name);
    snd_buf_format(name, "%s %" PRIu32 "%s", p->program, p->pid,
                   stacks->heap->is_mapped ? " (mapped)" : "");
}

/* --------------------------------------------------------------------- folded */

static void put_clean(struct snd_out *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        snd_out_put(out, bytes[i] == ';' || (unsigned char)bytes[i] < ' ' ? "_" : &bytes[i], 1);
}

static void put_line(struct snd_heap_stacks *stacks, struct sonde_buffer *text, uint64_t bytes,
                     struct snd_out *out)
{
    name_heap(stacks, text);
    put_clean(out, text->bytes, text->length);
    for (size_t i = stacks->count; i-- > 0;) {
        const struct sonde_frame *f = &stacks->frames[i].frame;
        snd_buf_clear(text);
        snd_buf_put(text, f->function.bytes, f->function.length);
        if (f->file.length > 0)
            snd_buf_format(text, " (%.*s", (int)f->file.length, f->file.bytes);
        if (f->file.length > 0 && f->line > 0)
            snd_buf_format(text, ":%" PRIu32, f->line);
        snd_buf_text(text, f->file.length > 0 ? ")" : "");
        snd_out_text(out, ";");
        put_clean(out, snd_buf_string(text), text->length);
    }
    snd_out_format(out, " %" PRIu64 "\n", bytes);
}

SND_EXPORT_WRITE(snd_heap_folded)
{
    struct snd_heap_stacks stacks;
    struct sonde_buffer    text = { 0 };
    enum sonde_status      st = snd_heap_stacks_open(&stacks, trace, err);

    while (st == SONDE_OK && !text.failed && snd_heap_stacks_next(&stacks)) {
        uint64_t bytes = snd_heap_stacks_bytes(&stacks, options->heap);
        if (bytes > 0)
            put_line(&stacks, &text, bytes, out);
    }
    if (text.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    sonde_buffer_release(&text);
    snd_heap_stacks_release(&stacks);
    return st;
}

/* ----------------------------------------------------------------- speedscope */

static uint32_t number_of(struct snd_speedscope *s, const struct sonde_frame *frame)
{
    return snd_speedscope_frame(s, frame->function, frame->file,
                                frame->first_line ? frame->first_line : frame->line);
}

static void put_stacks(struct snd_speedscope *s, struct snd_heap_stacks *stacks, uint32_t heap,
                       enum sonde_heap_bytes which, struct snd_json *json)
{
    snd_heap_stacks_rewind(stacks);
    while (snd_heap_stacks_next(stacks)) {
        if (stacks->heap_number != heap || snd_heap_stacks_bytes(stacks, which) == 0)
            continue;
        snd_json_array(json, NULL);
        for (size_t i = stacks->count; i-- > 0;)
            snd_json_uint(json, NULL, number_of(s, &stacks->frames[i].frame));
        snd_json_end(json);
    }
}

static void put_bytes(struct snd_heap_stacks *stacks, uint32_t heap, enum sonde_heap_bytes which,
                      struct snd_json *json)
{
    snd_heap_stacks_rewind(stacks);
    while (snd_heap_stacks_next(stacks))
        if (stacks->heap_number == heap && snd_heap_stacks_bytes(stacks, which) > 0)
            snd_json_uint(json, NULL, snd_heap_stacks_bytes(stacks, which));
}

/* The heap with this number; its name and how many bytes it has come from its rows. */
static void put_profile(struct snd_speedscope *s, struct snd_heap_stacks *stacks, uint32_t heap,
                        enum sonde_heap_bytes which, struct snd_json *json)
{
    struct sonde_buffer name = { 0 };
    uint64_t            total = 0;

    snd_heap_stacks_rewind(stacks);
    while (snd_heap_stacks_next(stacks)) {
        if (stacks->heap_number != heap)
            continue;
        name_heap(stacks, &name);
        total += snd_heap_stacks_bytes(stacks, which);
    }
    snd_json_object(json, NULL);
    snd_json_text(json, "type", "sampled");
    snd_json_string(json, "name", snd_buf_string(&name), name.length);
    snd_json_text(json, "unit", "bytes");
    snd_json_int(json, "startValue", 0);
    snd_json_uint(json, "endValue", total);
    snd_json_array(json, "samples");
    put_stacks(s, stacks, heap, which, json);
    snd_json_end(json);
    snd_json_array(json, "weights");
    put_bytes(stacks, heap, which, json);
    snd_json_end(json);
    snd_json_end(json);
    sonde_buffer_release(&name);
}

SND_EXPORT_WRITE(snd_heap_speedscope)
{
    struct snd_speedscope  s = { .trace = trace };
    struct snd_heap_stacks stacks;
    struct snd_json        json;
    enum sonde_status      st = snd_heap_stacks_open(&stacks, trace, err);

    while (st == SONDE_OK && snd_heap_stacks_next(&stacks))
        for (size_t i = 0; i < stacks.count; i++)
            number_of(&s, &stacks.frames[i].frame);
    if (st == SONDE_OK && !s.failed) {
        snd_json_init(&json, out);
        snd_json_break_at(&json, 2);
        snd_speedscope_begin(&s, &json);
        for (uint32_t heap = 0; snd_heaps_heap(stacks.heaps, heap); heap++)
            put_profile(&s, &stacks, heap, options->heap, &json);
        snd_json_end(&json);
        snd_json_end(&json);
    }
    if (s.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    snd_speedscope_release(&s);
    snd_heap_stacks_release(&stacks);
    return st;
}
