/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's own trace format: packets of protobuf, on the tracks of processes and threads. */
#include "export/perfetto/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>

#include "export/timeline/shown_attributes.h"
#include "export/chrome/chrome.h"
#include "export/common/exporter.h"
#include "read/said/trace_metadata.h"
#include "read/walk/kinds.h"

static bool prepare(struct snd_perfetto *p)
{
    size_t   threads = (size_t)sonde_trace_thread_count(p->trace) + 1;
    uint32_t processes = sonde_trace_process_count(p->trace);

    p->attrs_shown = snd_attrs_mask();
    p->slots = calloc(threads, sizeof *p->slots);
    p->known_slots = calloc(threads, sizeof *p->known_slots);
    p->known_names = calloc((size_t)p->trace->names.count + 1, sizeof *p->known_names);
    p->unwritten_ns = calloc(threads, sizeof *p->unwritten_ns);
    p->is_torch = calloc((size_t)processes + 1, sizeof *p->is_torch);
    if (!snd_arrows_init(&p->arrows, p->trace) || !p->slots || !p->known_slots ||
        !snd_perfetto_make_calls(p) || !p->known_names || !p->is_torch || !p->unwritten_ns)
        return false;
    for (uint32_t i = 0; i < processes; i++)
        p->is_torch[i] = snd_export_is_torch(p->trace, i);
    return true;
}

static void release(struct snd_perfetto *p)
{
    snd_arrows_release(&p->arrows);
    snd_map_release(&p->known_tracks);
    snd_map_release(&p->known_ids);
    snd_rendered_release(&p->notes);
    sonde_buffer_release(&p->packet);
    sonde_buffer_release(&p->text);
    free(p->is_torch);
    free(p->ends);
    free(p->beside);
    free(p->slots);
    free(p->known_slots);
    snd_perfetto_free_calls(p);
    free(p->known_names);
    free(p->unwritten_ns);
}

/* As the sampler was asked, else as `perf record` does by default: 1 ms of a program that runs. */
static int64_t sample_period(const struct sonde_trace *trace)
{
    struct sonde_text hz;

    for (uint32_t i = 0; i < trace->process_count; i++)
        if (snd_meta_find(trace, i, SND_META_PYTHON_SAMPLE_HZ, &hz)) {
            long long rate = strtoll(hz.bytes, NULL, 10);
            if (rate > 0 && rate <= 1000000)
                return 1000000000 / rate;
        }
    return 1000000;
}

static bool has_unusual_calls(const struct sonde_trace *trace)
{
    for (uint32_t i = 0; i < trace->process_count; i++)
        for (uint32_t k = 0; k < trace->processes[i].tables.call_count; k++) {
            const struct snd_call_record *call = &trace->processes[i].tables.calls[k].record;
            if (call->fwd_thread != 0 || (call->flags & SND_CALL_ASYNC))
                return true;
        }
    return false;
}

/* Whether there may be arrows, or ranges that do not nest: what the first walk finds. */
static enum sonde_status needs_first_walk(struct sonde_trace *trace, bool *needed,
                                          struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       st = snd_trace_kinds(trace, &kinds, err);

    *needed = st == SONDE_OK && (kinds->events[SND_EV_API] || kinds->events[SND_EV_END_AT] ||
                                 kinds->events[SND_EV_END_KEY] || kinds->attrs[SND_ATTR_API] ||
                                 kinds->attrs[SND_ATTR_ASYNC] ||
                                 kinds->attrs[SND_ATTR_FWD_THREAD] || has_unusual_calls(trace));
    return st;
}

SND_EXPORT_WRITE(snd_export_perfetto)
{
    struct snd_perfetto     p = { .trace = trace, .out = out };
    struct snd_spans_calls  find = { .end = snd_perfetto_find_end, .user = &p };
    struct snd_spans_calls  write = { .begin = snd_perfetto_on_begin,
                                      .end = snd_perfetto_on_end,
                                      .event = snd_perfetto_on_event,
                                      .user = &p,
                                      .ahead = true };
    struct snd_spans_totals totals;
    bool                    needs_first;
    enum sonde_status       st = needs_first_walk(trace, &needs_first, err);

    (void)options;
    p.period_ns = sample_period(trace);
    p.failed = !prepare(&p);
    if (st == SONDE_OK && !p.failed && needs_first)
        st = snd_spans_walk(trace, &find, &totals, err);
    if (st == SONDE_OK && !p.failed) {
        snd_perfetto_sort_ends(&p);
        snd_perfetto_head(&p);
        st = snd_spans_walk(trace, &write, &totals, err);
    }
    if (st == SONDE_OK && !p.failed) {
        snd_perfetto_finish_calls(&p);
        st = snd_perfetto_works(&p, err);
    }
    if (st == SONDE_OK && (p.failed || p.text.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the trace's tracks and arrows");
    release(&p);
    return st;
}
