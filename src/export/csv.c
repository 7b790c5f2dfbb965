/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: one line a range, in the order in which they end. */
#include <string.h>

#include "base/buf.h"
#include "export/exporter.h"
#include "export/live.h"
#include "export/spans.h"
#include "export/tensors.h"
#include "read/scale.h"

struct csv {
    const struct sonde_trace *trace;
    struct snd_out           *out;
    struct snd_spans         *spans;
    struct snd_live           live;
    struct sonde_buffer       text;
    bool                      failed;
};

static void put_span(const struct snd_span *span, void *user)
{
    struct csv       *csv = user;
    int64_t           duration = span->end_ns - span->start_ns;
    struct sonde_text name = sonde_trace_string(csv->trace, span->process, span->name);

    const int64_t numbers[] = { sonde_trace_process(csv->trace, span->process)->pid,
                                sonde_trace_thread(csv->trace, span->thread)->tid,
                                span->start_ns,
                                duration,
                                snd_sub(duration, span->children_ns),
                                span->depth };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        snd_out_int(csv->out, numbers[i]);
        snd_out_put(csv->out, ",", 1);
    }
    snd_out_csv(csv->out, name.bytes, name.length);
    snd_out_text(csv->out, ",");
    if (snd_tensors_text(csv->trace, span->process, span->shapes, &csv->text))
        snd_out_csv(csv->out, csv->text.bytes, csv->text.length);
    snd_out_text(csv->out, ",");
    if (span->attr_mask >> SND_ATTR_FLOPS & 1)
        snd_out_uint(csv->out, span->attrs[SND_ATTR_FLOPS]);
    snd_out_text(csv->out, ",");
    snd_out_int(csv->out, span->bytes);
    snd_out_text(csv->out, "\n");
}

static bool on_event(const struct sonde_event *event, void *user)
{
    struct csv *csv = user;
    bool        memory = event->kind == SONDE_EVENT_ALLOC || event->kind == SONDE_EVENT_FREE;
    int64_t     bytes = memory ? snd_live_event(&csv->live, event, NULL) : 0;

    if (!snd_spans_event(csv->spans, event, bytes) || csv->live.failed || csv->text.failed)
        csv->failed = true;
    return !csv->failed && !csv->out->failed;
}

SND_EXPORT_WRITE(snd_export_csv)
{
    struct csv             csv = { .trace = trace, .out = out };
    struct snd_spans_calls calls = { NULL, put_span, &csv };

    (void)options;
    enum sonde_status st = snd_spans_new(trace, &calls, &csv.spans, err);
    if (st != SONDE_OK)
        return st;
    snd_out_text(out,
                 "process,thread,start_ns,duration_ns,self_ns,depth,name,shapes,flops,bytes\n");
    st = sonde_trace_walk(trace, SONDE_BY_TIME, on_event, &csv, err);
    if (st == SONDE_OK && csv.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the ranges that are open at once");
    if (st == SONDE_OK)
        snd_spans_finish(csv.spans);
    snd_spans_free(csv.spans);
    snd_live_release(&csv.live);
    sonde_buffer_release(&csv.text);
    return st;
}
