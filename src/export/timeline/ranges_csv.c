/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: one line per range, in the order in which they end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "export/encode/rendered_texts.h"
#include "export/timeline/spans.h"
#include "export/timeline/gpu_streams.h"
#include "export/timeline/torch_tensors.h"
#include "read/reader.h"

/* "process,thread," of a thread. */
struct head {
    char   text[32];
    size_t length; /* 0: not made yet */
};

struct csv {
    const struct sonde_trace *trace;
    struct snd_out           *out;
    struct sonde_buffer       text;
    struct snd_rendered       rendered;
    struct head              *heads; /* by thread */
};

static void make_head(const struct csv *csv, const struct snd_span *span)
{
    struct head *head = &csv->heads[span->thread];
    int          length = snprintf(head->text, sizeof head->text, "%" PRIu32 ",%" PRIu32 ",",
                                   sonde_trace_process(csv->trace, span->process)->pid,
                                   sonde_trace_thread(csv->trace, span->thread)->tid);

    head->length = (size_t)length;
}

/* The columns up to the depth. */
static void put_numbers(const struct csv *csv, const struct snd_span *span)
{
    const struct head *head = &csv->heads[span->thread];
    const int64_t      numbers[] = { span->start_ns, snd_sub(span->end_ns, span->start_ns),
                                     span->self_ns, span->depth };
    char              *to = snd_out_room(csv->out,
                                         sizeof head->text + SND_COUNT_OF(numbers) * (SND_INT_BYTES + 1));

    memcpy(to, head->text, sizeof head->text); /* of a known length */
    to += head->length;
    for (size_t i = 0; i < SND_COUNT_OF(numbers); i++) {
        to = snd_put_int(to, numbers[i]);
        *to++ = ',';
    }
    csv->out->at = to;
}

/* "name,shapes,": the same of many ranges. */
static void put_name(struct csv *csv, const struct snd_span *span)
{
    struct snd_rendered_key  key = { { span->name_number, span->process, span->shapes } };
    const struct sonde_text *kept = snd_rendered_find(&csv->rendered, &key);

    if (kept) {
        snd_out_put(csv->out, kept->bytes, kept->length);
        return;
    }
    struct snd_out_mark mark = snd_out_mark(csv->out);
    snd_out_csv(csv->out, span->name.bytes, span->name.length);
    snd_out_text(csv->out, ",");
    if (snd_tensors_text(csv->trace, span->process, span->shapes, &csv->text))
        snd_out_csv(csv->out, csv->text.bytes, csv->text.length);
    snd_out_text(csv->out, ",");
    snd_rendered_keep_out(&csv->rendered, &key, csv->out, mark);
}

static bool put_span(const struct snd_span *span, void *user)
{
    struct csv *csv = user;

    if (csv->heads[span->thread].length == 0)
        make_head(csv, span);
    put_numbers(csv, span);
    put_name(csv, span);
    if (span->attr_mask >> SND_ATTR_FLOPS & 1)
        snd_out_uint(csv->out, span->attrs[SND_ATTR_FLOPS]);
    snd_out_text(csv->out, ",");
    snd_out_int(csv->out, span->bytes);
    snd_out_text(csv->out, "\n");
    return !csv->text.failed && !csv->out->failed;
}

/* Work of GPUs, after the ranges: its thread is its stream. */
static enum sonde_status put_work(struct csv *csv, struct sonde_trace *trace,
                                  struct sonde_error *err)
{
    const struct snd_devices *devices;
    enum sonde_status         st = snd_trace_devices_by_time(trace, &devices, err);

    for (uint32_t i = 0; st == SONDE_OK && devices && i < devices->count; i++) {
        const struct snd_device_item *item = &devices->items[devices->by_time[i]];
        struct sonde_text             name = snd_device_work_name(trace, item);
        if (!snd_work_counts(snd_device_work(trace, item)))
            continue;
        if (csv->out->failed)
            break;
        snd_out_int(csv->out, sonde_trace_process(trace, item->process)->pid);
        snd_buf_clear(&csv->text);
        snd_stream_name(snd_device_queue(trace, item), &csv->text);
        snd_out_format(csv->out, ",%s,", snd_buf_string(&csv->text));
        snd_out_int(csv->out, item->start_ns);
        snd_out_text(csv->out, ",");
        snd_out_int(csv->out, item->duration_ns);
        snd_out_text(csv->out, ",");
        snd_out_int(csv->out, item->duration_ns);
        snd_out_text(csv->out, ",0,");
        snd_out_csv(csv->out, name.bytes, name.length);
        snd_out_text(csv->out, ",,,\n");
    }
    return st;
}

SND_EXPORT_WRITE(snd_export_csv)
{
    struct csv              csv = { .trace = trace, .out = out };
    struct snd_spans_calls  calls = { .end = put_span, .user = &csv, .ahead = true };
    struct snd_spans_totals totals;

    (void)options;
    csv.heads = calloc((size_t)trace->thread_count + 1, sizeof *csv.heads);
    if (!csv.heads)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    snd_out_text(out,
                 "process,thread,start_ns,duration_ns,self_ns,depth,name,shapes,flops,bytes\n");
    enum sonde_status st = snd_spans_walk(trace, &calls, &totals, err);
    if (st == SONDE_OK)
        st = put_work(&csv, trace, err);
    if (st == SONDE_OK && csv.text.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for a tensor list");
    free(csv.heads);
    snd_rendered_release(&csv.rendered);
    sonde_buffer_release(&csv.text);
    return st;
}
