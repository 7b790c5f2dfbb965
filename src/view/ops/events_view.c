/* SPDX-License-Identifier: Apache-2.0 */
/* The table of single events, torch's events().table(), and its export_stacks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/data/map.h"
#include "base/files/sink.h"
#include "format/fields.h"
#include "model/torch_stacks.h"
#include "read/reader.h"
#include "view/ops/ops_view.h"

/* Texts of shapes and stacks, each made once. */
struct texts {
    const struct sonde_trace *trace;
    struct snd_map            known; /* (kind, process, id) to items */
    struct snd_texts          items;
    struct sonde_buffer       buffer;
    bool                      failed;
};

enum { TEXT_SHAPES, TEXT_STACK };

static void make_shapes(struct texts *t, uint32_t process, uint32_t id)
{
    size_t length = snd_trace_shapes(t->trace, process, id, false, NULL, 0);
    char  *text = malloc(length + 1);

    if (text) {
        snd_trace_shapes(t->trace, process, id, false, text, length + 1);
        snd_buf_put(&t->buffer, text, length);
    } else {
        t->buffer.failed = true;
    }
    free(text);
}

static struct sonde_text find_text(struct texts *t, int kind, uint32_t process, uint32_t id)
{
    struct snd_key key = { (uint64_t)kind, SND_PAIR(id, process), 0 };
    uint32_t       at;

    if (id == 0)
        return (struct sonde_text){ "", 0 };
    if (!snd_map_get(&t->known, key, &at)) {
        snd_buf_clear(&t->buffer);
        if (kind == TEXT_SHAPES)
            make_shapes(t, process, id);
        else
            snd_stack_text(t->trace, process, id, SIZE_MAX, '\n', &t->buffer);
        if (t->buffer.failed ||
            !snd_texts_add(&t->items, snd_buf_string(&t->buffer), t->buffer.length, &at) ||
            !snd_map_put(&t->known, key, at)) {
            t->failed = true;
            return (struct sonde_text){ "", 0 };
        }
    }
    return (struct sonde_text){ t->items.items[at].bytes, t->items.items[at].length };
}

static void release(struct texts *t)
{
    snd_map_release(&t->known);
    snd_texts_release(&t->items);
    sonde_buffer_release(&t->buffer);
}

static struct sonde_average make_row(const struct sonde_events *events, struct texts *t, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(events);
    struct sonde_average               row = { .process = SONDE_NONE, .thread = SONDE_NONE };

    row.name = sonde_events_text(events, c->name[i]);
    row.overload = sonde_events_text(events, c->overload[i]);
    row.shapes = find_text(t, TEXT_SHAPES, c->process[i], c->shapes[i]);
    row.stack = find_text(t, TEXT_STACK, c->process[i], c->stack[i]);
    row.module = (struct sonde_text){ "", 0 };
    row.count = 1;
    row.total_ns = row.min_ns = row.max_ns = c->end_ns[i] - c->start_ns[i];
    row.self_ns = c->self_ns[i];
    row.cpu_bytes = c->cpu_bytes[i];
    row.self_cpu_bytes = c->self_cpu_bytes[i];
    row.device_bytes = c->device_bytes[i];
    row.self_device_bytes = c->self_device_bytes[i];
    row.device_ns = c->device_ns[i];
    row.self_device_ns = c->self_device_ns[i];
    row.on_device = c->flags[i] & SONDE_EVENT_ON_DEVICE;
    if (row.on_device)
        row.total_ns = row.min_ns = row.max_ns = row.self_ns = 0;
    row.flops = c->flops[i];
    row.macs = c->macs[i];
    row.moved_bytes = c->moved_bytes[i];
    row.scope = c->scope[i];
    row.is_async = c->flags[i] & SONDE_EVENT_IS_ASYNC;
    row.is_user_annotation = c->flags[i] & SONDE_EVENT_IS_USER;
    row.has_parent = c->parent[i] >= 0;
    return row;
}

enum sonde_status sonde_events_table(const struct sonde_trace          *trace,
                                     const struct sonde_events         *events,
                                     const struct sonde_report_options *options, unsigned shown,
                                     const struct sonde_sink *sink, struct sonde_error *err)
{
    const struct sonde_events_columns *c = sonde_events_columns(events);
    struct sonde_averages_totals       all = { 0 };
    struct snd_doc                     doc = { .view = "ops" };
    struct texts                       texts = { .trace = trace };
    struct snd_ops                     ops;
    enum sonde_status                  st;

    for (size_t i = 0; i < c->count; i++) {
        bool is_work = (c->flags[i] & SONDE_EVENT_ON_DEVICE) &&
                       !(c->flags[i] & SONDE_EVENT_IS_USER);
        all.self_ns += c->self_ns[i];
        all.device_ns += is_work ? c->self_device_ns[i] : 0;
    }
    snd_ops_begin(&ops, &doc, trace, &all);
    for (size_t i = 0; i < c->count; i++) {
        struct sonde_average row = make_row(events, &texts, i);
        snd_ops_add(&ops, &row);
    }
    snd_ops_end(&ops, shown & SONDE_TABLE_MEMORY, shown & SONDE_TABLE_FLOPS);
    doc.rows.failed |= texts.failed;
    st = snd_ops_print(&doc, options, sink, err);
    release(&texts);
    return st;
}

size_t sonde_stack_text(const struct sonde_trace *trace, uint32_t process, uint32_t stack,
                        size_t most, struct sonde_buffer *text)
{
    return snd_stack_text(trace, process, stack, most, '\n', text);
}

/* --------------------------------------------------------------- export_stacks */

/* What separates frames or lines cannot be in a name. */
static void put_entry(struct snd_out *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool bad = bytes[i] == ' ' || bytes[i] == ';' || bytes[i] == '\t' || bytes[i] == '\n';
        snd_out_put(out, bad ? "_" : &bytes[i], 1);
    }
}

/* Root first; `text` has the leaf first, one a line. */
static void put_stack(struct snd_out *out, struct sonde_text text)
{
    const char *end = text.bytes + text.length;

    for (bool first = true; end > text.bytes; first = false) {
        const char *start = memrchr(text.bytes, '\n', (size_t)(end - text.bytes));
        start = start ? start + 1 : text.bytes;
        if (!first)
            snd_out_text(out, ";");
        put_entry(out, start, (size_t)(end - start));
        end = start > text.bytes ? start - 1 : text.bytes;
    }
}

enum sonde_status sonde_events_stacks(const struct sonde_trace  *trace,
                                      const struct sonde_events *events, const char *metric,
                                      const struct sonde_sink *sink, struct sonde_error *err)
{
    const struct sonde_events_columns *c = sonde_events_columns(events);
    struct texts                       texts = { .trace = trace };
    struct snd_out                     out;
    int                                which;

    if (sonde_word_value(SONDE_WORDS_METRIC, metric, &which, err) != SONDE_OK)
        return SONDE_E_ARGUMENT;
    snd_out_init(&out, sink);
    for (size_t i = 0; i < c->count; i++) {
        int64_t us = (which == SONDE_METRIC_CPU ? c->self_ns : c->self_device_ns)[i] / 1000;
        struct sonde_text text = find_text(&texts, TEXT_STACK, c->process[i], c->stack[i]);
        if (us <= 0 || text.length == 0)
            continue;
        put_stack(&out, text);
        snd_out_format(&out, " %" PRId64 "\n", us);
    }
    bool failed = texts.failed;
    release(&texts);
    if (failed)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    return snd_out_finish(&out, err);
}
