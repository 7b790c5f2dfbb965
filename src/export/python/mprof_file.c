/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mprof: what `mprof run` writes and `mprof plot` reads.
 *
 *     CMDLINE python script.py
 *     MEM 31.203125 1700000000.0123           MiB in use by the process, and when
 *     CHLD 0 12.500000 1700000000.0124        the same of its children, by number
 *     FUNC module.f 31.2031 1700000000.0123 40.1250 1700000001.0124 1
 *                                             memory and time at a function's begin and end, depth
 *
 * Memory is the counter process.rss; functions are the ranges that a person named.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/compare.h"
#include "export/common/exporter.h"
#include "export/timeline/spans.h"
#include "format/known.h"
#include "read/said/trace_metadata.h"
#include "read/file/scale.h"
#include "sonde/model.h"

#define MIB (1024.0 * 1024.0)

struct writer {
    const struct sonde_trace *trace;
    struct snd_out           *out;
    double                   *bytes; /* by process: its last value of the counter */
    uint64_t                  told;  /* how many values so far */
};

static const char *show(char text[SND_NUMBER_MAX], int decimals, double value)
{
    return snd_number_fixed(text, decimals, value);
}

static double epoch_of(const struct writer *w, uint32_t process, int64_t ns)
{
    const struct sonde_process *p = sonde_trace_process(w->trace, process);

    return (double)p->start_real_ns / 1e9 + (double)snd_sub(ns, p->start_ns) / 1e9;
}

static bool is_memory(const struct writer *w, const struct sonde_event *event)
{
    const char       *wanted = snd_known_name(SND_KNOWN_RSS);
    struct sonde_text name = sonde_trace_string(w->trace, event->process, event->counter.name);

    return snd_equals_at(name.bytes, name.length, wanted);
}

static void put_memory(struct writer *w, const struct sonde_event *event)
{
    char   mib[SND_NUMBER_MAX], when[SND_NUMBER_MAX];
    double bytes = event->counter.value;

    if (!(bytes >= 0 && bytes < 1e18))
        return; /* no memory of a process */
    w->bytes[event->process] = bytes;
    w->told++;
    if (event->process == 0)
        snd_out_text(w->out, "MEM ");
    else
        snd_out_format(w->out, "CHLD %" PRIu32 " ", event->process - 1);
    snd_out_format(w->out, "%s %s\n", show(mib, 6, bytes / MIB),
                   show(when, 4, epoch_of(w, event->process, event->time_ns)));
}

/* A name is one word in this format. */
static void put_name(struct snd_out *out, struct sonde_text name)
{
    for (size_t i = 0; i < name.length; i++) {
        unsigned char c = (unsigned char)name.bytes[i];
        snd_out_put(out, c <= ' ' ? "_" : (const char *)&c, 1);
    }
    if (name.length == 0)
        snd_out_text(out, "_");
}

static bool is_function(const struct snd_span *span)
{
    return (span->attr_mask >> SND_ATTR_SCOPE & 1) &&
           span->attrs[SND_ATTR_SCOPE] == SONDE_SCOPE_USER + 1;
}

/* What the process had in use when the range began is the range's `number`. */
static bool begin_function(struct snd_span *span, void *user)
{
    const struct writer *w = user;

    span->number = (uint64_t)w->bytes[span->process];
    return true;
}

static bool put_function(const struct snd_span *span, void *user)
{
    struct writer *w = user;
    char           a[SND_NUMBER_MAX], b[SND_NUMBER_MAX], c[SND_NUMBER_MAX], d[SND_NUMBER_MAX];

    if (!is_function(span))
        return true;
    snd_out_text(w->out, "FUNC ");
    put_name(w->out, span->name);
    snd_out_format(w->out, " %s %s %s %s %" PRIu32 "\n", show(a, 4, (double)span->number / MIB),
                   show(b, 4, epoch_of(w, span->process, span->start_ns)),
                   show(c, 4, w->bytes[span->process] / MIB),
                   show(d, 4, epoch_of(w, span->process, span->end_ns)), span->depth + 1);
    return !w->out->failed;
}

static bool on_event(const struct sonde_event *event, const struct snd_live_change *change,
                     void *user)
{
    struct writer *w = user;

    (void)change;
    if (event->kind == SONDE_EVENT_COUNTER && is_memory(w, event))
        put_memory(w, event);
    return !w->out->failed;
}

static void put_command(struct writer *w)
{
    struct sonde_text command = snd_meta_command(w->trace, 0);

    snd_out_text(w->out, "CMDLINE ");
    for (size_t i = 0; i < command.length; i++)
        snd_out_put(w->out, command.bytes[i] == '\n' ? " " : &command.bytes[i], 1);
    snd_out_text(w->out, "\n");
}

SND_EXPORT_WRITE(snd_export_mprof)
{
    struct writer          w = { .trace = trace, .out = out };
    struct snd_spans_calls calls = {
        .begin = begin_function, .end = put_function, .event = on_event, .user = &w
    };
    struct snd_spans_totals totals;

    (void)options;
    w.bytes = calloc((size_t)sonde_trace_process_count(trace) + 1, sizeof *w.bytes);
    if (!w.bytes)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the processes of the trace");
    put_command(&w);
    enum sonde_status st = snd_spans_walk(trace, &calls, &totals, err);
    if (st == SONDE_OK && w.told == 0)
        st = snd_fail(err, SONDE_E_STATE,
                      "the trace has no memory over time (the counter process.rss); record it with "
                      "--line-memory");
    free(w.bytes);
    return st;
}
